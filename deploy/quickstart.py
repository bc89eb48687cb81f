#!/usr/bin/env python3
"""The live part of quickstart.sh: starts the daemon, a simulated server where there is no real one, and shows a table.

    quickstart.py --bin DIR [--seconds N] [--listen ADDRESS:PORT]

Ends on Ctrl-C or after N seconds (of the live part), with every process that it started gone; exit 0. Exit 2 where something does not start,
with one line that says what.
"""

import argparse
import contextlib
import ctypes
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

USUAL_PORTS = (8080, 8000, 30000, 11434, 3000, 1234, 5001, 23333)
# The simulated engine reads its model at this share of the measured ceiling, with four streams at a time: MBU should
# come out at the same figure.
EFFICIENCY = 0.6
CONCURRENCY = 4
READY_SECONDS_MAX = 15
# A machine that others keep busy gives no ceiling. Since the memory is simulated as well, its bandwidth can be named then.
# A measurement on a quiet machine is there after half a minute.
CEILING_SECONDS_MAX = 90
NAMED_BANDWIDTH = "30GB"
PR_SET_PDEATHSIG = 1
SETTINGS_NAME = "rooflined.toml"


class Failure(Exception):
    """One line for the person at the terminal."""


class Ended(Exception):
    """Asked to stop."""


