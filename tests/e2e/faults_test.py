#!/usr/bin/env python3
"""What goes wrong on a host, one after the other, under one daemon: faults_test.py BIN_DIR [--stopped SECONDS]

After each fault the daemon is alive and ready, has the ceiling and the deploys that it had, and counts every token of the
next answers. Faults of the disk need root (a small file system of its own); the network's are in interfaces_test.py, steps
of the clock in the tests of the tap, which need not turn this machine's clock."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from kept_ceiling import keep_ceiling
from processes import Processes, answers, free_ports, get, require, require_packet_sockets
from slow_clients import SlowClients

CEILING = 31.25e9
MODEL = "builtin:moe-small"


class Node:
    """A server and a daemon, whose state lies on a file system of its own where that can be had."""

    def __init__(self, programs, folder, processes):
        self.programs, self.folder, self.processes = programs, folder, processes
        self.port, self.web = free_ports(2)
        self.state, self.settings = folder / "state", folder / "rooflined.toml"
        self.state.mkdir()
        self.own_disk = os.geteuid() == 0 and self.mount() == 0
        self.good_settings = (f'[web]\nlisten = "127.0.0.1:{self.web}"\n[state]\ndirectory = "{self.state}"\n'
                              f'[capture]\ninterface = "lo"\nports = [{self.port}]\n[ceiling]\nmeasure = "never"\n'
                              f'[[target]]\nname = "chat"\nport = {self.port}\n')
        self.settings.write_text(self.good_settings)
        keep_ceiling(programs / "rooflined", self.state, CEILING)
        self.starts, self.sent = 0, 0
        self.start_server()
        self.start_daemon()

    def mount(self, *options):
        return subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(["size=256k", *options]), "state", self.state],
                              capture_output=True, check=False).returncode

    def unmount(self):
        subprocess.run(["umount", "-l", self.state], capture_output=True, check=False)

    def start(self, what, *command):
        self.starts += 1
        return self.processes.start(f"{what}-{self.starts}", *command)

    def start_server(self):
        self.server = self.start("server", self.programs / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{self.port}",
                                 "--model", MODEL, "--bandwidth", "1e15", "--efficiency", "1", "--overhead", "5ms",
                                 "--max-batch", "64", "--dialect", "llama.cpp")
        self.wait_for("the server", lambda: answers(f"http://127.0.0.1:{self.port}/v1/models"))

    def start_daemon(self):
        self.daemon = self.start("daemon", self.programs / "rooflined", "run", "--config", self.settings)
        self.log = self.folder / f"daemon-{self.starts}.log"
        self.wait_for("readiness", lambda: answers(f"http://127.0.0.1:{self.web}/readyz"))

    def wait_for(self, what, condition, seconds=40):
        self.processes.wait_for(what, condition, seconds)

    def value(self, pattern):
        found = re.search("^" + pattern + r" (\S+)$", get(f"http://127.0.0.1:{self.web}/metrics"), re.M)
        return float(found[1]) if found else None

    def tokens(self):
        return self.value(r"rooflined_output_tokens_total\{.*\}") or 0

    def dropped(self):
        return self.value(r"rooflined_capture_dropped_packets_total\{.*\}") or 0

    def log_says(self, text):
        return text in self.log.read_text(errors="replace")

    def load(self, concurrency=4, seconds=1, tokens=100):
        done = subprocess.run([self.programs / "rooflined-sim", "load", "--url", f"http://127.0.0.1:{self.port}",
                               "--concurrency", str(concurrency), "--duration", f"{seconds}s", "--output-tokens", str(tokens),
                               "--json"], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["output_tokens"]

    def mark(self, version):
        done = subprocess.run([self.programs / "rooflined", "mark-deploy", "--config", self.settings, "--socket",
                               self.folder / "control.sock", "--target", "chat", "--version", version],
                              capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr

    def deploys(self):
        targets = json.loads(get(f"http://127.0.0.1:{self.web}/api/v1/state"))["targets"]
        return targets[0].get("deploys", []) if targets else []

    def version(self):
        deploys = self.deploys()
        return deploys[-1]["version"] if deploys else None

    def kept_version(self):
        try:
            return json.loads((self.state / "deploys.json").read_text())["targets"][0]["current"]["marked_version"]
        except OSError:
            return None

    def settle(self):
        """What was counted until now, when nothing more comes."""
        before = -1.0
        while before != (before := self.tokens()):
            time.sleep(3.5)
        self.sent = before

    def check(self, what):
        assert self.daemon.poll() is None, f"{what}: the daemon ended with {self.daemon.returncode}"
        assert answers(f"http://127.0.0.1:{self.web}/readyz"), f"{what}: not ready"
        assert self.value("rooflined_ceiling_bytes_per_second") == CEILING, f"{what}: the ceiling is lost"
        self.sent += self.load()
        with contextlib.suppress(AssertionError):  # the comparison below says more
            self.wait_for("the tokens", lambda: self.tokens() >= self.sent, 20)
        assert self.tokens() == self.sent, f"{what}: {self.tokens():.0f} of {self.sent:.0f} tokens"
        print(f"  {what}: alive, ready, ceiling kept, {self.sent:.0f} of {self.sent:.0f} tokens", flush=True)


def suspended(node, seconds):
    """Stopped while the server talks on: the buffer of the capture overruns, and that is counted."""
    before = node.dropped()
    node.daemon.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    node.load(64, 8, 400)
    time.sleep(max(0.0, seconds - (time.monotonic() - began)))
    node.daemon.send_signal(signal.SIGCONT)
    node.wait_for("packets that were lost", lambda: node.dropped() > before)
    print(f"  lost while it was stopped for {time.monotonic() - began:.0f} s: {node.dropped() - before:.0f} packets")
    node.settle()


def disk_full(node, _):
    node.mark("before")
    node.wait_for("the file", lambda: node.kept_version() == "before")
    filler = node.state / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))
    with contextlib.suppress(OSError):
        (node.state / "probe").write_bytes(bytes(4096))
        raise AssertionError("the disk is not full")
    (node.state / "probe").unlink(missing_ok=True)
    node.mark("meanwhile")
    node.wait_for("a line about it", lambda: node.log_says("not remembered across a restart"))
    assert node.kept_version() == "before", "the file on the full disk is no longer the old one"
    assert node.version() == "meanwhile", "the full disk kept the mark away"
    filler.unlink()
    node.mark("after")
    node.wait_for("the file again", lambda: node.kept_version() == "after")


def disk_read_only(node, _):
    assert node.mount("remount", "ro") == 0
    node.mark("read-only")
    node.wait_for("the mark", lambda: node.version() == "read-only")
    assert node.kept_version() == "after"
    assert node.mount("remount", "rw") == 0
    node.mark("writable")
    node.wait_for("the file again", lambda: node.kept_version() == "writable")


def disk_gone(node, _):
    node.unmount()
    node.state.rmdir()
    node.mark("gone")
    node.wait_for("the mark", lambda: node.version() == "gone")
    node.check("state directory gone")
    node.state.mkdir()
    assert node.mount() == 0
    node.mark("back")
    node.wait_for("the file again", lambda: node.kept_version() == "back")
    # What a measurement would leave; the next start reads it.
    keep_ceiling(node.programs / "rooflined", node.state, CEILING)


def port_stolen(node, _):
    """Something else takes the server's port, then the server has it again."""
    node.processes.stop(node.server)
    thief = node.start("thief", sys.executable, "-m", "http.server", "--bind", "127.0.0.1", node.port)
    url = f"http://127.0.0.1:{node.port}/"
    node.wait_for("the other one", lambda: answers(url))
    for _ in range(5):
        get(url)
    node.processes.stop(thief)
    node.start_server()


