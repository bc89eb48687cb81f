#!/usr/bin/env bash
# clang_format.sh ROOT: every C++ file is formatted as .clang-format says. Only with clang-format 14 (deploy/packages.sh
# says why); exits with 77, skipped, where it is not there.
set -euo pipefail
cd "$1"
if ! command -v clang-format-14 >/dev/null; then
  echo "skipped: clang-format-14 is not installed"
  exit 77
fi
find metrics collectors config daemon tests \( -name '*.cc' -o -name '*.h' \) -not -path '*/data/*' -print0 |
  xargs -0 clang-format-14 --dry-run -Werror
