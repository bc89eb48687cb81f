#!/usr/bin/env bash
# Builds and runs the benchmarks on one core: ./tests/bench/run.sh [BENCHMARK OPTIONS]
#
# Memory comes first and in a process of its own: what the other ones leave on the heap would be in its figure.
set -euo pipefail
cd "$(dirname "$0")/../.."

cmake --preset release >/dev/null
cmake --build --preset release --target rooflined_bench >/dev/null
bench=build/release/bin/rooflined_bench
core=$(($(nproc) - 1))
taskset -c "$core" "$bench" --benchmark_filter=memory "$@"
taskset -c "$core" "$bench" --benchmark_filter=-memory "$@"
