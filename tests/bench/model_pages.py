#!/usr/bin/env python3
"""A probe takes no page of a mapped model, even where hardly any memory is left free beside it.

    model_pages.py ROOFLINED [--model-bytes N] [--spare-bytes N] [--seconds S]

Maps a file as an inference server maps its model, makes it resident, and runs `rooflined membw` with a working set that
leaves 200 MB of the machine's free memory. The same pages must be resident (mincore(2)) afterwards. Takes nearly all
free memory for some seconds: not for a machine with other work. Exits with 1 where a page is gone.
"""

import argparse
import ctypes
import mmap
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)


def resident_pages(mapped):
    """One byte a page: its lowest bit says whether it is in memory."""
    states = ctypes.create_string_buffer(len(mapped) // PAGE)
    view = ctypes.c_char.from_buffer(mapped)
    failed = libc.mincore(ctypes.addressof(view), len(mapped), states)
    del view
    assert failed == 0, ctypes.get_errno()
    return bytes(state & 1 for state in states.raw)


def free_above_watermarks():
    """As collectors/ceiling/working_set.cc counts it."""
    free = int(re.search(r"MemFree:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024
    kept = 0
    for zone in re.split(r"^Node ", pathlib.Path("/proc/zoneinfo").read_text(), flags=re.M)[1:]:
        pages = int(re.search(r"pages free\s+(\d+)", zone).group(1))
        high = int(re.search(r"^\s+high\s+(\d+)", zone, re.M).group(1))
        protection = int(re.search(r"protection: \((.*)\)", zone).group(1).split(",")[-1])
        kept += min(pages, high + protection)
    return free - kept * PAGE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rooflined", type=pathlib.Path)
    parser.add_argument("--model-bytes", type=int, default=1 << 30)
    parser.add_argument("--spare-bytes", type=int, default=200_000_000)
    parser.add_argument("--seconds", type=float, default=30, help="then the probe is interrupted")
    arguments = parser.parse_args()
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as model:
        for _ in range(arguments.model_bytes >> 20):
            model.write(b"\x5a" * (1 << 20))
        model.flush()
        # Private and writable, so that ctypes may take its address; nothing is written.
        mapped = mmap.mmap(model.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        for at in range(0, len(mapped), PAGE):
            mapped[at]
        before = resident_pages(mapped)
        size = free_above_watermarks() - arguments.spare_bytes
        probe = subprocess.Popen([arguments.rooflined, "membw", "--size", str(size), "--json"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, said = probe.communicate(timeout=arguments.seconds)
        except subprocess.TimeoutExpired:
            probe.send_signal(signal.SIGINT)
            _, said = probe.communicate()
        after = resident_pages(mapped)
        mapped.close()
    gone = sum(1 for was, stays in zip(before, after) if was and not stays)
    print(f"probe of {size / 1e9:.2f} GB, {arguments.spare_bytes / 1e6:.0f} MB left free: exit {probe.returncode} "
          f"{said.strip()}; {sum(before)} of {len(before)} pages of the model resident before, {gone} gone after")
    return 1 if gone else 0


if __name__ == "__main__":
    sys.exit(main())
