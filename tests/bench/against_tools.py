#!/usr/bin/env python3
"""Times `rooflined replay` beside tshark and tcpflow on the same capture: against_tools.py BIN_DIR [--rounds N]

CPU seconds of each process, in turn, on one core; exits with 1 where the bars do not hold: 20 times the speed of
`tshark -q -z conv,tcp`, twice that of tcpflow. Needs both programs."""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

STREAMS, TOKENS = 200, 1500
BARS = {"tshark": 20, "tcpflow": 2}


def cpu_seconds(command, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for tool in BARS:
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is not installed")
    binaries = options.binaries.resolve()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        capture = folder / "bench.pcap"
        subprocess.run([binaries / "rooflined_bench_capture", capture, str(STREAMS), str(TOKENS)], check=True)
        commands = {
            "rooflined": [binaries / "rooflined", "replay", capture, "--port", "8080", "--json"],
            "tshark": ["tshark", "-q", "-z", "conv,tcp", "-r", capture],
            "tcpflow": ["tcpflow", "-r", capture, "-o", folder / "flows"],
        }
        seconds = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                seconds[name].append(cpu_seconds(command, folder))
                shutil.rmtree(folder / "flows", ignore_errors=True)
        missed = False
        ours = seconds["rooflined"]
        print(f"{STREAMS * TOKENS} token events, {capture.stat().st_size} bytes: rooflined {statistics.median(ours):.3f} s")
        for name, bar in BARS.items():
            ratio = statistics.median(other / own for other, own in zip(seconds[name], ours))
            missed = missed or ratio < bar
            print(f"{name}: {statistics.median(seconds[name]):.3f} s, {ratio:.1f} times ours (bar {bar})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
