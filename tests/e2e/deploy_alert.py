#!/usr/bin/env python3
"""Whether a worse build raises an alert, and one that is the same does not: deploy_alert.py ROOT BIN_DIR

Two simulated servers on different memories, the daemon, Prometheus, Alertmanager and a webhook, all real. Both servers
are restarted: `worse` goes from an efficiency of 0.60 to 0.48, `same` stays. Takes about eleven minutes; not part of the
test suite for that. What is held before the restart are two minutes of traffic, repeated in the state file until they
are the ten that a comparison needs: the daemon is restarted for it, as after an update of its own.

Prints what was noticed when; exits with 1 where `worse` raised no alert, or `same` did; with 77 where a tool is missing.
"""

import http.server
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from processes import Processes, Prometheus, answers, free_ports, get, require, require_packet_sockets

BANDWIDTH = 40e9
BEFORE, AFTER = 0.60, 0.48
SLICES_WANTED = 240  # repeated to so many: 40 minutes
NOTICED_WITHIN = 15
ALERT_WITHIN = 10 * 60
QUIET_FOR = 60  # after the alert, for the other one


class Webhook(http.server.BaseHTTPRequestHandler):
    alerts = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Webhook.alerts += [(time.monotonic(), alert["labels"]) for alert in body["alerts"] if alert["status"] == "firing"]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Target:
    def __init__(self, bench, name, device, port, efficiency_after):
        self.bench, self.name, self.device, self.port, self.efficiency_after = bench, name, device, port, efficiency_after
        self.process = self.load = None

    def settings(self):
        rated = f"rated_bytes_per_second = {BANDWIDTH:.0f}" if self.device == "gpu" else ""
        return f"""
[[target]]
name = "{self.name}"
port = {self.port}
device = "{self.device}"
model = "{self.bench.model}"
{rated}
"""

    def start(self, efficiency):
        binaries, processes = self.bench.binaries, self.bench.processes
        self.process = processes.start(f"sim-{self.name}-{efficiency}", binaries / "rooflined-sim", "serve", "--listen",
                                       f"127.0.0.1:{self.port}", "--model", self.bench.model, "--bandwidth",
                                       f"{BANDWIDTH:.0f}", "--efficiency", efficiency, "--dialect", "llama.cpp")
        processes.wait_for(self.name, lambda: answers(f"http://127.0.0.1:{self.port}/v1/models"), 20)
        self.load = processes.start(f"load-{self.name}-{efficiency}", binaries / "rooflined-sim", "load", "--url",
                                    f"http://127.0.0.1:{self.port}", "--concurrency", 4, "--duration", "3600s",
                                    "--prompt-tokens", 128, "--output-tokens", 256)

    def end(self):
        for process in (self.load, self.process):
            self.bench.end(process)


class Bench:
    def __init__(self, root, binaries, folder, processes):
        self.root, self.binaries, self.folder, self.processes = root, binaries, folder, processes
        self.web, self.prometheus, self.alertmanager, self.hook, worse, same = free_ports(6)
        self.model = folder / "model.gguf"
        subprocess.run([binaries / "rooflined-sim", "make-model", self.model, "--preset", "dense"], check=True)
        (folder / "state").mkdir()
        self.targets = [Target(self, "worse", "cpu", worse, AFTER), Target(self, "same", "gpu", same, BEFORE)]

    def end(self, process):
        self.processes.stop(process)

    def start_daemon(self):
        settings = self.folder / "rooflined.toml"
        ports = ", ".join(str(target.port) for target in self.targets)
        settings.write_text(f"""
[web]
listen = "127.0.0.1:{self.web}"
[state]
directory = "{self.folder}/state"
[capture]
interface = "lo"
ports = [{ports}]
[ceiling]
peak_bytes_per_second = {BANDWIDTH:.0f}
""" + "".join(target.settings() for target in self.targets))
        daemon = self.processes.start(f"rooflined-{time.monotonic():.0f}", self.binaries / "rooflined", "run", "--config",
                                      settings)
        self.processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{self.web}/readyz"), 20)
        return daemon

    def start_monitoring(self):
        (self.folder / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s, evaluation_interval: 5s}}
