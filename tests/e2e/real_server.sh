#!/usr/bin/env bash
# Runs the daemon beside a real llama-server: tests/e2e/real_server.sh BUILD_DIR [counters|deploys|router]
#
# counters: what it counts of the traffic (real_server_test.py); deploys: what it says of restarts (real_deploys_test.py);
# router: of a server that starts one for each model (real_router_test.py).
# The server is $LLAMA_SERVER, or llama-server on the PATH, or (as root) the package llama.cpp of Debian testing in a
# folder of its own under BUILD_DIR. The models have random weights and are written here.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "${1:?usage: real_server.sh BUILD_DIR [counters|deploys|router]}" && pwd)
case ${2:-counters} in
  counters) test=real_server_test.py ;;
  deploys) test=real_deploys_test.py ;;
  router) test=real_router_test.py ;;
  *) echo "real_server.sh: no such test: $2" >&2; exit 2 ;;
esac
root=$build/llama-server
models=$build/models

if [ -n "${LLAMA_SERVER:-}" ]; then
  command=("$LLAMA_SERVER")
elif command -v llama-server >/dev/null; then
  command=(llama-server)
else
  [ "$(id -u)" = 0 ] || { echo "real_server.sh: no llama-server on the PATH, and not root: set LLAMA_SERVER" >&2; exit 1; }
  if [ ! -x "$root/usr/bin/llama-server" ]; then
    echo "installing llama.cpp of Debian testing into $root (about a minute)"
    command -v debootstrap >/dev/null || apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
    mirror=$(apt-get indextargets --format '$(SITE)' | grep -m 1 -v security)
    rm -rf "$root"
    # "sid" is the script that every Debian suite shares.
    debootstrap --variant=minbase testing "$root" "$mirror" /usr/share/debootstrap/scripts/sid >"$build/debootstrap.log" 2>&1
    chroot "$root" apt-get install -y -qq --no-install-recommends llama.cpp >>"$build/debootstrap.log" 2>&1
  fi
  models=$root/models
  # A router starts its children by /proc/self/exe: /proc is there for this server only, and gone with it.
  command=(unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" llama-server "$@"' "$root")
fi

mkdir -p "$models"
"$build/bin/rooflined-make-model" "$models/random.gguf"
"$build/bin/rooflined-make-model" --layers 2 "$models/draft.gguf"
# One that two threads compute faster than one does.
"$build/bin/rooflined-make-model" --layers 12 --width 1536 --heads 24 --ffn 4096 --type q4_0 "$models/large.gguf"
[ "${command[0]}" = unshare ] && models=/models
exec python3 -B "$here/$test" "$build/bin" "$models" "${command[@]}"
