#!/usr/bin/env bash
# rules_test.sh ROOT: the alert rules are valid, and their unit tests pass. Exits with 77, skipped, without promtool.
set -euo pipefail
cd "$1/deploy/prometheus"
if ! command -v promtool >/dev/null; then
  echo "skipped: promtool is not installed"
  exit 77
fi
promtool check rules rooflined.rules.yml
promtool check config prometheus.yml
promtool test rules tests/*.yml
