#!/usr/bin/env bash
# From a bare Debian 12 or 13 to a live table: installs what the build needs, builds, starts the daemon, and shows MBU.
# Where no inference server answers on the usual ports, a simulated one is started and loaded.
#
#   ./deploy/quickstart.sh [--seconds N] [--listen ADDRESS:PORT]
#
# Nothing is installed but Debian packages; the daemon keeps its state in a temporary folder. Ctrl-C ends everything.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=packages.sh
. "$root/deploy/packages.sh"

usage() { sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
refuse() { echo "quickstart.sh: $1 (see --help)" >&2; exit 2; }
arguments=("$@")
# Before the build, which takes minutes.
while [ $# -gt 0 ]; do
  case $1 in
    --seconds | --listen) [ $# -ge 2 ] || refuse "$1 needs a value" ;;&
    --seconds)
      [[ $2 =~ ^[0-9]{1,9}(\.[0-9]+)?$ ]] || refuse "--seconds $2: want a number of seconds"
      shift 2 ;;
    --listen)
      [[ $2 =~ ^[^[:space:]]*:([0-9]{1,5})$ ]] && [ "$((10#${BASH_REMATCH[1]}))" -ge 1 ] &&
        [ "$((10#${BASH_REMATCH[1]}))" -le 65535 ] || refuse "--listen $2: want ADDRESS:PORT, as 127.0.0.1:10074"
      shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) refuse "unknown option $1" ;;
  esac
done
trap 'echo; echo "interrupted"; exit 130' INT TERM

if [ "$(id -u)" -ne 0 ]; then
  echo "quickstart.sh: run as root (capturing packets needs CAP_NET_RAW)" >&2
  exit 2
fi
install_missing "${packages_build[@]}"

cd "$root"
configure_options=()
if command -v ccache >/dev/null; then configure_options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake --preset release "${configure_options[@]}"
cmake --build --preset release --parallel "$(nproc)" --target rooflined rooflined-sim

exec python3 -B deploy/quickstart.py --bin build/release/bin "${arguments[@]}"
