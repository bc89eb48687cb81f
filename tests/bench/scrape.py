#!/usr/bin/env python3
"""What a scrape costs with 32 targets: scrape.py BIN_DIR [--targets N] [--scrapes N]

Size plain and gzipped, CPU of the daemon for each gzipped scrape (its clock ticks over many of them, less what it takes
anyway), and the same for /api/v1/state. The bars: 15 kB a target plain; 32 targets 40 kB gzipped and 10 ms of CPU. Exits with 1
where one is not met. Wants a release build and a machine with little else to do."""

import argparse
import gzip
import os
import pathlib
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

import many_targets  # noqa: E402
from processes import Processes  # noqa: E402

PLAIN_PER_TARGET_MAX = 15_000
GZIPPED_MAX = 40_000
CPU_MS_MAX = 10


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fetch(url, gzipped):
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"} if gzipped else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def cpu_each(process, url, count):
    """Milliseconds of CPU for one gzipped answer, beyond what the daemon takes in as long a time without any."""
    began, spent = time.monotonic(), cpu_seconds(process)
    for _ in range(count):
        fetch(url, True)
    took, spent = time.monotonic() - began, cpu_seconds(process) - spent
    idle = cpu_seconds(process)
    time.sleep(took)
    idle = cpu_seconds(process) - idle
    return 1e3 * (spent - idle) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--targets", type=int, default=32)
    parser.add_argument("--scrapes", type=int, default=300)
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        web, _, daemon = many_targets.start(processes, options.binaries.resolve(), pathlib.Path(name), options.targets)
        base = f"http://127.0.0.1:{web}"
        plain = len(fetch(f"{base}/metrics", False)) / options.targets
        gzipped = fetch(f"{base}/metrics", True)
        assert gzip.decompress(gzipped).count(b"rooflined_target_up{") == options.targets
        cpu = cpu_each(daemon, f"{base}/metrics", options.scrapes)
        state = fetch(f"{base}/api/v1/state", True)
        state_cpu = cpu_each(daemon, f"{base}/api/v1/state", options.scrapes)
        for what, value, most, unit in (("plain, a target", plain, PLAIN_PER_TARGET_MAX, "bytes"),
                                        ("gzipped", len(gzipped), GZIPPED_MAX, "bytes"), ("CPU of a gzipped scrape", cpu, CPU_MS_MAX, "ms")):
            met = met and value <= most
            print(f"{options.targets} targets, {what}: {value:.1f} {unit}, at most {most}: {'met' if value <= most else 'NOT MET'}")
        print(f"{options.targets} targets, /api/v1/state: {len(state)} bytes gzipped, {state_cpu:.1f} ms of CPU")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
