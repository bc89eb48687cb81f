#!/usr/bin/env python3
"""The metric table of the README is what the code says.

    readme_test.py README CATALOGUE [--update]

CATALOGUE prints the table. Exits with 77, skipped, where it was not built.
"""

import pathlib
import subprocess
import sys

BEGIN, END = "<!-- metrics:begin -->\n", "<!-- metrics:end -->"


def main():
    readme, catalogue = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    if not catalogue.exists():
        print(f"skipped: {catalogue} was not built")
        return 77
    table = subprocess.run([catalogue], capture_output=True, text=True, check=True).stdout.strip() + "\n"
    text = readme.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    written, tail = rest.split(END)
    if written == table:
        return 0
    if "--update" in sys.argv:
        readme.write_text(head + BEGIN + table + END + tail, encoding="utf-8")
        return 0
    print(f"the metric table of {readme} differs from the catalogue; run {' '.join(sys.argv)} --update")
    return 1


if __name__ == "__main__":
    sys.exit(main())
