#!/usr/bin/env bash
# Builds the Debian package, for arm64 too, and an archive with its libraries: deploy/package.sh [OPTION]…   (--help)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=packages.sh
. "$root/deploy/packages.sh"

usage() {
  cat <<'HELP'
usage: deploy/package.sh [--tarball] [--arm] [--help]

Installs what the build needs (as root), builds the preset `package`, and writes rooflined_VERSION_ARCH.deb to
build/package/packages. The package is for the Debian release that it was built on, since it uses that release's libraries.

  --tarball   also write rooflined-VERSION-linux-ARCH.tar.gz (deploy/tarball.sh): the programs with their libraries, the unit
              and the documents, for any distribution with a C library at least as new as this one's
  --arm       instead cross-build the package for arm64 (preset `package-arm64`, in build/package-arm64/packages) and run the
              unit tests of that build under qemu. Makes this system one of two architectures: in a container, please
HELP
}

tarball=0 arm=0
while [ $# -gt 0 ]; do
  case $1 in
    --tarball) tarball=1 ;;
    --arm) arm=1 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "deploy/package.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done
if [ $tarball = 1 ] && [ $arm = 1 ]; then
  echo "deploy/package.sh: --tarball takes the libraries of the machine that it runs on, so not with --arm" >&2
  exit 2
fi

cd "$root"
launcher=()
if command -v ccache >/dev/null; then launcher+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
if [ $arm = 1 ]; then
  if [ "$(id -u)" -ne 0 ]; then
    echo "deploy/package.sh: --arm adds an architecture to the system: run as root" >&2
    exit 2
  fi
  install_missing "${packages_cross[@]}"
  install_arm64_libraries
  preset=package-arm64
  export DEB_HOST_ARCH=arm64  # dpkg-shlibdeps looks for that architecture's libraries
else
  install_missing "${packages_build[@]}" "${packages_package[@]}"
  preset=package
fi
cmake --preset $preset "${launcher[@]}"
cmake --build --preset $preset --parallel "$(nproc)"
(cd build/$preset && cpack -G DEB)
if [ $tarball = 1 ]; then deploy/tarball.sh build/$preset; fi
if [ $arm = 1 ]; then
  cmake --build --preset $preset --parallel "$(nproc)" --target unit_tests
  ctest --preset $preset --parallel "$(nproc)"
fi
ls -l build/$preset/packages/rooflined*
