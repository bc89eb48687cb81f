"""Restarts of a real llama-server beside the daemon: real_deploys_test.py BIN_DIR MODELS_FOLDER COMMAND…

The server answers one client with two threads for twelve minutes, is restarted as it was, and then with one thread. Each restart is
a deploy, noticed within 15 s. The first is no change; of the second the alert rule's bound (MBU under 0.95 of before, for sure) is
met within ten minutes of traffic. Half an hour, on a machine with little else to do; real_server.sh runs it."""

import http.client
import json
import pathlib
import signal
import sys
import tempfile
import threading
import time

import processes
from real_server_test import Request

BEFORE = 12 * 60  # sixty slices, and half a minute until the first
NOTICED_WITHIN = 15
AFTER_MAX = 10 * 60
HELD_FOR = 2 * 60  # as long as the rule waits
ALERT = 0.95
THREADS, FEWER_THREADS = 2, 1


class Client:
    """One request every other second, whether or not somebody answers: a slice has enough of it, and the machine rest."""

    def __init__(self, port):
        self.port, self.answered = port, 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        seed = 0
        while not self.stopped.is_set():
            seed += 1
            request = Request(self.port, seed)
            request.tokens_wanted = 40
            try:
                request.run()
                self.answered += 1
            except (OSError, AssertionError, http.client.HTTPException):  # it is being restarted
                pass
            self.stopped.wait(2)

    def stop(self):
        self.stopped.set()
        self.thread.join(60)


class Bench:
    def __init__(self, folder, running, programs, models, command):
        self.running, self.models, self.command = running, models, command
        self.port, self.web = processes.free_ports(2)
        self.server = None
        (pathlib.Path(folder) / "state").mkdir()
        settings = pathlib.Path(folder) / "rooflined.toml"
        settings.write_text(
            f'[web]\nlisten = "127.0.0.1:{self.web}"\n[state]\ndirectory = "{folder}/state"\n[capture]\nports = [{self.port}]\n'
            f'[ceiling]\npeak_bytes_per_second = 50e9\n[[target]]\nname = "chat"\nport = {self.port}\n'
        )
        running.start("daemon", programs / "rooflined", "run", "--config", settings)
        running.wait_for("the daemon", lambda: processes.answers(f"http://127.0.0.1:{self.web}/readyz"), 30)

    def serve(self, threads):
        if self.server is not None:
            self.running.stop(self.server, signal.SIGKILL)  # it would end the streams that it has
        self.server = self.running.start(f"server-{time.monotonic():.0f}", *self.command, "--host", "127.0.0.1", "--port",
                                         self.port, "-m", f"{self.models}/large.gguf", "-c", 4096, "-np", 1, "-t", threads,
                                         "--no-webui")
        self.running.wait_for("the server", lambda: processes.answers(f"http://127.0.0.1:{self.port}/health"), 120)
        return time.monotonic()

    def deploy(self):
        """The last one; empty before the first."""
        targets = json.loads(processes.get(f"http://127.0.0.1:{self.web}/api/v1/state"))["targets"]
        deploys = targets[0].get("deploys") if targets else None
        return deploys[-1] if deploys else {}

    def restart(self, threads, generation):
        began = self.serve(threads)
        self.running.wait_for("the restart", lambda: self.deploy().get("generation") == generation, NOTICED_WITHIN)
        print(f"-t {threads}: noticed {time.monotonic() - began:.1f} s after it answered, cause {self.deploy()['cause']}", flush=True)

    def watch_change(self):
        """How MBU and latency changed, once the bound has been met for as long as the rule waits, or is not by the end."""
        began, met_since = time.monotonic(), None
        change = None
        while time.monotonic() < began + AFTER_MAX:
            time.sleep(5)
            change = self.deploy().get("mbu_change")
            met = change is not None and change["high"] < ALERT
            met_since = (met_since or time.monotonic()) if met else None
            if met and time.monotonic() - met_since >= HELD_FOR:
                break
            if change is not None and not met and change["low"] > ALERT and change["slices"] >= 18:
                break
        print(f"  after {time.monotonic() - began:.0f} s: MBU {change}\n  ITL {self.deploy().get('itl_change')}", flush=True)
        return change is not None, met_since is not None


def main():
    programs, models, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    processes.require_packet_sockets()
    faults = []
    with tempfile.TemporaryDirectory() as folder, processes.Processes(folder) as running:
        bench = Bench(folder, running, programs, models, command)
        bench.serve(THREADS)
        client = Client(bench.port)
        running.wait_for("the target", lambda: bench.deploy().get("generation") == 1, 60)
        time.sleep(BEFORE)
        for threads, generation in ((THREADS, 2), (FEWER_THREADS, 3)):
            bench.restart(threads, generation)
            compared, alert = bench.watch_change()
            if not compared:
                faults.append(f"-t {threads}: nothing to compare with")
            elif alert != (threads != THREADS):
                faults.append(f"-t {THREADS} before, -t {threads} after: {'an' if alert else 'no'} alert")
        print(f"{client.answered} answers")
        client.stop()
    for fault in faults:
        print("FAILED:", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