def fetch(url, timeout=2.0):
    """Status and body of a GET; None where nothing answers."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, b""
    except (OSError, ValueError):
        return None


def listens(port):
    with contextlib.closing(socket.socket()) as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_inference_server(port):
    """True where /v1/models answers as such servers do; a key may be asked for."""
    answer = fetch(f"http://127.0.0.1:{port}/v1/models")
    if answer is None:
        return False
    status, body = answer
    if status in (401, 403):
        return True
    try:
        return status == 200 and "data" in json.loads(body)
    except (ValueError, TypeError):
        return False


class Children:
    """The processes started here, in sessions of their own so that Ctrl-C reaches them only through stop()."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, command):
        log = (self.folder / f"{name}.log").open("wb")
        # Should this script be killed outright, the kernel ends its children.
        libc = ctypes.CDLL(None)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                   preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
        self.running.append((name, process))
        return process

    def log_of(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def check(self):
        for name, process in self.running:
            if process.poll() is not None:
                lines = self.log_of(name).strip().splitlines() or ["no message"]
                raise Failure(f"{name} ended (exit {process.returncode}): {lines[-1]}")

    def stop(self):
        # The load first: a server that goes away under it would print errors.
        for _, process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.running.clear()


def start_daemon(children, binaries, folder, listen):
    """The process and the address that it answers at."""
    settings = folder / SETTINGS_NAME
    # "always": no target is there yet that would make the daemon measure.
    settings.write_text(f'[web]\nlisten = "{listen}"\n[state]\ndirectory = "{folder}/state"\n'
                        '[ceiling]\nmeasure = "always"\n')
    (folder / "state").mkdir()
    host, _, port = listen.rpartition(":")
    if listens(int(port)):
        raise Failure(f"{listen} is already in use; is rooflined running? Stop it (systemctl stop rooflined), "
                      "or give another address with --listen")
    daemon = children.start("rooflined", [str(binaries / "rooflined"), "run", "--config", str(settings)])
    base = f"http://{'127.0.0.1' if host in ('', '0.0.0.0', '[::]') else host}:{port}"
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if daemon.poll() is not None:
            children.check()
        answer = fetch(base + "/readyz")
        if answer and answer[0] == 200:
            return daemon, base
        time.sleep(0.2)
    raise Failure(f"the daemon was not ready after {READY_SECONDS_MAX} s: "
                  f"{(children.log_of('rooflined').strip().splitlines() or ['no message'])[-1]}")


class Simulation:
    """A simulated server, and load on it, once the ceiling is known: traffic before that would keep it from being
    measured."""

    def __init__(self, children, daemon, binaries, folder, port):
        self.children, self.daemon, self.binaries, self.folder, self.port = children, daemon, binaries, folder, port
        self.stage = "ceiling"
        self.named = False

    def name_bandwidth(self):
        with (self.folder / SETTINGS_NAME).open("a") as settings:
            settings.write(f'peak_bytes_per_second = "{NAMED_BANDWIDTH}"\n')
        self.daemon.send_signal(signal.SIGHUP)
        self.named = True

    def advance(self, state):
        if self.stage == "ceiling" and state.get("ceiling"):
            model = self.folder / "simulated-model.gguf"
            simulator = str(self.binaries / "rooflined-sim")
            made = subprocess.run([simulator, "make-model", str(model), "--preset", "dense"], check=False,
                                  capture_output=True, text=True)
            if made.returncode != 0:
                raise Failure(f"rooflined-sim make-model: {made.stderr.strip()}")
            self.children.start("rooflined-sim serve", [
                simulator, "serve", "--listen", f"127.0.0.1:{self.port}", "--model", str(model), "--dialect", "llama.cpp",
                "--bandwidth", f"{state['ceiling']['bytes_per_second']:.0f}", "--efficiency", str(EFFICIENCY)])
            self.stage = "server"
        elif self.stage == "server" and listens(self.port):
            self.children.start("rooflined-sim load", [
                str(self.binaries / "rooflined-sim"), "load", "--url", f"http://127.0.0.1:{self.port}",
                "--concurrency", str(CONCURRENCY), "--duration", "86400s", "--prompt-tokens", "200",
                "--output-tokens", "100"])
            self.stage = "loaded"


HEADER = f"{'target':<20}{'tokens/s':>9}{'ITL ms':>9}{'batch':>7}{'context':>9}{'MBU':>8}{'ceiling GB/s':>14}"


def cell(value, width, scale=1.0, digits=1, suffix=""):
    text = "-" if value is None else f"{value * scale:.{digits}f}{suffix}"
    return text.rjust(width)


def row(target, ceiling):
    window = (target.get("windows") or [{}])[0]
    mbu = window.get("mbu_ratio")
    bandwidth = target.get("bandwidth") or (ceiling or {}).get("bytes_per_second")
    return (f"{target['target'][:19]:<20}"
            + cell(window.get("tokens_per_second"), 9)
            + cell((window.get("itl_seconds") or {}).get("mean"), 9, 1e3)
            + cell(window.get("batch_size"), 7)
            + cell(window.get("context_tokens"), 9, digits=0)
            # The ceiling is a lower bound of what the memory can do: over 1 there is no percentage to speak of.
            + ("≥ ceil.".rjust(8) if mbu is not None and mbu > 1 else cell(mbu, 8, 100, 1, " %"))
            + cell(bandwidth, 14, 1e-9))


def status_line(state, elapsed, simulated):
    """What is being waited for, as long as something is."""
    measurements = state.get("ceiling_measurements", {})
    if not state.get("ceiling"):
        failed = {name: count for name, count in measurements.items() if count and name != "adopted"}
        blocked = [reason for reason, on in state.get("idle_blocked", {}).items() if on]
        return (f"measuring the memory's bandwidth, {elapsed:.0f} s"
                + (f"; so far {', '.join(f'{count} {name}' for name, count in failed.items())}" if failed else "")
                + (f"; waiting for: {', '.join(blocked)}" if blocked else ""))
    if not state.get("targets"):
        return "starting a simulated server" if simulated else "waiting for the first streamed request to a server"
    return None


class Table:
    """Redrawn in place on a terminal; on anything else printed once a second, as lines."""

    def __init__(self):
        self.terminal = sys.stdout.isatty()
        self.drawn = 0
        self.header_printed = False
        self.last_status = None

    def note(self, text):
        print(text, flush=True)
        self.drawn = 0  # what is above stays

    def show(self, state, elapsed, simulated):
        rows = [row(target, state.get("ceiling")) for target in state.get("targets", [])]
        status = status_line(state, elapsed, simulated)
        if self.terminal:
            lines = [HEADER, *rows] if rows else []
            # A line that wraps would spoil the redrawing.
            lines += [status[:shutil.get_terminal_size().columns - 1]] if status else []
            print((f"\x1b[{self.drawn}A\x1b[J" if self.drawn else "") + "\n".join(lines), flush=True)
            self.drawn = len(lines)
            return
        if rows and not self.header_printed:
            print(HEADER)
            self.header_printed = True
        for line in rows:
            print(line, flush=True)
        if status and not rows:
            print(status, flush=True)


def show_live(children, base, simulation, seconds):
    started = time.monotonic()
    table = Table()
    while seconds is None or time.monotonic() - started < seconds:
        children.check()
        answer = fetch(base + "/api/v1/state")
        if answer and answer[0] == 200:
            state = json.loads(answer[1])
            if simulation:
                simulation.advance(state)
                if not state.get("ceiling") and not simulation.named and time.monotonic() - started > CEILING_SECONDS_MAX:
                    table.note(f"too busy a machine to measure its memory: simulating one of {NAMED_BANDWIDTH}/s, named in "
                               "the settings as [ceiling] peak_bytes_per_second")
                    simulation.name_bandwidth()
            table.show(state, time.monotonic() - started, simulation is not None)
        time.sleep(1)


def stop_on_signals():
    def handler(number, frame):
        raise Ended

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def ignore_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def run(options, children, folder):
    found = [port for port in USUAL_PORTS if is_inference_server(port)]
    daemon, base = start_daemon(children, options.bin, folder, options.listen)
    print(f"rooflined answers at {base}  (/metrics for Prometheus; Ctrl-C ends it)")
    simulation = None
    if found:
        print(f"inference server found on port {', '.join(map(str, found))}: send it a streamed request")
    else:
        free = [port for port in USUAL_PORTS if not listens(port)]
        if not free:
            raise Failure("no inference server answers, and none of the usual ports is free for a simulated one")
        print(f"no inference server on the usual ports: simulating one on 127.0.0.1:{free[0]}, {CONCURRENCY} streams, "
              f"at {EFFICIENCY:.0%} of the ceiling")
        simulation = Simulation(children, daemon, options.bin, folder, free[0])
    show_live(children, base, simulation, options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--listen", default="127.0.0.1:10074")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    stop_on_signals()
    with tempfile.TemporaryDirectory(prefix="rooflined-quickstart-") as name:
        folder = pathlib.Path(name)
        children = Children(folder)
        try:
            run(options, children, folder)
        except Ended:
            print("\nstopping")
        except Failure as failure:
            print(f"quickstart: {failure}", file=sys.stderr)
            return 2
        finally:
            ignore_signals()
            children.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
