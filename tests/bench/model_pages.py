#!/usr/bin/env python3
"""A probe takes no page of a mapped model, even where hardly any memory is left free beside it.

    model_pages.py ROOFLINED [--model-bytes N] [--spare-bytes N] [--group-bytes N | --machine]

Maps a file as an inference server maps its model, makes it resident, and runs `rooflined membw` with a working set that
leaves 200 MB. The same pages must be resident (mincore(2)) afterwards, and the probe must have filled its working set.

By default all of it runs in a memory control group that is just large enough, where the kernel would take the model's
pages at its limit; that wants root. With --machine the probe takes all free memory of the machine but the 200 MB: not
for a machine with other work. Exits with 1 where a page is gone or the probe did not run.
"""

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile

PAGE = mmap.PAGESIZE
SECONDS = 30  # then the probe is interrupted: with tens of gigabytes a sweep takes minutes
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


class Group:
    """A memory control group of version 1 or 2 beside that of this process, which moves into it. Context manager."""

    def __init__(self):
        own = dict(line.split(":", 2)[1:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines())
        first = "memory" in own
        root = "/sys/fs/cgroup/memory" if first else "/sys/fs/cgroup"
        self.home = pathlib.Path(root + own["memory" if first else ""])
        self.folder = self.home.parent / f"model-pages-{os.getpid()}"
        self.limit, self.usage = (("memory.limit_in_bytes", "memory.usage_in_bytes") if first else
                                  ("memory.max", "memory.current"))

    def __enter__(self):
        self.folder.mkdir()
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))
        return self

    def __exit__(self, *_):
        (self.home / "cgroup.procs").write_text(str(os.getpid()))
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def leave(self, room):
        """Sets the limit so that this much may be used beyond what is used now; the kernel counts in pages."""
        used = int((self.folder / self.usage).read_text())
        (self.folder / self.limit).write_text(str((used + room) // PAGE * PAGE))


def map_model(file, size):
    for _ in range(size >> 20):
        file.write(b"\x5a" * (1 << 20))
    file.flush()
    os.fsync(file.fileno())
    # Private and writable, so that ctypes may take its address; nothing is written.
    mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    for at in range(0, len(mapped), PAGE):
        mapped[at]
    return mapped


def run_probe(rooflined, size):
    """What it said, and whether it held all of its working set."""
    probe = subprocess.Popen([rooflined, "membw", "--size", str(size), "--json"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    try:
        out, said = probe.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        probe.send_signal(signal.SIGINT)
        out, said = probe.communicate()
    if out:
        said = f"{json.loads(out)['verdict']}, {json.loads(out)['working_set_bytes'] / 1e9:.2f} GB read"
    held = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return f"exit {probe.returncode} {said.strip()}", held >= size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rooflined", type=pathlib.Path)
    parser.add_argument("--model-bytes", type=int, default=1 << 30)
    parser.add_argument("--spare-bytes", type=int, default=200_000_000)
    parser.add_argument("--group-bytes", type=int, default=1 << 30, help="the working set in the control group")
    parser.add_argument("--machine", action="store_true")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        group = None if arguments.machine else stack.enter_context(Group())
        mapped = map_model(stack.enter_context(tempfile.NamedTemporaryFile(dir="/var/tmp")), arguments.model_bytes)
        size = arguments.group_bytes
        if group:
            group.leave(size + arguments.spare_bytes)
        else:
            size = free_above_watermarks() - arguments.spare_bytes
        before = resident_pages(mapped)
        said, held = run_probe(arguments.rooflined, size)
        after = resident_pages(mapped)
        mapped.close()
    gone = sum(1 for was, stays in zip(before, after) if was and not stays)
    print(f"probe of {size / 1e9:.2f} GB, {arguments.spare_bytes / 1e6:.0f} MB left: {said}"
          f"{'' if held else '; it never held its working set'}; {sum(before)} of {len(before)} pages of the model "
          f"resident before, {gone} gone after")
    return 1 if gone or not held or not all(before) else 0


if __name__ == "__main__":
    sys.exit(main())
