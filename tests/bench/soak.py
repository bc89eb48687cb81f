#!/usr/bin/env python3
"""Half an hour at 20,000 tokens/s: does the daemon stay as it was?

    soak.py BIN [--minutes N] [--step DURATION]

BIN holds rooflined and rooflined-sim. 200 streams on loopback, a scrape every ten seconds. Between the second and the
last fifth of the time (the first fills the windows) resident memory grows by no more than 3 %, threads and file
descriptors not at all, and a scrape takes no more than half as long again. No packet is dropped, and the tokens seen
are the tokens sent. Needs CAP_NET_RAW. Exits with 1 where that does not hold; with 77, skipped, where it cannot run.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import processes  # noqa: E402
from live import STREAMS, Bench, metric, resident_mb  # noqa: E402

SAMPLE_EVERY = 10
SCRAPES = 5  # of a sample: their median
SETTLED_AFTER = 4
GROWTH_MAX = {"resident MB": 1.03, "threads": 1, "descriptors": 1, "scrape ms": 1.5}


def scrape_ms(web):
    took = []
    for _ in range(SCRAPES):
        began = time.monotonic()
        processes.get(f"http://127.0.0.1:{web}/metrics")
        took.append(1e3 * (time.monotonic() - began))
    return statistics.median(took)


def sample(pid, web):
    return {
        "resident MB": resident_mb(pid),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "scrape ms": scrape_ms(web),
    }


def soak(bench, seconds, step):
    samples = []
    with processes.Processes(bench.folder) as running:
        bench.start_server(running, step)
        daemon = bench.start_daemon(running)
        load = running.start("load", bench.bin / "rooflined-sim", "load", "--url", f"http://127.0.0.1:{bench.port}", "--concurrency",
                             STREAMS, "--duration", f"{seconds}s", "--output-tokens", 1000, "--json")
        began = time.monotonic()
        while load.poll() is None:
            samples.append(sample(daemon.pid, bench.web))
            if len(samples) % 6 == 1:
                shown = ", ".join(f"{name} {value:.1f}" for name, value in samples[-1].items())
                seen = metric(bench.web, "rooflined_output_tokens_total")
                print(f"{time.monotonic() - began:6.0f} s: {seen:.0f} tokens, {shown}", flush=True)
            try:
                load.wait(SAMPLE_EVERY)
            except subprocess.TimeoutExpired:
                continue
        assert load.returncode == 0, f"the client ended with {load.returncode}"
        time.sleep(SETTLED_AFTER)
        seen = metric(bench.web, "rooflined_output_tokens_total")
        dropped = metric(bench.web, "rooflined_capture_dropped_packets_total")
    told = (bench.folder / "load.log").read_text()
    return samples, json.loads(told[told.index("{"):]), seen, dropped


def judge(samples, sent, seen, dropped):
    fifth = len(samples) // 5
    good = True
    for name, growth_max in GROWTH_MAX.items():
        before = statistics.median(each[name] for each in samples[fifth:2 * fifth])
        after = statistics.median(each[name] for each in samples[-fifth:])
        held = after <= growth_max * before
        good = good and held
        print(f"{name}: {before:.2f}, then {after:.2f}: {'flat' if held else f'GREW by more than {growth_max - 1:.0%}'}")
    print(f"tokens sent {sent:.0f}, seen {seen:.0f}; packets dropped {dropped:.0f}")
    return good and seen == sent and dropped == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--minutes", type=float, default=30, help="at least 25")
    parser.add_argument("--step", default="10ms", help="of the simulated server: 200 streams make 200 tokens in one")
    arguments = parser.parse_args()
    if arguments.minutes < 25:
        parser.error("--minutes: at least 25, the first fifth of which fills the windows of five minutes")
    processes.require_packet_sockets()
    with tempfile.TemporaryDirectory() as folder:
        # On a busy machine the daemon takes longer over a packet, and would leave flows out to stay cheap.
        bench = Bench(arguments.bin, folder, "[limits]\ncpu = 1\n")
        samples, report, seen, dropped = soak(bench, round(60 * arguments.minutes), arguments.step)
    print(f"{report['tokens_per_second']:.0f} tokens/s over {arguments.minutes:g} minutes")
    return 0 if judge(samples, report["output_tokens"], seen, dropped) else 1


if __name__ == "__main__":
    sys.exit(main())
