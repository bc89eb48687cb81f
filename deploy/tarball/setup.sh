#!/bin/sh
# Makes the rooflined of this folder a service of this host, from where it lies: ./setup.sh [--remove]   (as root)
#
# Writes the unit, the user `rooflined` and, where there is none, /etc/rooflined/rooflined.toml; starts nothing, but a
# daemon that runs is restarted. Run again from a newer folder, it is an upgrade. --remove takes back everything but this
# folder: unit, user, settings, ceilings and baselines.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
unit=/etc/systemd/system/rooflined.service
[ "$(id -u)" -eq 0 ] || { echo "setup.sh: run as root" >&2; exit 2; }

case ${1:-} in
  --remove)
    systemctl disable --now rooflined.service 2>/dev/null || true
    rm -rf "$unit" "$unit.d" /var/lib/rooflined /run/rooflined /etc/rooflined
    systemctl daemon-reload 2>/dev/null || true
    if getent passwd rooflined >/dev/null; then userdel rooflined; fi
    if getent group rooflined >/dev/null; then groupdel rooflined; fi
    exit 0 ;;
  "") ;;
  *) echo "usage: $0 [--remove]" >&2; exit 2 ;;
esac

# The service runs as a user of its own, which has to get here.
folder=$here
while [ "$folder" != / ]; do
  case $(stat -c %A "$folder") in
    *x | *t) ;;
    *) echo "setup.sh: the user rooflined cannot enter $folder: unpack this elsewhere (/opt), or chmod o+x" >&2; exit 1 ;;
  esac
  folder=$(dirname "$folder")
done

systemd-sysusers "$here/lib/sysusers.d/rooflined.conf"
systemd-tmpfiles --create "$here/lib/tmpfiles.d/rooflined.conf" || true
if [ ! -e /etc/rooflined/rooflined.toml ]; then
  install -D -m 644 "$here/etc/rooflined/rooflined.toml" /etc/rooflined/rooflined.toml
fi
sed "s#/PREFIX/#$here/#g" "$here/lib/systemd/system/rooflined.service" >"$unit"
chmod 644 "$unit"
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart rooflined.service
fi
echo "systemctl enable --now rooflined    # metrics on http://127.0.0.1:10074/metrics"
