#!/usr/bin/env bash
# Builds and tests the project from a clean checkout: ./tests/run.sh [OPTION]…   (--help lists the options)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=../deploy/packages.sh
. "$root/deploy/packages.sh"

usage() {
  cat <<'HELP'
usage: tests/run.sh [--sanitizers] [--real-server] [--bench] [--arm] [--browser] [--no-lint] [--help]

Without options: installs missing packages (as root), builds the preset `dev`, and runs every test.

  --sanitizers    build the preset `asan-ubsan` instead and run its tests (everything but lint and e2e)
  --real-server   also run the daemon beside a real llama-server (tests/e2e/real_server.sh)
  --bench         also build the preset `release` and run tests/bench there
  --arm           also build the bandwidth kernels for AArch64 and run them under qemu (200 MB of packages)
  --browser       also fetch Chromium, axe-core and the types of Grafana: tests of page and dashboards (700 MB)
  --no-lint       leave out clang-tidy

Exits with 0 when everything passed.
HELP
}

preset=dev real_server=0 bench=0 arm=0 browser=0 lint=1
while [ $# -gt 0 ]; do
  case $1 in
    --sanitizers) preset=asan-ubsan lint=0 ;;
    --real-server) real_server=1 ;;
    --bench) bench=1 ;;
    --arm) arm=1 ;;
    --browser) browser=1 ;;
    --no-lint) lint=0 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "tests/run.sh: unknown option $1 (see --help)" >&2; exit 2 ;;
  esac
  shift
done

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

step "packages"
install_missing "${packages_build[@]}" "${packages_test[@]}"
if [ $lint = 1 ] && ! command -v clang-tidy-14 >/dev/null && lint_available; then
  install_missing "${packages_lint[@]}"
fi
tools=$root/build/tools
export PATH="$PATH:$tools/usr/bin"
command -v prometheus >/dev/null || unpack_package prometheus "$tools"
# Debian 12 has promtool in the package of Prometheus, Debian 13 in one of its own.
command -v promtool >/dev/null || unpack_package promtool "$tools"
if [ $browser = 1 ]; then
  install_missing "${packages_browser[@]}"
  [ -e "$tools/node_modules/axe-core" ] || unpack_npm "$tools" "${npm_browser[@]}"
fi
if [ $arm = 1 ]; then
  install_missing "${packages_arm[@]}"
  export ROOFLINED_ARM64_LIBS=$tools/arm64/usr/lib/aarch64-linux-gnu
  [ -e "$ROOFLINED_ARM64_LIBS/libhwy.so.1" ] || unpack_arm64_package libhwy1 "$tools/arm64"
fi

cd "$root"
configure_options=()
if command -v ccache >/dev/null; then configure_options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

step "build, preset $preset"
cmake --preset "$preset" "${configure_options[@]}"
cmake --build --preset "$preset" --parallel "$(nproc)"

if [ $lint = 1 ]; then
  step "clang-tidy"
  tests/tidy/clang_tidy.sh "build/$preset" || [ $? = 77 ]  # 77: skipped
fi

if [ $bench = 1 ]; then
  step "benchmarks, preset release"
  tests/bench/run.sh
fi

if [ $real_server = 1 ]; then
  step "beside a real llama-server"
  tests/e2e/real_server.sh "build/$preset"
fi

# Last, so that the run ends with ctest's summary.
step "tests"
selection=()
# A sanitizer slows the daemon enough to move what the live tests compare.
if [ "$preset" = asan-ubsan ]; then selection=(--label-exclude '^(accuracy|e2e|tidy|bench|device)$'); else selection=(--label-exclude '^(bench|device)$'); fi
# Twice the cores: the live tests wait most of their time. What needs the machine for itself says so (RUN_SERIAL).
ctest --test-dir "build/$preset" --output-on-failure --parallel "$((2 * $(nproc)))" "${selection[@]}"
