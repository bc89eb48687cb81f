"""The daemon beside a real llama-server that starts one for each model: real_router_test.py BIN_DIR MODELS_FOLDER COMMAND…

Nothing is configured but the router's port. Two clients each stream from two models at once: every stream counts once, under its own
model, tokens exactly and with the bytes of its own file. Where the router's children can be seen they are targets, and the router is
shown as their proxy; in a network namespace of its own (a container) it is one target with two models."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

import namespaces
import processes
from real_server_test import Request, compare, run_at_once

MODELS = ["random", "draft"]
CLIENTS, EACH = 2, 4
KNOWN_WITHIN = 60


@contextlib.contextmanager
def beside():
    yield "127.0.0.1", []


@contextlib.contextmanager
def in_container():
    name, link, subnet = f"rl-router-{os.getpid()}", f"rr{os.getpid()}", "10.213.81"
    try:
        namespaces.add(name)
        namespaces.ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        namespaces.ip("address", "add", f"{subnet}.1/30", "dev", link)
        namespaces.ip("-n", name, "address", "add", f"{subnet}.2/30", "dev", "eth0")
        namespaces.ip("link", "set", link, "up")
        namespaces.ip("-n", name, "link", "set", "eth0", "up")
        yield f"{subnet}.2", namespaces.inside(name)
    finally:
        namespaces.remove(name)


class Bench:
    def __init__(self, folder, running, programs, models, command, host):
        self.running, self.host = running, host
        self.port, self.web = processes.free_ports(2)
        settings = pathlib.Path(folder) / "rooflined.toml"
        settings.write_text(
            f'[web]\nlisten = "127.0.0.1:{self.web}"\n[state]\ndirectory = "{folder}/state"\n[capture]\nports = [{self.port}]\n'
            "[ceiling]\npeak_bytes_per_second = 50e9\n"
        )
        running.start("router", *command, "--models-dir", models, "--host", host, "--port", self.port, "-c", 8192, "-np", 4, "-t", 1,
                      "--no-webui")
        running.wait_for("the router", lambda: processes.answers(f"http://{host}:{self.port}/health"), 60)
        running.start("daemon", programs / "rooflined", "run", "--config", settings)
        running.wait_for("the daemon", lambda: processes.answers(f"http://127.0.0.1:{self.web}/readyz"), 30)

    def targets(self):
        return json.loads(processes.get(f"http://127.0.0.1:{self.web}/api/v1/state"))["targets"]

    def engines(self):
        return {target["model"]: target for target in self.targets() if target["role"] == "engine"}

    def router(self):
        return next((target for target in self.targets() if target["port"] == self.port), {})

    def stream(self, clients, each, seed):
        """The requests to each model, once they have all been answered."""
        requests = {model: [Request(self.port, seed + i, model, self.host) for i in range(clients * each)] for model in MODELS}
        run_at_once([all_of[i::clients] for all_of in requests.values() for i in range(clients)])
        return requests

    def become_known(self, role):
        """The first streams load the models, and may be over before their servers' ports are watched, or their size is known."""
        deadline = time.monotonic() + KNOWN_WITHIN
        while not (all("geometry" in self.engines().get(model, {}) for model in MODELS) and self.router().get("role") == role):
            assert time.monotonic() < deadline, [(t["target"], t["model"], t["role"]) for t in self.targets()]
            self.stream(1, 1, 900)
            time.sleep(2)
        time.sleep(3)  # until the ledger has settled it


def check(bench, role):
    faults = []
    before, router_before = bench.engines(), bench.router()
    requests = bench.stream(CLIENTS, EACH, 0)
    time.sleep(5)
    after, router = bench.engines(), bench.router()
    for model in MODELS:
        def grown(name, of=model):
            return after[of][name] - before[of][name]

        print(f"{after[model]['target']}, model {model}")
        timings = [request.timings for request in requests[model]]
        faults += compare("output tokens", grown("output_tokens"), sum(each["predicted_n"] for each in timings), 0)
        faults += compare("sequence seconds", grown("decode_sequence_seconds"), sum(each["predicted_ms"] for each in timings) / 1e3, 0.01)
        dense = after[model].get("geometry", {}).get("dense_bytes", 0)
        faults += compare("bytes per pass", grown("decode_bytes_dense") / grown("decode_passes"), dense or float("nan"), 1e-6)
        if not any("mbu_ratio" in window for window in after[model]["windows"]):
            faults.append(f"{model}: no MBU")
    if after["random"].get("geometry") == after["draft"].get("geometry"):
        faults.append("two files of different sizes have the same geometry")
    if role != "proxy":
        if {after[model]["target"] for model in MODELS} != {router["target"]}:
            faults.append("the models are not of one target")
        return faults
    print("the router")
    proxied = router["proxied_requests"] - router_before["proxied_requests"]
    faults += compare("proxied requests", proxied, len(MODELS) * CLIENTS * EACH, 0)
    if router["output_tokens"] != router_before["output_tokens"]:
        faults.append(f"the router counts {router['output_tokens'] - router_before['output_tokens']} tokens of its own")
    return faults


def main():
    programs, models, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    processes.require_packet_sockets()
    faults = []
    for where, role in ((beside, "proxy"), (in_container, "engine")):
        print(f"---- {where.__name__}", flush=True)
        with where() as (host, inside), tempfile.TemporaryDirectory() as folder, processes.Processes(folder) as running:
            bench = Bench(folder, running, programs, models, [*inside, *command], host)
            bench.become_known(role)
            faults += check(bench, role)
    for fault in faults:
        print("FAILED:", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
