#!/usr/bin/env python3
"""A server in a pod: pod_test.py BIN_DIR

The node is a network namespace with a bridge, the pod another one behind it, as container runtimes make them. A daemon on
the node and one inside the pod, the sidecar, see the same traffic and say the same of it. Then the pod is replaced by a
new one at another address: on the node that is one target still, and one deploy. Needs root."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import namespaces
from namespaces import inside, ip, page, value
from processes import Processes, free_ports, require, require_packet_sockets, skip

NODE, POD, NEW_POD, CLIENT = (f"rl-{name}-{os.getpid()}" for name in ("node", "pod", "new-pod", "client"))
NETWORK = "10.213.78"
BANDWIDTH = 40e9
EFFICIENCY = 0.6
# Both watch the same packets, stamped by the same kernel at two places.
TOLERANCE = 0.01


def attach(namespace, number):
    """A namespace with one interface, the other end of which is on the node's bridge."""
    end = f"veth{number}"
    ip("link", "add", "eth0", "netns", namespace, "type", "veth", "peer", "name", end, "netns", NODE)
    ip("-n", namespace, "address", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
    ip("-n", namespace, "link", "set", "eth0", "up")
    ip("-n", NODE, "link", "set", end, "master", "bridge0")
    ip("-n", NODE, "link", "set", end, "up")


class Daemon:
    def __init__(self, place, namespace, programs, folder, running, port):
        self.namespace = namespace
        web = free_ports(1)[0]
        self.base = f"http://127.0.0.1:{web}"
        settings = folder / f"{place}.toml"
        settings.write_text(f'[web]\nlisten = "127.0.0.1:{web}"\n[state]\ndirectory = "{folder}/{place}"\n'
                            f'[capture]\nports = [{port}]\n[windows]\nspans = ["1m"]\n'
                            f'[ceiling]\npeak_bytes_per_second = {BANDWIDTH}\n')
        (folder / place).mkdir()
        running.start(place, *inside(namespace, programs / "rooflined", "run", "--config", settings))
        running.wait_for(f"the daemon on the {place}", lambda: page(namespace, self.base + "/readyz"), 40)

    def scrape(self):
        return page(self.namespace, self.base + "/metrics")

    def state(self):
        return json.loads(page(self.namespace, self.base + "/api/v1/state"))


class Bench:
    def __init__(self, programs, folder, running):
        self.programs, self.folder, self.running = programs, folder, running
        self.port = free_ports(1)[0]
        self.model = folder / "model.gguf"
        subprocess.run([programs / "rooflined-sim", "make-model", self.model, "--preset", "dense"], check=True)

    def serve(self, namespace, number):
        server = self.running.start(f"server-{number}", *inside(
            namespace, self.programs / "rooflined-sim", "serve", "--listen", f"0.0.0.0:{self.port}", "--model", self.model,
            "--bandwidth", f"{BANDWIDTH:.0f}", "--efficiency", EFFICIENCY, "--dialect", "llama.cpp"))
        url = f"http://127.0.0.1:{self.port}/v1/models"
        self.running.wait_for("the server", lambda: page(namespace, url), 40)
        return server

    def load(self, number, seconds):
        done = subprocess.run(inside(CLIENT, self.programs / "rooflined-sim", "load", "--url",
                                     f"http://{NETWORK}.{number}:{self.port}", "--concurrency", 2, "--duration",
                                     f"{seconds}s", "--output-tokens", 48, "--json"),
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["output_tokens"]

    def wait_for_tokens(self, daemon, tokens):
        pattern = r"rooflined_output_tokens_total\{.*\}"
        self.running.wait_for(f"{tokens} tokens", lambda: (value(daemon.scrape(), pattern) or 0) >= tokens, 30)
        time.sleep(4)  # the last intervals are settled
        assert value(daemon.scrape(), pattern) == tokens, (value(daemon.scrape(), pattern), tokens)


COUNTERS = ("output_tokens_total", "decode_passes_total", "decode_busy_seconds_total", "decode_sequence_seconds_total",
            "decode_bytes_total")


def counters(daemon):
    scrape = daemon.scrape()
    return {name: value(scrape, rf'rooflined_{name}\{{(?!.*component="(?:kv|experts)").*\}}') or 0 for name in COUNTERS}


def same_figures(node, sidecar, before):
    """Since both knew the model: what was read before that is not counted in bytes."""
    figures = [{name: count - earlier[name] for name, count in counters(daemon).items()}
               for daemon, earlier in zip((node, sidecar), before)]
    for daemon, each in zip((node, sidecar), figures):
        each["mbu_ratio"] = value(daemon.scrape(), r"rooflined_mbu_ratio\{.*\}")
    for name, a in figures[0].items():
        b = figures[1][name]
        assert a and b, f"{name}: {a} on the node, {b} in the pod"
        print(f"  {name}: {a:.6g} on the node, {b:.6g} in the pod")
        assert abs(a / b - 1) <= TOLERANCE, f"{name} differs by {a / b - 1:+.2%}"


def one_target(node, deploys):
    targets = node.state()["targets"]
    assert len(targets) == 1, [target["target"] for target in targets]
    assert [deploy["generation"] for deploy in targets[0]["deploys"]][-1] == deploys, targets[0]["deploys"]
    return targets[0]


def check(bench):
    server = bench.serve(POD, 11)
    node = Daemon("node", NODE, bench.programs, bench.folder, bench.running, bench.port)
    sidecar = Daemon("sidecar", POD, bench.programs, bench.folder, bench.running, bench.port)
    both = (node, sidecar)
    tokens = bench.load(11, 1)
    for daemon in both:
        bench.wait_for_tokens(daemon, tokens)
        bench.running.wait_for("the model", lambda: value(daemon.scrape(), r"rooflined_geometry_info\{.*\}"), 30)
    before = [counters(daemon) for daemon in both]
    tokens += bench.load(11, 10)
    for daemon in both:
        bench.wait_for_tokens(daemon, tokens)
    same_figures(node, sidecar, before)
    name = one_target(node, 1)["target"]

    # Two at once would be two targets.
    bench.running.stop(server)
    ip("-n", NODE, "link", "del", "veth11")
    bench.serve(NEW_POD, 12)
    # The counters are those of the new engine: to Prometheus, a reset.
    tokens = bench.load(12, 4)
    bench.wait_for_tokens(node, tokens)
    bench.running.wait_for("the deploy", lambda: node.state()["targets"][0]["deploys"][-1]["generation"] > 1, 40)
    target = one_target(node, 2)
    assert target["target"] == name, target
    deploys = sum(value(node.scrape(), rf'rooflined_deploys_total\{{target="{name}",cause="{cause}"\}}') or 0
                  for cause in ("restart", "version", "model", "settings"))
    print(f"  at another address: target {name} as before, {deploys:.0f} deploy, {tokens} tokens")
    assert deploys == 1, node.scrape()


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    require("ip", programs / "rooflined", programs / "rooflined-sim")
    require_packet_sockets()
    if os.geteuid() != 0:
        skip("network namespaces need root")
    try:
        namespaces.add(NODE, POD, NEW_POD, CLIENT)
        ip("-n", NODE, "link", "add", "bridge0", "type", "bridge")
        ip("-n", NODE, "address", "add", f"{NETWORK}.1/24", "dev", "bridge0")
        ip("-n", NODE, "link", "set", "bridge0", "up")
        for namespace, number in ((POD, 11), (NEW_POD, 12), (CLIENT, 20)):
            attach(namespace, number)
        with tempfile.TemporaryDirectory() as folder, Processes(folder) as running:
            check(Bench(programs, pathlib.Path(folder), running))
    finally:
        namespaces.remove(NODE, POD, NEW_POD, CLIENT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
