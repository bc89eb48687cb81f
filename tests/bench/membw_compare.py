#!/usr/bin/env python3
"""The ceiling against other programs' figures for the same memory: likwid-bench, STREAM and numpy's reductions.

    membw_compare.py ROOFLINED [--size BYTES] [--rounds N] [--bar RATIO] [--stream PROGRAM]

All run in turn with the same working set, several rounds, since a shared host changes its speed from one minute to the
next. Prints every figure, and for each round the ratio of ours to the best of the others; their median is held against
the bar (0.97: design.md section 7). What is not installed is left out and said so.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

NUMPY_PASSES = 5


def ours(rooflined, size):
    done = subprocess.run([rooflined, "membw", "--size", str(size), "--json"], capture_output=True, text=True, check=False)
    if not done.stdout:
        print(f"  rooflined membw: {done.stderr.strip()}")
        return None
    result = json.loads(done.stdout)
    confirmation = result["confirmation"]
    if confirmation is None:
        return None
    note = "" if result["ceiling_bytes_per_second"] else f"  ({result['verdict']}: not a ceiling)"
    print(f"  {'rooflined ' + result['kernel']:<34} {confirmation['best_bytes_per_second'] / 1e9:8.2f} GB/s, "
          f"median {confirmation['median_bytes_per_second'] / 1e9:.2f}, {result['duration_seconds']:.1f} s{note}")
    return confirmation["best_bytes_per_second"]


def has_avx512():
    return " avx512f" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")


def likwid(test, size, threads):
    """The bytes that the test declares, over its time."""
    done = subprocess.run(["likwid-bench", "-t", test, "-W", f"N:{size // 1000}kB:{threads}"], capture_output=True,
                          text=True, check=False)
    found = re.search(r"^MByte/s:\s+([0-9.]+)", done.stdout, re.MULTILINE)
    return float(found.group(1)) * 1e6 if found else None


def stream(path, threads):
    """The best rates of its kernels, as the program counts bytes: lines read before they are written are not."""
    done = subprocess.run([path], capture_output=True, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"})
    return {f"STREAM {name} x{threads}": float(rate) * 1e6
            for name, rate in re.findall(r"^(Copy|Scale|Add|Triad):\s+([0-9.]+)", done.stdout, re.MULTILINE)}


def share_read(name):
    """Of the bytes that a test declares. A processor whose memory link has a lane for each direction moves more bytes
    when it writes as well than any reading can: what a decode pass can be compared with is the reading."""
    for words, share in ((("copy", "Copy", "Scale"), 1 / 2), (("stream_mem", "Add", "Triad"), 2 / 3)):
        if any(word in name for word in words):
            return share
    return 1


def numpy_child(size, threads):
    """Runs in a process of its own: prints bytes per second of the best pass of each reduction as JSON, by one thread
    and by all, each on its own part."""
    import numpy  # pylint: disable=import-outside-toplevel

    reductions = {"sum": numpy.sum, "max": numpy.max, "bitwise_or": numpy.bitwise_or.reduce}
    rates = {}
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda i: numpy.random.default_rng(i).integers(0, 1 << 60, size // 8 // threads),
                              range(threads)))
        for name, reduce in reductions.items():
            for count in sorted({1, threads}):
                rate = 0.0
                for _ in range(NUMPY_PASSES):
                    start = time.perf_counter()
                    if count == 1:
                        for part in parts:
                            reduce(part)
                    else:
                        list(pool.map(reduce, parts))
                    rate = max(rate, sum(part.nbytes for part in parts) / (time.perf_counter() - start))
                rates[f"numpy {name} x{count}"] = rate
    print(json.dumps(rates))


def numpy_rates(python, size, threads):
    command = [python, os.path.abspath(__file__), "--numpy-child", str(size), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else {}


def python_with_numpy():
    for python in (sys.executable, "/usr/bin/python3", "python3"):
        if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def others(options, threads):
    """Functions, each giving {name: bytes per second}."""
    found = []
    if shutil.which("likwid-bench"):
        suffix = "avx512" if has_avx512() else "avx"
        tests = [f"load_{suffix}", f"sum_{suffix}", f"copy_mem_{suffix}", f"stream_mem_{suffix}"]
        for test in tests:
            counts = sorted({1, threads}) if test == f"load_{suffix}" else [threads]
            for count in counts:
                found.append(lambda t=test, c=count: {f"likwid {t} x{c}": likwid(t, options.size, c)})
    else:
        print("likwid-bench: not installed, left out")
    if options.stream:
        found.append(lambda: stream(options.stream, threads))
    else:
        print("STREAM: no --stream, left out")
    python = python_with_numpy()
    if python:
        found.append(lambda: numpy_rates(python, options.size, threads))
    else:
        print("numpy: not installed, left out")
    return found


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--numpy-child":
        numpy_child(int(sys.argv[2]), int(sys.argv[3]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooflined")
    parser.add_argument("--size", type=int, default=2147483648)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bar", type=float, default=0.97)
    parser.add_argument("--stream", help="a STREAM program (stream.c) built for the same working set, three arrays in all")
    options = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    rivals = others(options, threads)
    if not rivals:
        return 77
    ratios, ratios_moved = [], []
    for number in range(1, options.rounds + 1):
        print(f"round {number} (load {os.getloadavg()[0]:.1f})")
        mine = ours(options.rooflined, options.size)
        best = best_moved = 0.0
        for measure in rivals:
            for name, rate in measure().items():
                best = max(best, (rate or 0.0) * share_read(name))
                best_moved = max(best_moved, rate or 0.0)
                print(f"  {name:<34} " + (f"{rate / 1e9:8.2f} GB/s" if rate else "       none"), flush=True)
        if mine and best:
            ratios.append(mine / best)
            ratios_moved.append(mine / best_moved)
            print(f"  ratio to the best of the others: {ratios[-1]:.3f} by bytes read, {ratios_moved[-1]:.3f} by all that "
                  "they move")
    if not ratios:
        print("nothing to compare")
        return 1
    middle = statistics.median(ratios)
    print(f"median ratio of {len(ratios)} rounds: {middle:.3f} by bytes read (bar {options.bar}), "
          f"{statistics.median(ratios_moved):.3f} by all that they move")
    return 0 if middle >= options.bar else 1


if __name__ == "__main__":
    sys.exit(main())
