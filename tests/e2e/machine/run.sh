#!/usr/bin/env bash
# A package or the tarball on a fresh Debian that boots with systemd: tests/e2e/machine/run.sh SUITE FILE [DIR]
#
#   SUITE   bookworm or trixie
#   FILE    rooflined_*.deb built there, or rooflined-*.tar.gz
#   DIR     where the machine is made; its base system is kept beside it, in DIR.base (default: a temporary folder)
#
# Root, debootstrap and systemd-nspawn are needed. The machine has a network of its own, without a way out, and is started
# twice; what is done in it, and must hold, is in inside.sh. The processors and the memory are this machine's, so that one
# that is busy may take several tries to measure a ceiling.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
suite=$1 file=$(readlink -f "$2")
directory=${3:-$(mktemp -d)/machine}
boot_seconds=900

make_machine() {
  if [ ! -d "$directory.base/etc" ]; then
    debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,ca-certificates,curl "$suite" "$directory.base" \
      >"$directory.log"
  fi
  rm -rf "$directory"
  cp -a "$directory.base" "$directory"
  mkdir "$directory/test"
  cp "$file" "$here/inside.sh" "$directory/test"
}

# What the package depends on is fetched while there is a network; it is installed inside.
fetch_dependencies() {
  [ "${file%.deb}" != "$file" ] || return 0
  systemd-nspawn -q --register=no --keep-unit -D "$directory" /bin/sh -c \
    "apt-get update -q && apt-get install -y -q --no-install-recommends --download-only /test/$(basename "$file")" >>"$directory.log" 2>&1
}

boot() {
  local stage=$1
  cat >"$directory/test/$stage.sh" <<SCRIPT
/test/inside.sh $stage >/test/$stage.out 2>&1
echo \$? >/test/$stage.status
systemctl poweroff
SCRIPT
  cat >"$directory/etc/systemd/system/rooflined-test.service" <<UNIT
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh /test/$stage.sh
UNIT
  mkdir -p "$directory/etc/systemd/system/graphical.target.wants"
  ln -sf ../rooflined-test.service "$directory/etc/systemd/system/graphical.target.wants/"
  echo "== $suite, $(basename "$file"): $stage"
  timeout "$boot_seconds" systemd-nspawn -q --register=no --keep-unit --private-network -D "$directory" -b >"$directory.$stage.boot" 2>&1 || true
  cat "$directory/test/$stage.out"
  [ "$(cat "$directory/test/$stage.status")" = 0 ] || { echo "failed: $stage"; exit 1; }
}

make_machine
fetch_dependencies
boot first
boot again
echo "== passed"
