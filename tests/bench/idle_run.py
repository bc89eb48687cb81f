#!/usr/bin/env python3
"""A real daemon beside a simulated server, from its first start to its first ceiling.

    idle_run.py BUILD_DIR/bin [--beside COMMAND] [--seconds S] [--patience S]

1. With --beside COMMAND (a shell's: `stress-ng --stream 2`, a loop that installs packages), that runs for S seconds:
   nothing may be adopted, and the daemon has to say why not.
2. Then the machine is left alone. Into the first measurement a request is sent: it has to end it, and to show in the
   histogram of abort latencies.
3. Left alone again, the daemon has to adopt a ceiling.

Wants a machine with nothing else to do, and CAP_NET_RAW. Exits with 1 where one of this fails.
"""

import argparse
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
from processes import Processes, answers, free_ports, get  # noqa: E402


class Daemon:
    def __init__(self, web):
        self.url = f"http://127.0.0.1:{web}"

    def metrics(self):
        return {key: float(value) for key, value in
                re.findall(r"^(rooflined_\S+) (\S+)$", get(f"{self.url}/metrics"), re.M)}

    def results(self):
        """Measurements by their result."""
        return {key.split('"')[1]: int(value) for key, value in self.metrics().items()
                if key.startswith("rooflined_ceiling_measurements_total")}

    def blocked(self):
        return [key.split('"')[1] for key, value in self.metrics().items()
                if key.startswith("rooflined_idle_blocked") and value == 1]


def probe_runs(daemon):
    """Whether the process has a child: it starts no others."""
    task = pathlib.Path(f"/proc/{daemon.pid}/task")
    return any((thread / "children").read_text().strip() for thread in task.iterdir())


def beside(command, seconds, daemon):
    other = subprocess.Popen(command, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
    reasons = collections.Counter()
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        time.sleep(1)
        reasons.update(daemon.blocked() or ["none"])
        if other.poll() is not None:
            sys.exit(f"{command}: ended with {other.returncode} after {time.monotonic() - began:.0f} s")
    results = daemon.results()
    os.killpg(other.pid, signal.SIGTERM)
    other.wait()
    print(f"beside {command}: results {results} in {seconds:.0f} s; not idle because of "
          f"{', '.join(f'{reason} ({count} s)' for reason, count in reasons.most_common())}", flush=True)
    return results["adopted"] == 0 and any(reason != "none" for reason in reasons)


def request_into_probe(url):
    body = b'{"model":"m","stream":true,"max_tokens":4,"messages":[{"role":"user","content":"x"}]}'
    with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/chat/completions", body,
                                                       {"Content-Type": "application/json"}), timeout=30) as answer:
        answer.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--beside")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--patience", type=float, default=120, help="for an idle window")
    arguments = parser.parse_args()
    port, web = free_ports(2)
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        (folder / "state").mkdir()
        settings = folder / "rooflined.toml"
        settings.write_text(f'[web]\nlisten = "127.0.0.1:{web}"\n[state]\ndirectory = "{folder}/state"\n'
                            f'[capture]\nports = [{port}]\n[ceiling]\nmeasure = "always"\nidle_for = "5s"\n')
        server = f"http://127.0.0.1:{port}"
        processes.start("server", arguments.bin / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{port}", "--model",
                        "builtin:llama-3.2-1b-q8_0", "--bandwidth", "5e10", "--efficiency", "0.6")
        process = processes.start("rooflined", arguments.bin / "rooflined", "run", "--config", settings)
        daemon = Daemon(web)
        processes.wait_for("the server", lambda: answers(f"{server}/v1/models"), 20)
        processes.wait_for("the daemon", lambda: answers(f"{daemon.url}/readyz"), 20)
        quiet = not arguments.beside or beside(arguments.beside, arguments.seconds, daemon)

        began = time.monotonic()
        while not probe_runs(process):
            if time.monotonic() - began > arguments.patience:
                sys.exit(f"no measurement in {arguments.patience:.0f} s: {daemon.blocked()}")
            time.sleep(0.01)
        print(f"left alone: a measurement after {time.monotonic() - began:.0f} s", flush=True)
        time.sleep(2)
        request_into_probe(server)
        count = "rooflined_ceiling_abort_latency_seconds_count"
        processes.wait_for("the abort's latency", lambda: daemon.metrics()[count] > 0, 5)
        seen = daemon.metrics()
        print(f"a request into it: results {daemon.results()}, abort latencies {seen[count]:.0f}, sum "
              f"{1e6 * seen['rooflined_ceiling_abort_latency_seconds_sum']:.0f} us", flush=True)

        processes.wait_for("a ceiling", lambda: daemon.results()["adopted"] > 0, arguments.patience)
        seen = daemon.metrics()
        print(f"left alone: adopted {seen['rooflined_ceiling_bytes_per_second'] / 1e9:.2f} GB/s after "
              f"{time.monotonic() - began:.0f} s, median/best {seen['rooflined_ceiling_median_to_best_ratio']:.3f}; "
              f"results {daemon.results()}")
    return 0 if quiet else 1


if __name__ == "__main__":
    sys.exit(main())
