#!/usr/bin/env python3
"""A fleet on one machine: fleet.py ROOT BIN_DIR [--daemons N]

Fifty daemons, each on an address of its own (127.0.1.x:10074), watch five simulated servers; one real Prometheus scrapes them all
by the shipped rules, and another takes everything from it through the shipped federation. Prints, and holds against the
truth: daemons that answer, tokens over the fleet, MBU of the fleet, builds by model; the same at the second Prometheus. Wants
prometheus in the PATH and the right to capture; takes two minutes and some 1.5 GB."""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))

import many_targets  # noqa: E402
from processes import Processes, Prometheus, answers, free_ports, get, require, require_packet_sockets  # noqa: E402

SERVERS = 5
EFFICIENCY = 0.6
BANDWIDTH = 200e9  # of the simulated memory
# Slow enough for two cores that also run 57 processes.
TOKENS = 200
MODELS = ("dense", "moe")


def daemon_settings(folder, address, port):
    folder.mkdir()
    (folder / "state").mkdir()
    path = folder / "rooflined.toml"
    path.write_text(f"""
[web]
listen = "{address}"
[state]
directory = "{folder}/state"
[capture]
interface = "lo"
ports = [{port}]
[ceiling]
peak_bytes_per_second = {BANDWIDTH:.0f}
""")
    return path


def start_servers(processes, binaries, folder):
    ports = free_ports(SERVERS)
    for index, port in enumerate(ports):
        # Two models: nodes that serve the same one have the same fingerprint.
        preset = MODELS[index % len(MODELS)]
        model = folder / f"{preset}.gguf"
        if not model.exists():
            subprocess.run([binaries / "rooflined-sim", "make-model", model, "--preset", preset], check=True)
        processes.start(f"sim-{index}", binaries / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{port}", "--model", model,
                        "--bandwidth", f"{BANDWIDTH:.0f}", "--efficiency", EFFICIENCY, "--dialect", "llama.cpp")
        processes.wait_for("a server", lambda port=port: answers(f"http://127.0.0.1:{port}/v1/models"), 20)
    return ports


def site_settings(folder, root, addresses):
    path = folder / "site.yml"
    text = (root / "deploy/prometheus/prometheus.yml").read_text()
    text = text.replace('["127.0.0.1:10074"]', json.dumps(addresses)).replace("rooflined.rules.yml", f"{root}/deploy/prometheus/rooflined.rules.yml")
    path.write_text(re.sub(r"_interval: 15s", "_interval: 5s", text))
    return path


def global_settings(folder, root, port):
    path = folder / "global.yml"
    text = (root / "deploy/prometheus/federation.yml").read_text()
    text = re.sub(r'targets: \[.*\]', f'targets: ["127.0.0.1:{port}"]', text)
    text = text.replace("rooflined.rules.yml", f"{root}/deploy/prometheus/rooflined.rules.yml")
    path.write_text(re.sub(r"_interval: 30s", "_interval: 5s", text))
    return path


def start_prometheus(processes, name, settings, folder, port):
    processes.start(name, "prometheus", f"--config.file={settings}", f"--storage.tsdb.path={folder}/{name}",
                    f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn")
    prometheus = Prometheus(port)
    processes.wait_for(name, prometheus.ready, 60)
    return prometheus


def value(prometheus, expression):
    found = prometheus.query(expression)
    assert len(found) == 1, f"{expression}: {found}"
    return found[0][1]


def hold(what, got, wanted, tolerance=0.0):
    print(f"{what}: {got:g}, in truth {wanted:g}")
    assert abs(got - wanted) <= tolerance * abs(wanted), what


def ask_until(ports, stop, asked):
    """Each server is asked again and again, one request at a time; the words are the same, so the servers take turns."""
    while not stop.is_set():
        for index, port in enumerate(ports):
            many_targets.ask(port, TOKENS)
            asked[index] += 1


def check(name, prometheus, count, per_server):
    hold(f"{name}: daemons that answer", value(prometheus, "count(rooflined_build_info)"), count)
    hold(f"{name}: targets", value(prometheus, "sum(rooflined_target_up)"), count)
    seen = sum(per_server[index % SERVERS] for index in range(count))
    hold(f"{name}: output tokens of the fleet", value(prometheus, "sum(rooflined_output_tokens_total)"), seen * TOKENS)
    hold(f"{name}: MBU of the fleet", value(prometheus, 'fleet:rooflined_mbu:rate5m{memory="ram"}'), EFFICIENCY, 0.05)
    for model in MODELS:
        hold(f"{name}: builds of {model}.gguf", value(prometheus, f'model:rooflined_deploy_fingerprints:count{{model="{model}.gguf"}}'), 1)
    firing = prometheus.query('ALERTS{alertstate="firing"}')
    assert not firing, firing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--daemons", type=int, default=50)
    options = parser.parse_args()
    root, binaries, count = options.root.resolve(), options.binaries.resolve(), options.daemons
    require("prometheus", binaries / "rooflined", binaries / "rooflined-sim")
    require_packet_sockets()
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        ports = start_servers(processes, binaries, folder)
        addresses = [f"127.0.1.{index + 1}:10074" for index in range(count)]
        for index, address in enumerate(addresses):
            processes.start(f"rooflined-{index}", binaries / "rooflined", "run", "--config",
                            daemon_settings(folder / f"node{index}", address, ports[index % SERVERS]))
        for address in addresses:
            processes.wait_for(address, lambda address=address: answers(f"http://{address}/readyz"), 60)
        site_port, global_port = free_ports(2)
        site = start_prometheus(processes, "site", site_settings(folder, root, addresses), folder, site_port)
        everything = start_prometheus(processes, "global", global_settings(folder, root, site_port), folder, global_port)
        stop, asked = threading.Event(), [0] * SERVERS
        load = threading.Thread(target=ask_until, args=(ports, stop, asked))
        load.start()
        time.sleep(75)
        stop.set()
        load.join()
        time.sleep(20)  # three scrapes, one after the other
        check("site", site, count, asked)
        check("global", everything, count, asked)
        print(f"a scrape takes {1e3 * value(site, 'max(scrape_duration_seconds)'):.0f} ms at most, "
              f"the federation {1e3 * value(everything, 'max(scrape_duration_seconds)'):.0f} ms, "
              f"{value(everything, 'max(scrape_samples_scraped)'):.0f} samples")
        print(f"requests to each server: {asked}; a daemon's scrape: {len(get(f'http://{addresses[0]}/metrics'))} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
