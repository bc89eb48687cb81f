#!/usr/bin/env python3
"""The ceiling against other programs' figures for the same memory: likwid-bench's loads and numpy's reductions.

    membw_compare.py ROOFLINED [--size BYTES] [--rounds N] [--bar RATIO]

All run in turn with the same working set, several rounds, since a shared host changes its speed from one minute to the
next. Prints every figure, and for each round the ratio of ours to the best of the others; their median is held against
the bar (0.97: design.md section 7). What is not installed is left out and said so.
"""

import argparse
import concurrent.futures
import json
import os
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


def likwid(test, size, threads):
    done = subprocess.run(["likwid-bench", "-t", test, "-W", f"N:{size // 1000}kB:{threads}"], capture_output=True,
                          text=True, check=False)
    found = re.search(r"^MByte/s:\s+([0-9.]+)", done.stdout, re.MULTILINE)
    return float(found.group(1)) * 1e6 if found else None


def numpy_child(operation, size, threads):
    """Runs in a process of its own: prints bytes per second of the best pass, each thread on its own part."""
    import numpy  # pylint: disable=import-outside-toplevel

    reduce = {"sum": numpy.sum, "max": numpy.max, "bitwise_or": numpy.bitwise_or.reduce}[operation]
    parts = [numpy.random.default_rng(i).integers(0, 1 << 60, size // 8 // threads) for i in range(threads)]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        best = 0.0
        for _ in range(NUMPY_PASSES):
            start = time.perf_counter()
            list(pool.map(reduce, parts))
            best = max(best, sum(part.nbytes for part in parts) / (time.perf_counter() - start))
    print(best)


def python_with_numpy():
    for python in (sys.executable, "/usr/bin/python3", "python3"):
        if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def numpy_processes(python, operation, size, processes, threads):
    command = [python, os.path.abspath(__file__), "--numpy-child", operation, str(size // processes), str(threads)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    rates = [process.communicate()[0] for process in running]
    return sum(float(rate) for rate in rates) if all(rates) else None


def others(size, threads):
    """Yields (name, function giving bytes per second or None)."""
    if shutil.which("likwid-bench"):
        for test in ("load_avx", "load_avx512"):
            for count in sorted({1, threads}):
                yield f"likwid {test} x{count}", lambda t=test, c=count: likwid(t, size, c)
    else:
        print("likwid-bench: not installed, left out")
    python = python_with_numpy()
    if python:
        for operation in ("sum", "max", "bitwise_or"):
            yield f"numpy {operation}", lambda o=operation: numpy_processes(python, o, size, 1, 1)
            yield f"numpy {operation}, {threads} threads", lambda o=operation: numpy_processes(python, o, size, 1, threads)
        yield f"numpy sum, {threads} processes", lambda: numpy_processes(python, "sum", size, threads, 1)
    else:
        print("numpy: not installed, left out")


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "--numpy-child":
        numpy_child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooflined")
    parser.add_argument("--size", type=int, default=2147483648)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bar", type=float, default=0.97)
    options = parser.parse_args()
    threads = len(os.sched_getaffinity(0))
    rivals = list(others(options.size, threads))
    if not rivals:
        return 77
    ratios = []
    for number in range(1, options.rounds + 1):
        print(f"round {number} (load {os.getloadavg()[0]:.1f})")
        mine = ours(options.rooflined, options.size)
        best = 0.0
        for name, measure in rivals:
            rate = measure()
            best = max(best, rate or 0.0)
            print(f"  {name:<34} " + (f"{rate / 1e9:8.2f} GB/s" if rate else "       none"))
        if mine and best:
            ratios.append(mine / best)
            print(f"  ratio to the best of the others: {ratios[-1]:.3f}")
    if not ratios:
        print("nothing to compare")
        return 1
    middle = statistics.median(ratios)
    print(f"median ratio of {len(ratios)} rounds: {middle:.3f} (bar {options.bar})")
    return 0 if middle >= options.bar else 1


if __name__ == "__main__":
    sys.exit(main())
