"""A ceiling that was measured earlier, for tests that are about keeping it: a busy machine gives none on demand."""

import json
import os
import re
import subprocess
import time


def cpu_model():
    text = open("/proc/cpuinfo", encoding="utf-8").read()
    found = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    if found:
        return found[1].strip()
    part = {key: re.search(rf"^CPU {key}\s*:\s*(.*)$", text, re.M)[1].strip() for key in ("implementer", "part")}
    return f"arm {part['implementer']}/{part['part']}"


def keep_ceiling(program, state, bytes_per_second):
    """Writes the state file that a measurement of this machine would have left."""
    told = subprocess.run([program, "membw", "--size", "64MB", "--threads", "1", "--json"], capture_output=True, text=True,
                          timeout=200, check=False)
    memory = int(re.search(r"MemTotal:\s*(\d+)", open("/proc/meminfo", encoding="utf-8").read())[1]) * 1024
    identity = {"cpu_model": cpu_model(), "kernel_release": os.uname().release, "memory_bytes": memory,
                "llc_bytes": json.loads(told.stdout)["llc_bytes"] or 0}
    result = {"unix_time_ns": time.time_ns(), "ceiling_bytes_per_second": bytes_per_second,
              "median_bytes_per_second": 0.97 * bytes_per_second, "kernel": "dot", "threads": 1,
              "working_set_bytes": 1 << 30, "cache_inflated": False}
    (state / "ceiling.json").write_text(json.dumps({"version": 1, "identity": identity, "results": [result]}))
