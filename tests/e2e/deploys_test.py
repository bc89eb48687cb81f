#!/usr/bin/env python3
"""Deploys as an operator meets them: deploys_test.py BIN_DIR

- a restart of the server is noticed within 15 s, with its time and cause; a restart of the daemon is none;
- what runs is the same deploy after the daemon was killed;
- `rooflined mark-deploy` marks one, accepts one, and fails with one line and the right status;
- what is kept holds no text of a conversation."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from processes import Processes, answers, free_ports, get, require, require_packet_sockets

NOTICED_WITHIN = 15
CANARY = "ornithorhynchus"


class Bench:
    def __init__(self, binaries, folder, processes):
        self.binaries, self.folder, self.processes = binaries, folder, processes
        self.web, self.port = free_ports(2)
        self.settings = folder / "rooflined.toml"
        (folder / "state").mkdir()
        self.settings.write_text(f"""
[web]
listen = "127.0.0.1:{self.web}"
[state]
directory = "{folder}/state"
[capture]
interface = "lo"
ports = [{self.port}]
[ceiling]
peak_bytes_per_second = 40e9
[[target]]
name = "chat"
port = {self.port}
""")
        self.starts = 0

    def start(self, what, *command):
        self.starts += 1
        return self.processes.start(f"{what}-{self.starts}", self.binaries / command[0], *command[1:])

    def start_server(self):
        server = self.start("sim", "rooflined-sim", "serve", "--listen", f"127.0.0.1:{self.port}", "--model",
                            "builtin:llama-3.2-1b-q8_0", "--bandwidth", "40e9", "--efficiency", 0.6, "--dialect",
                            "llama.cpp")
        self.wait_for("the server", lambda: answers(f"http://127.0.0.1:{self.port}/v1/models"))
        return server

    def start_daemon(self):
        daemon = self.start("rooflined", "rooflined", "run", "--config", self.settings)
        self.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{self.web}/readyz"))
        return daemon

    def end(self, process, how=signal.SIGTERM):
        self.processes.stop(process, how)

    def wait_for(self, what, condition, seconds=20):
        self.processes.wait_for(what, condition, seconds)

    def talk(self):
        body = json.dumps({"messages": [{"role": "user", "content": CANARY}], "stream": True, "max_tokens": 8})
        subprocess.run(["curl", "-sN", "-o", "/dev/null", "-H", "Content-Type: application/json", "-d", body,
                        f"http://127.0.0.1:{self.port}/v1/chat/completions"], check=True, timeout=30)

    def value(self, series):
        found = re.search("^" + re.escape(series) + r" (\S+)$", get(f"http://127.0.0.1:{self.web}/metrics"), re.M)
        return float(found[1]) if found else None

    def deploys(self):
        state = json.loads(get(f"http://127.0.0.1:{self.web}/api/v1/state"))
        return state["targets"][0].get("deploys", []) if state["targets"] else []

    def generation(self):
        deploys = self.deploys()
        return deploys[-1]["generation"] if deploys else None

    def mark(self, *arguments):
        done = subprocess.run([str(part) for part in (self.binaries / "rooflined", "mark-deploy", "--config",
                                                      self.settings, *arguments)],
                              capture_output=True, text=True, timeout=20, check=False)
        return done.returncode, done.stdout.strip().splitlines(), done.stderr.strip().splitlines()


def check_restart(bench, server):
    bench.wait_for("the first deploy", lambda: bench.generation() == 1)
    assert bench.value('rooflined_deploy_timestamp_seconds{target="chat"}') is None, "a deploy that was not seen has a time"
    bench.end(server)
    server = bench.start_server()
    began = time.monotonic()
    bench.wait_for("the restart", lambda: bench.generation() == 2, NOTICED_WITHIN)
    print(f"a restart was noticed {time.monotonic() - began:.1f} s after the server answered again")
    bench.talk()
    assert bench.deploys()[-1]["cause"] == "restart", bench.deploys()
    counted = 'rooflined_deploys_total{target="chat",cause="restart"}'
    bench.wait_for("its count", lambda: bench.value(counted) == 1)
    at = bench.value('rooflined_deploy_timestamp_seconds{target="chat"}')
    assert abs(at - time.time()) < 60, at
    return server


def check_daemon_restart(bench, daemon):
    bench.end(daemon, signal.SIGKILL)
    daemon = bench.start_daemon()
    bench.talk()
    bench.wait_for("what runs", lambda: bench.generation() is not None)
    assert bench.generation() == 2, "a restart of the daemon is no deploy of the server"
    return daemon


def check_marks(bench, daemon):
    status, lines, errors = bench.mark("--target", "mail")
    assert status == 2 and len(errors) == 1 and "there are chat" in errors[0], (status, errors)
    status, lines, errors = bench.mark("--target", "chat", "--version", "2026.11")
    assert status == 0 and "deploy 2 is marked" in lines[0], (status, lines, errors)  # the restart, that is
    bench.wait_for("the version", lambda: bench.deploys()[-1]["version"] == "2026.11")
    status, lines, errors = bench.mark("--target", "chat", "--version", "2026.12")
    assert status == 0 and "deploy 3 is marked" in lines[0], (status, lines, errors)
    status, lines, errors = bench.mark("--target", "chat", "--accept")
    assert status == 0 and "accepted" in lines[0], (status, lines, errors)
    status, lines, errors = bench.mark("--target", "chat", "--accept")
    assert status == 2 and "nothing to accept" in errors[0], (status, errors)
    status, lines, errors = bench.mark("--target", "chat", "--accept", "--version", "x")
    assert status == 2 and len(errors) == 1, (status, errors)
    bench.end(daemon)
    status, lines, errors = bench.mark("--target", "chat")
    assert status == 1 and len(errors) == 1 and "is the daemon running" in errors[0], (status, errors)


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    require("curl", binaries / "rooflined", binaries / "rooflined-sim")
    require_packet_sockets()
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        bench = Bench(binaries, pathlib.Path(name), processes)
        server, daemon = bench.start_server(), bench.start_daemon()
        bench.talk()
        check_restart(bench, server)
        daemon = check_daemon_restart(bench, daemon)
        check_marks(bench, daemon)
        kept = (bench.folder / "state" / "deploys.json").read_text()
        assert json.loads(kept)["targets"][0]["current"]["generation"] == 3, kept
        assert CANARY not in kept
    return 0


if __name__ == "__main__":
    sys.exit(main())
