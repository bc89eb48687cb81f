#!/usr/bin/env python3
"""Every header compiles alone, with the flags of its own folder.

    headers.py ROOT BUILD_DIR [--jobs N] [--all]

A header that a source of the build includes before anything else was compiled alone by the build itself; the others
are compiled here (--all: every one). Takes the flags from BUILD_DIR/compile_commands.json (of a file beside the header;
else of any file), so that a header sees what its own sources see.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

FOLDERS = ("metrics", "collectors", "config", "daemon", "tests")
# Flags that matter to the front end; warnings stay on, and are errors.
KEPT_WITH_VALUE = {"-I", "-isystem", "-D", "-include"}


def front_end_flags(command):
    kept = []
    arguments = iter(command)
    for argument in arguments:
        if argument in KEPT_WITH_VALUE:
            kept += [argument, next(arguments)]
        elif argument.startswith(("-I", "-D", "-std=", "-W", "-f", "-pedantic", "-isystem", "-m")):
            kept.append(argument)
    return kept


def included_first(entries):
    """The headers, as they are written there, that some source of the build includes before anything else."""
    names = set()
    for entry in entries:
        for line in pathlib.Path(entry["file"]).read_text().splitlines():
            if line.startswith("#"):
                if found := re.fullmatch(r'#include "(.+\.h)"', line):
                    names.add(found[1])
                break
    return names


def commands_by_folder(entries):
    folders = {}
    for entry in entries:
        command = entry.get("arguments") or shlex.split(entry["command"])
        while command and pathlib.Path(command[0]).name in ("ccache", "sccache"):
            command = command[1:]
        folders.setdefault(os.path.dirname(entry["file"]), (command[0], front_end_flags(command[1:])))
    return folders


def flags_for(header, folders):
    folder = header.parent
    while str(folder) not in folders and folder != folder.parent:
        folder = folder.parent
    return folders.get(str(folder)) or next(iter(folders.values()))


def compile_alone(header, folders):
    compiler, flags = flags_for(header, folders)
    # As an included file: `#pragma once` in a main file is itself a warning.
    source = f'#include "{header}"\n'
    result = subprocess.run([compiler, *flags, "-fsyntax-only", "-x", "c++", "-"], input=source, capture_output=True,
                            text=True, check=False)
    return result.returncode, result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    root = options.root.resolve()
    entries = json.loads((options.build / "compile_commands.json").read_text())
    folders = commands_by_folder(entries)
    headers = sorted(h for f in FOLDERS for h in (root / f).rglob("*.h") if "/data/" not in str(h))
    by_build = set() if options.all else included_first(entries)
    alone = [h for h in headers if str(h.relative_to(root)) not in by_build]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for header, (status, errors) in zip(alone, pool.map(lambda h: compile_alone(h, folders), alone)):
            if status != 0:
                failed += 1
                print(f"{header.relative_to(root)} does not compile alone:\n{errors}")
    print(f"headers: {len(headers) - len(alone)} by the build, {len(alone)} here, {failed} failed")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
