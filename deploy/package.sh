#!/usr/bin/env bash
# Builds the Debian package (and with --tarball an archive with its libraries): deploy/package.sh [OPTION]…   (--help)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=packages.sh
. "$root/deploy/packages.sh"

usage() {
  cat <<'HELP'
usage: deploy/package.sh [--tarball] [--help]

Installs what the build needs (as root), builds the preset `package`, and writes rooflined_VERSION_ARCH.deb to
build/package/packages. The package is for the Debian release that it was built on, since it uses that release's libraries.

  --tarball   also write rooflined-VERSION-linux-ARCH.tar.gz (deploy/tarball.sh): the programs with their libraries, the unit
              and the documents, for any distribution with a C library at least as new as this one's
HELP
}

tarball=0
while [ $# -gt 0 ]; do
  case $1 in
    --tarball) tarball=1 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "deploy/package.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done

install_missing "${packages_build[@]}" "${packages_package[@]}"
cd "$root"
launcher=()
if command -v ccache >/dev/null; then launcher+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake --preset package "${launcher[@]}"
cmake --build --preset package --parallel "$(nproc)"
(cd build/package && cpack -G DEB)
if [ $tarball = 1 ]; then deploy/tarball.sh build/package; fi
ls -l build/package/packages/rooflined*
