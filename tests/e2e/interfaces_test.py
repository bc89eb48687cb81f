#!/usr/bin/env python3
"""Interfaces come, go and change their names under a running capture: interfaces_test.py BIN_DIR

A server and the daemon live in one network namespace, clients in another; a veth pair joins them. Every token is
counted before and after each change, whether the capture is on all interfaces or on one by name. Needs root."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import namespaces
from namespaces import inside, ip
from processes import Processes, free_ports, require, require_packet_sockets, skip

SERVER, CLIENT = f"rl-server-{os.getpid()}", f"rl-client-{os.getpid()}"
ADDRESS = "10.213.77.1"


def add_pair(name):
    """The server's end is called `name`."""
    ip("link", "add", name, "netns", SERVER, "type", "veth", "peer", "name", "to-server", "netns", CLIENT)
    ip("-n", SERVER, "address", "add", f"{ADDRESS}/24", "dev", name)
    ip("-n", CLIENT, "address", "add", "10.213.77.2/24", "dev", "to-server")
    ip("-n", SERVER, "link", "set", name, "up")
    ip("-n", CLIENT, "link", "set", "to-server", "up")


class Host:
    def __init__(self, programs, folder, running, interface):
        self.programs, self.running = programs, running
        self.port, self.web = free_ports(2)
        settings = pathlib.Path(folder) / f"{interface}.toml"
        settings.write_text(
            f'[web]\nlisten = "127.0.0.1:{self.web}"\n[state]\ndirectory = "{folder}/{interface}"\n'
            f'[capture]\ninterface = "{interface}"\nports = [{self.port}]\n[ceiling]\nmeasure = "never"\n'
        )
        self.server = running.start("server", *inside(SERVER, programs / "rooflined-sim", "serve", "--listen",
                                    f"0.0.0.0:{self.port}", "--model", "builtin:moe-small", "--bandwidth", "1e15",
                                    "--efficiency", "1", "--overhead", "5ms", "--dialect", "llama.cpp"))
        self.daemon = running.start("daemon", *inside(SERVER, programs / "rooflined", "run", "--config", settings))
        running.wait_for("the daemon", lambda: self.page("readyz") is not None, 30)
        running.wait_for("the server", lambda: self.load(["--concurrency", 1, "--output-tokens", 2]) > 0, 30)
        self.sent = self.counted()

    def page(self, path):
        return namespaces.page(SERVER, f"http://127.0.0.1:{self.web}/{path}")

    def value(self, pattern):
        return namespaces.value(self.page("metrics"), pattern) or 0.0

    def counted(self):
        """When nothing more comes."""
        before = -1.0
        while before != (before := self.value(r"rooflined_output_tokens_total\{.*\}")):
            time.sleep(3.5)
        return before

    def load(self, options=(), meanwhile=lambda: None):
        command = inside(CLIENT, self.programs / "rooflined-sim", "load", "--url", f"http://{ADDRESS}:{self.port}",
                         "--duration", "1s", "--json", *(options or ["--concurrency", 4, "--output-tokens", 100]))
        client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        meanwhile()
        text = client.communicate(timeout=60)[0]
        return json.loads(text)["output_tokens"] if client.returncode == 0 else 0

    def check(self, what, meanwhile=lambda: None):
        self.sent += self.load(meanwhile=meanwhile)
        counted = self.counted()
        print(f"  {what}: {counted:.0f} of {self.sent:.0f} tokens")
        assert counted == self.sent, f"{what}: {counted} of {self.sent} tokens"

    def wait_for_capture(self, up):
        pattern = r'rooflined_collector_up\{collector="tap"\}'
        self.running.wait_for(f"a capture that is {'up' if up else 'down'}", lambda: self.value(pattern) == up, 40)


def down_and_up(name):
    time.sleep(0.4)
    ip("-n", SERVER, "link", "set", name, "down")
    time.sleep(0.3)
    ip("-n", SERVER, "link", "set", name, "up")


def all_interfaces(host):
    host.check("as it was")
    host.check("down and up under streams", lambda: down_and_up("eth5"))
    ip("-n", SERVER, "link", "set", "eth5", "down")
    ip("-n", SERVER, "link", "set", "eth5", "name", "eth6")
    ip("-n", SERVER, "link", "set", "eth6", "up")
    host.check("renamed")
    ip("-n", SERVER, "link", "del", "eth6")
    add_pair("eth7")
    host.check("a new one")


def one_interface(host):
    host.check("as it was")
    ip("-n", SERVER, "link", "del", "eth7")
    host.wait_for_capture(False)
    add_pair("eth7")
    host.wait_for_capture(True)
    host.check("away and back under its name")


def main():
    programs = pathlib.Path(sys.argv[1])
    require("ip")
    require_packet_sockets()
    if os.geteuid() != 0:
        skip("network namespaces need root")
    try:
        namespaces.add(SERVER, CLIENT)
        add_pair("eth5")
        for interface, changes in (("any", all_interfaces), ("eth7", one_interface)):
            print(interface)
            with tempfile.TemporaryDirectory() as folder, Processes(folder) as running:
                changes(Host(programs, folder, running, interface))
    finally:
        namespaces.remove(SERVER, CLIENT)


if __name__ == "__main__":
    main()
