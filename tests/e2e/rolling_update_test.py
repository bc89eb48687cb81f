#!/usr/bin/env python3
"""A rolling update in which the old and the new server answer side by side: rolling_update_test.py BIN_DIR

Both listen on one port of different addresses, as containers do: once where the daemon sees their sockets, and once in network
namespaces of their own (needs root). It is one deploy of one target, noticed within 15 s after the old one is gone."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from processes import Processes, answers, free_ports, get, require, require_packet_sockets

KNOWN_FOR = 20
SIDE_BY_SIDE = 8
NOTICED_WITHIN = 15


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def seen():
    yield "lo", [("127.0.0.2", []), ("127.0.0.3", [])]


@contextlib.contextmanager
def in_namespaces():
    places = []
    try:
        for index in range(2):
            namespace, link, subnet = f"rl-rolling{index}-{os.getpid()}", f"rl{index}-{os.getpid()}", f"10.213.{78 + index}"
            places.append((f"{subnet}.2", ["ip", "netns", "exec", namespace]))
            ip("netns", "add", namespace)
            ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
            ip("address", "add", f"{subnet}.1/30", "dev", link)
            ip("-n", namespace, "address", "add", f"{subnet}.2/30", "dev", "eth0")
            ip("link", "set", link, "up")
            ip("-n", namespace, "link", "set", "eth0", "up")
        yield "any", places
    finally:
        for _, prefix in places:
            subprocess.run(["ip", "netns", "del", prefix[-1]], check=False, stderr=subprocess.DEVNULL)


class Bench:
    def __init__(self, binaries, folder, processes, interface):
        self.binaries, self.processes = binaries, processes
        self.web, self.port = free_ports(2)
        settings = folder / "rooflined.toml"
        settings.write_text(f"""
[web]
listen = "127.0.0.1:{self.web}"
[state]
directory = "{folder}/state"
[capture]
interface = "{interface}"
ports = [{self.port}]
[ceiling]
peak_bytes_per_second = 40e9
[[target]]
name = "chat"
port = {self.port}
""")
        processes.start("rooflined", binaries / "rooflined", "run", "--config", settings)
        processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{self.web}/readyz"), 30)

    def serve(self, place, version):
        """A server with a client; both, to be ended."""
        address, prefix = place
        url = f"http://{address}:{self.port}"
        server = self.processes.start(f"sim-{version}", *prefix, self.binaries / "rooflined-sim", "serve", "--listen",
                                      f"{address}:{self.port}", "--model", "builtin:llama-3.2-1b-q8_0", "--bandwidth", "40e9",
                                      "--efficiency", 0.6, "--dialect", "llama.cpp", "--server-version", version)
        self.processes.wait_for("a server", lambda: answers(url + "/v1/models"), 30)
        client = self.processes.start(f"load-{version}", self.binaries / "rooflined-sim", "load", "--url", url, "--concurrency", 2,
                                      "--output-tokens", 20, "--duration", "300s")
        return client, server

    def targets(self):
        return json.loads(get(f"http://127.0.0.1:{self.web}/api/v1/state"))["targets"]

    def generation(self):
        deploys = [target["deploys"] for target in self.targets() if target.get("deploys")]
        return deploys[0][-1]["generation"] if deploys else None

    def value(self, name):
        found = re.findall(rf'^rooflined_{name}{{target="chat".*}} (\S+)$', get(f"http://127.0.0.1:{self.web}/metrics"), re.M)
        return sum(float(value) for value in found)

    def names(self):
        return [target["target"] for target in self.targets()]


def check(bench, places):
    old = bench.serve(places[0], "b100-0000000a")
    bench.processes.wait_for("the target", lambda: bench.generation() == 1, 30)
    time.sleep(KNOWN_FOR)
    bench.serve(places[1], "b200-0000000b")
    time.sleep(SIDE_BY_SIDE)
    assert bench.names() == ["chat"] and bench.generation() == 1, bench.targets()
    for process in old:
        bench.processes.stop(process)
    began = time.monotonic()
    bench.processes.wait_for("the deploy", lambda: bench.generation() == 2, NOTICED_WITHIN)
    print(f"  noticed {time.monotonic() - began:.1f} s after the old one was gone")
    tokens = bench.value("output_tokens_total")
    bench.processes.wait_for("its counters", lambda: bench.value("output_tokens_total") > tokens, 20)
    bench.processes.wait_for("its count", lambda: bench.value("deploys_total") >= 1, 10)
    target, = bench.targets()
    assert target["target"] == "chat" and target["up"], target
    assert target["deploys"][-1]["cause"] == "version" and bench.value("deploys_total") == 1, target["deploys"]


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    require(binaries / "rooflined", binaries / "rooflined-sim")
    require_packet_sockets()
    hidden = [in_namespaces] if os.geteuid() == 0 and shutil.which("ip") else []
    for kind in [seen, *hidden]:
        print(kind.__name__.replace("_", " "))
        with kind() as (interface, places), tempfile.TemporaryDirectory() as folder, Processes(folder) as processes:
            check(Bench(binaries, pathlib.Path(folder), processes, interface), places)
    return 0


if __name__ == "__main__":
    sys.exit(main())