rule_files: ["{self.root}/deploy/prometheus/rooflined.rules.yml"]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["127.0.0.1:{self.alertmanager}"]}}]}}]}}
scrape_configs:
  - job_name: rooflined
    static_configs: [{{targets: ["127.0.0.1:{self.web}"]}}]
""")
        (self.folder / "alertmanager.yml").write_text(f"""
route: {{receiver: hook, group_by: [alertname, target], group_wait: 1s, group_interval: 10s}}
receivers: [{{name: hook, webhook_configs: [{{url: "http://127.0.0.1:{self.hook}/", send_resolved: false}}]}}]
""")
        threading.Thread(target=http.server.HTTPServer(("127.0.0.1", self.hook), Webhook).serve_forever, daemon=True).start()
        self.processes.start("alertmanager", "prometheus-alertmanager", f"--config.file={self.folder}/alertmanager.yml",
                             f"--storage.path={self.folder}/am", f"--web.listen-address=127.0.0.1:{self.alertmanager}",
                             "--cluster.listen-address=")
        self.processes.start("prometheus", "prometheus", f"--config.file={self.folder}/prometheus.yml",
                             f"--storage.tsdb.path={self.folder}/tsdb",
                             f"--web.listen-address=127.0.0.1:{self.prometheus}", "--log.level=warn")
        self.processes.wait_for("prometheus", Prometheus(self.prometheus).ready, 30)

    def deploys(self, target):
        state = json.loads(get(f"http://127.0.0.1:{self.web}/api/v1/state"))
        return next((entry.get("deploys", []) for entry in state["targets"] if entry["target"] == target.name), [])

    def repeat_slices(self):
        """Takes the slices of each target for earlier ones, too."""
        path = self.folder / "state" / "deploys.json"
        state = json.loads(path.read_text())
        for target in state["targets"]:
            slices = [entry.split(",") for entry in target["slices"].split(";") if entry]
            first, span = int(slices[0][0]), int(slices[-1][0]) - int(slices[0][0]) + 1
            copies = -(-SLICES_WANTED // len(slices))
            target["slices"] = "".join(
                ",".join([str(int(entry[0]) - copy * span), *entry[1:]]) + ";"
                for copy in range(copies - 1, -1, -1) for entry in slices)
            print(f"port {target['port']}: {len(slices)} slices, repeated {copies} times from {first - copies * span}")
        path.write_text(json.dumps(state))


def main():
    root, binaries = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    require("prometheus", "prometheus-alertmanager", binaries / "rooflined", binaries / "rooflined-sim")
    require_packet_sockets()
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        bench = Bench(root, binaries, pathlib.Path(name), processes)
        daemon = bench.start_daemon()
        for target in bench.targets:
            target.start(BEFORE)
        time.sleep(170)  # 30 s of settling, and a dozen slices
        bench.end(daemon)
        bench.repeat_slices()
        bench.start_daemon()
        bench.start_monitoring()
        processes.wait_for("both targets", lambda: all(bench.deploys(target) for target in bench.targets), 60)
        time.sleep(20)
        for target in bench.targets:
            assert bench.deploys(target)[-1]["generation"] == 1, "a restart of the daemon is no deploy"
            target.end()
            target.start(target.efficiency_after)
        began = time.monotonic()
        processes.wait_for("both deploys", lambda: all(bench.deploys(target)[-1]["generation"] == 2
                                                       for target in bench.targets), NOTICED_WITHIN)
        print(f"noticed within {time.monotonic() - began:.1f} s")
        processes.wait_for("the alert", lambda: Webhook.alerts, ALERT_WITHIN)
        time.sleep(QUIET_FOR)
        for target in bench.targets:
            deploy = bench.deploys(target)[-1]
            print(f"{target.name}: MBU change {deploy.get('mbu_change')}, ITL change {deploy.get('itl_change')}")
        for at, labels in Webhook.alerts:
            print(f"after {at - began:.0f} s: {labels['alertname']} of {labels.get('target')}")
        wrong = [labels for _, labels in Webhook.alerts if labels.get("target") != "worse"]
        right = [labels for _, labels in Webhook.alerts if labels["alertname"] == "RooflinedMbuDropped"]
        return 0 if right and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
