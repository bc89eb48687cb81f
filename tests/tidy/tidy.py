#!/usr/bin/env python3
"""Holds the tree against its own rules: who may include whom, how long a file may be, what no file may contain.

    tidy.py ROOT

Prints one line for each breach, as file:line: message, and exits with 1 if there was any.
"""

import pathlib
import re
import sys

LINES_MAX = 400  # a .cc or .h file: one room, one purpose

# The customer fixed the top level. Dot-files and the build folder are free.
TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md",
    "collectors", "config", "daemon", "deploy", "metrics", "systemd", "tests",
}
NOT_SOURCES = {"build", ".git", ".cache", "__pycache__"}

# fmt stands in for <format>, which g++ 12 does not have: whoever may include metrics/base may format.
FORMAT = "fmt"

# Third-party headers by library. What matches none of these and has no folder of ours in front belongs to the standard
# library or to the operating system.
LIBRARIES = {
    FORMAT: r"fmt/",
    "spdlog": r"spdlog/",
    "CLI11": r"CLI/",
    "prometheus-cpp": r"prometheus/",
    "cpp-httplib": r"httplib\.h",
    "nlohmann/json": r"nlohmann/",
    "OpenSSL": r"openssl/",
    "libpcap": r"pcap",
    "simdjson": r"simdjson",
    "zlib": r"zlib\.h",
    "Highway": r"hwy/",
    "libnuma": r"numa",
    "toml++": r"toml\+\+|toml\.hpp",
    "libsystemd": r"systemd/",
    "Google Benchmark": r"benchmark/",
    "Catch2": r"catch2/",
}

# folder → (folders of ours, libraries). The longest folder that matches a file is its own; a folder may always include
# itself. None: everything. Nobody includes daemon/ but daemon/ and tests/.
MODULES = {
    "metrics/base": (set(), set()),
    "metrics": ({"metrics/base"}, set()),
    "metrics/export": ({"metrics"}, {"prometheus-cpp", "cpp-httplib", "nlohmann/json", "OpenSSL"}),
    "collectors/tap": ({"metrics"}, {"libpcap", "simdjson", "zlib"}),
    "collectors/ceiling": ({"metrics"}, {"Highway", "libnuma"}),
    "collectors/model": ({"metrics"}, {"nlohmann/json"}),
    "collectors/server": ({"metrics"}, {"cpp-httplib", "nlohmann/json"}),
    "config": ({"metrics/base"}, {"toml++"}),
    "daemon": (None, None),
    "tests": (None, None),
}
# Whoever may include `metrics` may include what lies in it, save the exporter.
IMPLIED = {"metrics": {"metrics/base"}}

# The pure stages: no clock, no socket, no file. These headers of the C and C++ libraries would let one in.
PURE = {"metrics"}
IMPURE_HEADER = re.compile(r"(sys|linux|net|netinet|arpa)/|unistd\.h|fcntl\.h|dirent\.h|poll\.h|time\.h|fstream|filesystem")

BANNED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
TEXT_SUFFIXES = {".cc", ".h", ".py", ".sh", ".txt", ".cmake", ".toml", ".yml", ".yaml", ".md", ".service", ".conf"}


def module_of(path):
    """The longest key of MODULES that is a folder of `path`, or None."""
    parts = path.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        folder = "/".join(parts[:length])
        if folder in MODULES:
            return folder
    return None


def library_of(header):
    for name, pattern in LIBRARIES.items():
        if re.match(pattern, header):
            return name
    return None


def include_fault(own, header):
    """What is wrong with `header` in a file of the module `own`, or None."""
    folders, libraries = MODULES[own]
    target = module_of(header)
    if target is not None:
        if target == own or folders is None:
            return None
        allowed = set(folders)
        for folder in folders:
            allowed |= IMPLIED.get(folder, set())
        return None if target in allowed else f"{own}/ may not include {target}/"
    library = library_of(header)
    if library is not None:
        if libraries is None or library in libraries or library == FORMAT:
            return None
        return f"{own}/ may not include {library}"
    if own in PURE and IMPURE_HEADER.match(header):
        return f"{own}/ is pure: no clock, file or socket ({header})"
    return None


def check_source(path, lines, report):
    if len(lines) > LINES_MAX:
        report(path, LINES_MAX + 1, f"{len(lines)} lines, at most {LINES_MAX}: split it by purpose")
    own = module_of(path)
    if own is None:
        report(path, 1, "belongs to no folder of the include table in tests/tidy/tidy.py")
        return
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1) or match.group(2)
        if match.group(1) and module_of(header) is None and library_of(header) is None:
            report(path, number, f'"{header}" is not named from the root of the tree')
        fault = include_fault(own, header)
        if fault:
            report(path, number, fault)
    if path.endswith(".h") and "#pragma once" not in lines:
        report(path, 1, "a header without #pragma once")


def check_text(path, lines, report):
    for number, line in enumerate(lines, 1):
        if path.endswith((".cc", ".h", ".py", ".sh")) and "\t" in line:
            report(path, number, "tab")
        if line != line.rstrip() and not path.endswith(".md"):
            report(path, number, "trailing blank")
        if BANNED.search(line) and not path.startswith("tests/tidy/"):
            report(path, number, f"banned word: {BANNED.search(line).group(1)}")


def files_below(root):
    for entry in sorted(root.iterdir()):
        if entry.name in NOT_SOURCES:
            continue
        if entry.is_dir():
            yield from files_below(entry)
        elif entry.is_file():
            yield entry


def check_tree(root, report):
    for entry in sorted(root.iterdir()):
        name = entry.name
        if name not in TOP_LEVEL and name not in NOT_SOURCES and not name.startswith("."):
            report(name, 1, "not part of the agreed top level")
    for file in files_below(root):
        path = file.relative_to(root).as_posix()
        # Test data are bytes from outside: a capture, a model file, a case with blanks that matter.
        if file.suffix not in TEXT_SUFFIXES or "/data/" in path or "/corpus/" in path:
            continue
        text = file.read_text(encoding="utf-8")
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        elif text:
            report(path, len(lines), "no newline at the end")
        check_text(path, lines, report)
        if file.suffix in {".cc", ".h"}:
            check_source(path, lines, report)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    breaches = []
    check_tree(root, lambda path, line, message: breaches.append(f"{path}:{line}: {message}"))
    for breach in breaches:
        print(breach)
    print(f"tidy: {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
