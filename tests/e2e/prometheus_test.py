#!/usr/bin/env python3
"""A real Prometheus scrapes the daemon beside a simulated server: what it computes from counters is what the daemon says.

    prometheus_test.py ROOT BIN_DIR

- sum(rate(decode_bytes)) / (rate(busy_seconds) x bandwidth) is the MBU gauge, and sum(rate(decode_bytes)) / bandwidth the
  decode bandwidth ratio, each within 2 %;
- a scrape passes `promtool check metrics`;
- the recording rules of a target have data, and no alert fires on a healthy node.
Exits with 77, skipped, without prometheus or without the right to capture.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

from processes import Processes, Prometheus, answers, free_ports, get, require, require_packet_sockets

BANDWIDTH = 40e9
EFFICIENCY = 0.6
CONCURRENCY = 4
WINDOW = "30s"
WINDOW_SECONDS = 30
# The load is steady, so the mean over this long says the same of gauge and counters, whatever the phase of scrape and
# snapshot (both once a second) to each other.
COMPARED_SECONDS = 20
TOLERANCE = 0.02

def settings(folder, listen_port, server_port, model):
    path = folder / "rooflined.toml"
    path.write_text(f"""
[web]
listen = "127.0.0.1:{listen_port}"
[state]
directory = "{folder}/state"
[capture]
interface = "lo"
ports = [{server_port}]
[windows]
spans = ["{WINDOW}"]
[ceiling]
peak_bytes_per_second = {BANDWIDTH:.0f}
[[target]]
name = "chat"
port = {server_port}
model = "{model}"
device = "cpu"
""")
    (folder / "state").mkdir()
    return path


def prometheus_settings(folder, root, listen_port):
    path = folder / "prometheus.yml"
    path.write_text(f"""
global: {{scrape_interval: 1s, evaluation_interval: 5s}}
rule_files: ["{root}/deploy/prometheus/rooflined.rules.yml"]
scrape_configs:
  - job_name: rooflined
    static_configs: [{{targets: ["127.0.0.1:{listen_port}"]}}]
""")
    return path


def assert_near(what, got, wanted):
    assert got is not None and wanted is not None, f"{what}: {got} against {wanted}"
    error = abs(got / wanted - 1)
    print(f"{what}: {got:.5f} by the counters, {wanted:.5f} by the gauge, {error:.2%} apart")
    assert error <= TOLERANCE, f"{what} differs by {error:.2%}"


def check_identities(prometheus):
    end = time.time()
    start = end - COMPARED_SECONDS
    read = f"sum(rate(rooflined_decode_bytes_total[{WINDOW}]))"
    bandwidth = "max(rooflined_target_bandwidth_bytes_per_second)"
    busy = f"sum(rate(rooflined_decode_busy_seconds_total[{WINDOW}]))"
    assert_near("MBU", prometheus.mean(f"{read} / ({busy} * {bandwidth})", start, end),
                prometheus.mean("rooflined_mbu_ratio", start, end))
    assert_near("decode bandwidth ratio", prometheus.mean(f"{read} / {bandwidth}", start, end),
                prometheus.mean("rooflined_decode_bandwidth_ratio", start, end))
    sequences = f"sum(rate(rooflined_decode_sequence_seconds_total[{WINDOW}]))"
    assert_near("batch", prometheus.mean(f"{sequences} / {busy}", start, end),
                prometheus.mean("rooflined_batch_size", start, end))
    assert_near("tokens/s", prometheus.mean(f"sum(rate(rooflined_output_tokens_total[{WINDOW}]))", start, end),
                prometheus.mean("rooflined_tokens_per_second", start, end))


def check_lint(url):
    scrape = get(url)
    lint = subprocess.run(["promtool", "check", "metrics"], input=scrape, capture_output=True, text=True, check=False)
    print(f"a scrape of one target: {len(scrape)} bytes")
    assert lint.returncode == 0 and not lint.stderr, f"promtool check metrics: {lint.stdout}{lint.stderr}"


def check_rules(prometheus):
    for record in ("tokens_per_second", "decode_busy", "batch_size", "itl_seconds", "decode_bytes_per_second", "mbu"):
        assert prometheus.query(f"target:rooflined_{record}:rate5m"), f"recording rule {record} has no data"
    firing = prometheus.query('ALERTS{alertstate="firing"}')
    assert not firing, f"alerts fire on a healthy node: {firing}"


def main():
    root, binaries = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    require("prometheus", "promtool", binaries / "rooflined", binaries / "rooflined-sim")
    require_packet_sockets()
    server_port, listen_port, prometheus_port = free_ports(3)
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        model = folder / "model.gguf"
        subprocess.run([binaries / "rooflined-sim", "make-model", model, "--preset", "dense"], check=True)
        processes.start("sim", binaries / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{server_port}", "--model", model,
                        "--bandwidth", f"{BANDWIDTH:.0f}", "--efficiency", EFFICIENCY, "--dialect", "llama.cpp")
        processes.start("rooflined", binaries / "rooflined", "run", "--config",
                        settings(folder, listen_port, server_port, model))
        processes.start("prometheus", "prometheus", f"--config.file={prometheus_settings(folder, root, listen_port)}",
                        f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{prometheus_port}",
                        "--log.level=warn")
        base = f"http://127.0.0.1:{listen_port}"
        prometheus = Prometheus(prometheus_port)
        processes.wait_for("the daemon", lambda: answers(base + "/readyz"), 20)
        processes.wait_for("the server", lambda: answers(f"http://127.0.0.1:{server_port}/v1/models"), 20)
        processes.wait_for("prometheus", prometheus.ready, 30)
        processes.start("load", binaries / "rooflined-sim", "load", "--url", f"http://127.0.0.1:{server_port}",
                        "--concurrency", CONCURRENCY, "--duration", "600s", "--prompt-tokens", 128, "--output-tokens", 64)
        processes.wait_for("a first MBU", lambda: prometheus.query("rooflined_mbu_ratio"), 30)
        first = time.monotonic()
        span = WINDOW_SECONDS + COMPARED_SECONDS + 5
        processes.wait_for("a full window", lambda: time.monotonic() - first > span, span + 5)
        check_identities(prometheus)
        check_lint(base + "/metrics")
        check_rules(prometheus)
    return 0


if __name__ == "__main__":
    sys.exit(main())
