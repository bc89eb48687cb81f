#!/bin/sh
# Inside the machine that run.sh boots: inside.sh first | again
#
# first: install, start, measure, traffic, MBU. again, after the next boot: the daemon is there with its ceiling; reload; an
# upgrade over the running daemon keeps what was measured; remove, purge: nothing is left.
set -eu
cd /test
url=http://127.0.0.1:10074
package=$(ls rooflined_*.deb 2>/dev/null || true)
if [ -n "$package" ]; then programs=/usr/bin; else programs=/opt/rooflined/bin; fi

fail() {
  echo "FAILED: $*"
  systemctl status --no-pager rooflined || true
  journalctl --no-pager -u rooflined | tail -n 20
  exit 1
}

wait_for() {  # SECONDS WHAT COMMAND…
  seconds=$1 what=$2
  shift 2
  while ! "$@"; do
    seconds=$((seconds - 1))
    [ $seconds -gt 0 ] || fail "waited for $what"
    sleep 1
  done
}

value() {  # SERIES, a pattern
  curl -s "$url/metrics" | sed -n "s/^$1 //p" | head -n 1
}
ready() { curl -sf "$url/readyz" >/dev/null; }
has() { [ -n "$(value "$1")" ]; }
over_zero() { value "$1" | awk '{exit !($1 > 0)}'; }

install_it() {
  if [ -n "$package" ]; then
    apt-get install -y -q --no-install-recommends "./$package"
  else
    mkdir /opt/rooflined
    tar -C /opt/rooflined --strip-components=1 -xzf rooflined-*.tar.gz
    /opt/rooflined/setup.sh
  fi
}

serve() {
  "$programs/rooflined-sim" serve --listen 127.0.0.1:8080 --model builtin:llama-3.2-1b-q8_0 --bandwidth 20e9 \
    --efficiency 0.6 --dialect llama.cpp &
  wait_for 30 "the server" curl -s -o /dev/null http://127.0.0.1:8080/v1/models
}
load() { "$programs/rooflined-sim" load --url http://127.0.0.1:8080 --concurrency 2 --duration "$1" --output-tokens 32 >/dev/null; }

# A host that others keep busy gives no ceiling, and should not: then the file that a measurement would have left is put
# there, so that the rest can be seen.
measure() {
  for attempt in 1 2 3; do
    "$programs/rooflined" membw --adopt && return 0
    echo "no measurement held in try $attempt"
    sleep 5
  done
  echo "NOT MEASURED: this machine is too busy; a ceiling of 31.25 GB/s is written down instead"
  llc=$("$programs/rooflined" membw --size 64MB --threads 1 --json | sed -n 's/.*"llc_bytes": *\([0-9]*\).*/\1/p')
  cat >ceiling.json <<STATE
{"version": 1,
 "identity": {"cpu_model": "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)",
   "kernel_release": "$(uname -r)", "llc_bytes": $llc,
   "memory_bytes": $(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024))},
 "results": [{"unix_time_ns": $(date +%s)000000000, "ceiling_bytes_per_second": 31.25e9,
   "median_bytes_per_second": 31e9, "kernel": "dot", "threads": 1, "working_set_bytes": 1073741824, "cache_inflated": false}]}
STATE
  install -o rooflined -g rooflined -m 600 ceiling.json /var/lib/rooflined/ceiling.json
}

first() {
  install_it
  ! systemctl is-active -q rooflined || fail "the installation started it"
  systemctl enable --now rooflined
  wait_for 30 readiness ready
  [ "$(stat -c %U /proc/"$(systemctl show -P MainPID rooflined)")" != root ] || fail "it runs as root"
  grep -E '^Cap(Prm|Eff|Bnd)' /proc/"$(systemctl show -P MainPID rooflined)"/status
  systemd-analyze security rooflined --no-pager | tail -n 1
  systemd-analyze security --threshold=20 rooflined --no-pager >/dev/null || fail "over 2.0"
  serve
  measure
  wait_for 30 "the ceiling" has rooflined_ceiling_bytes_per_second
  load 15s
  over_zero 'rooflined_mbu_ratio{.*}' || fail "no MBU"
  curl -s "$url/metrics" | grep -E '^rooflined_(mbu_ratio|tokens_per_second|ceiling_bytes_per_second|output_tokens_total)'
  "$programs/rooflined" doctor || true
  value rooflined_ceiling_bytes_per_second >ceiling
}

# The same package under a later version.
repack() {
  dpkg-deb -R "$package" new
  sed -i 's/^Version: .*/&+1/' new/DEBIAN/control
  dpkg-deb --root-owner-group -b new upgrade.deb >/dev/null
}

upgrade() {
  before=$(systemctl show -P MainPID rooflined)
  if [ -n "$package" ]; then
    repack
    apt-get install -y -q --no-install-recommends ./upgrade.deb
    dpkg-query -W rooflined
  else
    /opt/rooflined/setup.sh
  fi
  wait_for 30 "readiness after the upgrade" ready
  [ "$(systemctl show -P MainPID rooflined)" != "$before" ] || fail "the old daemon still runs"
  [ "$(value rooflined_ceiling_bytes_per_second)" = "$(cat ceiling)" ] || fail "another ceiling after the upgrade"
}

# What belongs to the package or was made by it; apt's archive and this test aside.
leftovers() {
  find / -xdev \( -path /proc -o -path /sys -o -path /test -o -path /var/cache/apt -o -path /var/log -o -path /run/log \) -prune \
    -o -iname '*rooflined*' ! -name 'rooflined-test.service' -print
  getent passwd rooflined || true
  getent group rooflined || true
}

purge() {
  if [ -n "$package" ]; then
    apt-get remove -y -q rooflined
    ! systemctl is-active -q rooflined || fail "it still runs after the removal"
    [ -n "$(ls /var/lib/rooflined)" ] || fail "what was measured went with the removal"
    [ -e /etc/rooflined/rooflined.toml ] || fail "the settings went with the removal"
    apt-get purge -y -q rooflined
  else
    /opt/rooflined/setup.sh --remove
    rm -r /opt/rooflined
  fi
  left=$(leftovers)
  [ -z "$left" ] || fail "left behind: $left"
}

again() {
  wait_for 60 "the daemon after the boot" ready
  [ "$(value rooflined_ceiling_bytes_per_second)" = "$(cat ceiling)" ] || fail "another ceiling after the boot"
  echo "after the boot: $(value rooflined_ceiling_bytes_per_second) bytes/s, as before"
  systemctl reload rooflined
  systemctl is-active rooflined
  serve
  load 5s
  over_zero 'rooflined_output_tokens_total{.*}' || fail "no tokens after the boot"
  upgrade
  load 15s
  over_zero 'rooflined_mbu_ratio{.*}' || fail "no MBU after the upgrade"
  echo "after the upgrade: MBU $(value 'rooflined_mbu_ratio{.*window="1m"}')"
  journalctl --no-pager -u rooflined -p warning | grep -v '^--' || true
  purge
}

"$1"
