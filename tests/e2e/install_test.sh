#!/usr/bin/env bash
# install_test.sh BUILD_DIR: `cmake --install` puts everything where systemd and the README expect it, the unit is sound,
# and its exposure is at most 2.0. Exits with 77, skipped, where systemd-analyze is not there.
set -euo pipefail
build=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

DESTDIR=$root cmake --install "$build" --prefix /usr >"$root/log"
for file in usr/bin/rooflined usr/lib/systemd/system/rooflined.service usr/lib/sysusers.d/rooflined.conf \
  usr/share/rooflined/prometheus/rooflined.rules.yml usr/share/rooflined/grafana/rooflined-node.json \
  etc/rooflined/rooflined.toml; do
  [ -f "$root/$file" ] || { echo "not installed: /$file"; exit 1; }
done

# The administrator's settings survive a second installation.
echo '# mine' >"$root/etc/rooflined/rooflined.toml"
DESTDIR=$root cmake --install "$build" --prefix /usr >>"$root/log"
grep -qx '# mine' "$root/etc/rooflined/rooflined.toml" || { echo "the settings file was overwritten"; exit 1; }

unit=$root/usr/lib/systemd/system/rooflined.service
if grep -n '@' "$unit" | grep -v 'SystemCallFilter\|^[0-9]*:#'; then
  echo "unresolved name in the unit"
  exit 1
fi
if ! command -v systemd-analyze >/dev/null; then
  echo "skipped: no systemd-analyze"
  exit 77
fi
mkdir "$root/verify"
sed "s#/usr/bin/rooflined#$root/usr/bin/rooflined#" "$unit" >"$root/verify/rooflined.service"
# --man=no: the manual page is the README, as a file that is not installed here.
systemd-analyze verify --man=no "$root/verify/rooflined.service"
systemd-analyze security --offline=true --threshold=20 "$root/verify/rooflined.service" | tail -n 1
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers --root="$root" rooflined.conf
  grep -q '^rooflined:' "$root/etc/passwd"
fi
