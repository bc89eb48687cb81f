#!/usr/bin/env python3
"""What the daemon costs beside a server on loopback, and whether it loses anything.

    live.py BIN cost     1,000 tokens/s over 200 streams: the daemon's share of one core, its memory, its losses
    live.py BIN flood    20,000 tokens/s over 200 streams: packets dropped, tokens seen against tokens sent
    live.py BIN pairs    a server's throughput with the daemon on and off, in turn: mean ratio and its 95 % bounds

BIN holds rooflined and rooflined-sim. Needs CAP_NET_RAW and a machine that does nothing else. Exits with 1 where a bar
of the contract is missed; with 77, skipped, where it cannot run.
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

STREAMS = 200
TICKS = os.sysconf("SC_CLK_TCK")
# Two-sided 95 % of Student's t for 19 degrees of freedom and more.
T_95 = 2.093


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def metric(web, name):
    """The sum over all series of that name."""
    text = processes.get(f"http://127.0.0.1:{web}/metrics")
    lines = [line for line in text.splitlines() if line.startswith((name + " ", name + "{"))]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


class Bench:
    def __init__(self, bin_folder, folder, more=""):
        self.bin = pathlib.Path(bin_folder)
        self.folder = pathlib.Path(folder)
        self.port, self.web = processes.free_ports(2)
        self.settings = self.folder / "rooflined.toml"
        self.settings.write_text(
            f'[capture]\nports = [{self.port}]\n[state]\ndirectory = "{folder}"\n[ceiling]\nmeasure = "never"\n'
            f'[web]\nlisten = "127.0.0.1:{self.web}"\n[[target]]\nname = "bench"\nport = {self.port}\n'
            f"dense_bytes_per_pass = 1e9\nkv_bytes_per_token = 1e5\n{more}", encoding="utf-8")

    def start_server(self, running, step):
        # The memory takes no time: each step is its overhead.
        running.start("server", self.bin / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{self.port}", "--model",
                      "builtin:moe-small", "--bandwidth", "1e15", "--efficiency", "1", "--max-batch", str(STREAMS), "--overhead", step)
        running.wait_for("the server", lambda: processes.answers(f"http://127.0.0.1:{self.port}/v1/models"), 20)

    def start_daemon(self, running):
        daemon = running.start("daemon", self.bin / "rooflined", "run", "--config", self.settings)
        running.wait_for("the daemon", lambda: processes.answers(f"http://127.0.0.1:{self.web}/healthz"), 20)
        return daemon

    def load(self, seconds, streams=STREAMS, tokens=100):
        answer = subprocess.run(
            [self.bin / "rooflined-sim", "load", "--url", f"http://127.0.0.1:{self.port}", "--concurrency", str(streams),
             "--duration", f"{seconds}s", "--output-tokens", str(tokens), "--json"],
            check=True, capture_output=True, text=True)
        return json.loads(answer.stdout)


def run_load(bench, step, seconds, tokens):
    with processes.Processes(bench.folder) as running:
        bench.start_server(running, step)
        daemon = bench.start_daemon(running)
        before, began = cpu_seconds(daemon.pid), time.monotonic()
        report = bench.load(seconds, tokens=tokens)
        share = (cpu_seconds(daemon.pid) - before) / (time.monotonic() - began)
        time.sleep(4)  # the ledger settles two seconds later
        sent = report["output_tokens"]
        result = {
            "tokens_per_second": report["tokens_per_second"],
            "core_share": share,
            "core_microseconds_per_token": 1e6 * share * (time.monotonic() - began - 4) / sent,
            "resident_mb": resident_mb(daemon.pid),
            "packets_dropped": metric(bench.web, "rooflined_capture_dropped_packets_total"),
            "tokens_sent": sent,
            "tokens_seen": metric(bench.web, "rooflined_output_tokens_total"),
        }
    print(json.dumps(result, indent=1))
    return result


def cost(bench):
    result = run_load(bench, "200ms", 20, 100)
    return (result["core_share"] <= 0.01 and result["packets_dropped"] == 0 and
            result["tokens_seen"] == result["tokens_sent"] and result["resident_mb"] <= 30)


def flood(bench):
    result = run_load(bench, "10ms", 15, 1000)
    return result["packets_dropped"] == 0 and result["tokens_seen"] == result["tokens_sent"]


def pairs(bench, count, seconds):
    ratios, shares = [], []
    for number in range(count):
        speed = {}
        for on in ((True, False) if number % 2 == 0 else (False, True)):
            with processes.Processes(bench.folder) as running:
                bench.start_server(running, "5ms")
                daemon = bench.start_daemon(running) if on else None
                before, began = (cpu_seconds(daemon.pid) if on else 0), time.monotonic()
                report = bench.load(seconds, streams=8, tokens=200)
                speed[on] = report["tokens_per_second"]
                if on:
                    shares.append((cpu_seconds(daemon.pid) - before) / (time.monotonic() - began) / os.cpu_count())
        ratios.append(speed[True] / speed[False])
        print(f"pair {number + 1}: {speed[True]:.1f} / {speed[False]:.1f} = {ratios[-1]:.4f}", flush=True)
    mean = statistics.mean(ratios)
    margin = T_95 * statistics.stdev(ratios) / len(ratios) ** 0.5
    machine = statistics.mean(shares)
    print(f"ratio {mean:.4f}, 95 % from {mean - margin:.4f} to {mean + margin:.4f}; daemon {machine:.4%} of the machine")
    return mean + margin >= 0.995 and machine <= 0.005


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("what", choices=["cost", "flood", "pairs"])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    processes.require_packet_sockets()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.bin, folder)
        if options.what == "pairs":
            good = pairs(bench, options.pairs, options.seconds)
        else:
            good = cost(bench) if options.what == "cost" else flood(bench)
    print("within the bar" if good else "OUTSIDE the bar")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
