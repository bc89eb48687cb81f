#!/usr/bin/env bash
# deploy/packages.sh tells an installed package from others, beside a made-up package database.
#
#   packages_test.sh SOURCE_DIR
set -euo pipefail
. "$1/deploy/packages.sh"

dpkg() { echo amd64; }
dpkg-query() { printf '%b' "$database"; }

failed=0
# expect VERDICT STATUS_LINES WHAT
expect() {
  database=$2
  if package_installed some-package; then found=installed; else found=missing; fi
  [ "$found" = "$1" ] || { echo "$3: $found, and not $1" >&2; failed=1; }
}
expect installed 'installed amd64\n' 'a package of this processor'
expect installed 'installed all\n' 'one for every processor'
expect installed 'installed amd64\ninstalled arm64\n' 'one that is there for two processors'
expect installed 'installed arm64\ninstalled amd64\n' 'the same in another order'
expect missing 'installed arm64\n' 'one for another processor only'
expect missing 'config-files amd64\n' 'one that was removed'
expect missing 'half-installed amd64\n' 'one whose installation was interrupted'
expect missing '' 'one that was never there'
exit "$failed"
