#!/usr/bin/env bash
# clang_tidy.sh BUILD_DIR [FOLDER…]: clang-tidy with the checks of .clang-tidy over the sources below the folders
# (metrics collectors config daemon), with the flags of BUILD_DIR/compile_commands.json. Exits with 77, skipped,
# without clang-tidy 14 (deploy/packages.sh says why that one).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=$1
shift
[ $# -gt 0 ] || set -- metrics collectors config daemon
if ! command -v clang-tidy-14 >/dev/null; then
  echo "skipped: clang-tidy-14 is not installed"
  exit 77
fi
# The compiler's warnings are g++'s business: clang's own (-w) take a tenth of the time. A file that is not in the
# database is not built here.
python3 - "$build" "$@" <<'PY' | xargs -r -P "$(nproc)" -n 1 clang-tidy-14 -p "$build" --quiet --extra-arg=-w
import json, os, sys
root = os.getcwd()
wanted = tuple(os.path.join(root, folder) + "/" for folder in sys.argv[2:])
for entry in json.load(open(os.path.join(sys.argv[1], "compile_commands.json"))):
    if entry["file"].startswith(wanted):
        print(entry["file"])
PY
echo "clang-tidy: clean"
