#!/usr/bin/env python3
"""Requests into running probes, beside a simulated server: design.md's bars of 1 ms and of 1.05.

    abort.py BUILD_DIR/bin [--requests N] [--ttft MS] [--size BYTES]

See abort_bench.cc for what is measured; --ttft is the time to first token that the server is set to. Wants a machine
with nothing else to do, and CAP_NET_RAW.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from processes import Processes, answers, free_ports  # noqa: E402

PROMPT_TOKENS = 64  # of a request of the simulator's client


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--ttft", type=float, default=50)
    parser.add_argument("--size", default="1GiB")
    arguments = parser.parse_args()
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder, Processes(folder) as processes:
        processes.start("server", arguments.bin / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{port}", "--model",
                        "builtin:llama-3.2-1b-q8_0", "--bandwidth", "5e12", "--efficiency", "0.6", "--prefill-rate",
                        str(PROMPT_TOKENS * 1000 / arguments.ttft))
        processes.wait_for("the server", lambda: answers(f"{url}/v1/models"), 20)
        return subprocess.run([arguments.bin / "rooflined_bench_abort", url, "--requests", str(arguments.requests),
                               "--size", arguments.size], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