def memory_short(node, _):
    """Hardly more memory than it has: the kernel reclaims, and kills nobody."""
    old = pathlib.Path("/sys/fs/cgroup/memory")
    base, limit, none = ((old, "memory.limit_in_bytes", "-1") if old.is_dir()
                         else (pathlib.Path("/sys/fs/cgroup"), "memory.max", "max"))
    group = base / f"rooflined-test-{os.getpid()}"
    resident = int(re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{node.daemon.pid}/status").read_text())[1]) * 1024
    try:
        group.mkdir()
        (group / limit).write_text(str(resident + 4 * 1024 * 1024))
        (group / "cgroup.procs").write_text(str(node.daemon.pid))
    except OSError as error:
        print(f"  skipped: no control group of its own: {error.strerror}")
        with contextlib.suppress(OSError):
            group.rmdir()
        return
    try:
        node.load(64, 2, 100)
        node.settle()
        node.check("memory short")
    finally:
        (group / limit).write_text(none)
        with contextlib.suppress(OSError):
            (base / "cgroup.procs").write_text(str(node.daemon.pid))
            group.rmdir()


def slow_scrapers(node, _):
    """A thousand clients that ask slowly, not at all, or take no answer."""
    url = f"http://127.0.0.1:{node.web}/metrics"
    dropped = node.dropped()
    with SlowClients(node.web, 1000) as clients:
        node.sent += node.load(16, 6, 200)
        began = time.monotonic()
        get(url, 30)
        print(f"  a scrape among {clients.open_now()} slow ones took {time.monotonic() - began:.2f} s")
    began = time.monotonic()
    get(url, 30)
    print(f"  a scrape after they had left took {time.monotonic() - began:.2f} s; {clients.opened} connections in all")
    assert node.dropped() == dropped, f"{node.dropped() - dropped} packets lost to slow scrapers"


def settings_broken(node, _):
    node.settings.write_text("[web\nlisten = 7\n")
    node.daemon.send_signal(signal.SIGHUP)
    node.wait_for("the refusal", lambda: node.log_says("the settings are refused"))
    node.settings.write_text(node.good_settings)
    node.daemon.send_signal(signal.SIGHUP)
    node.wait_for("the reload", lambda: node.log_says("settings reloaded"))


def killed(node, _):
    version = node.version()
    node.processes.stop(node.daemon, signal.SIGKILL)
    node.start_daemon()
    node.sent = 0
    node.check("kill -9")
    node.wait_for("the deploys", lambda: node.version() == version)
    taken = subprocess.run([node.programs / "rooflined", "run", "--config", node.settings], capture_output=True, text=True,
                           timeout=30, check=False)
    assert taken.returncode == 1 and "in use" in taken.stderr, taken


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--stopped", type=float, default=15, metavar="SECONDS", help="how long the daemon is stopped")
    arguments = parser.parse_args()
    programs = arguments.programs.resolve()
    require(programs / "rooflined", programs / "rooflined-sim")
    require_packet_sockets()
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        os.environ["RUNTIME_DIRECTORY"] = name  # the control socket is not on the disk that goes
        node = Node(programs, folder, processes)
        try:
            node.check("no fault")
            node.mark("first")
            node.wait_for("the deploy", lambda: node.version() == "first")
            disk = (disk_full, disk_read_only, disk_gone)
            faults = (*disk, settings_broken, suspended, port_stolen, memory_short, slow_scrapers, killed)
            for fault in faults:
                if fault in disk and not node.own_disk:
                    print(f"  skipped: {fault.__name__} needs root")
                    continue
                fault(node, arguments.stopped)
                node.check(fault.__name__.replace("_", " "))
        finally:
            if node.own_disk:
                node.unmount()
    return 0


if __name__ == "__main__":
    sys.exit(main())
