#!/usr/bin/env python3
"""`rooflined run` as an operator meets it: run_test.py BIN_DIR

- finds a server by itself and shows MBU; the words of a conversation appear nowhere: not in the metrics, the state, the
  log, the state directory or the trace;
- a second daemon on the same port fails with one line;
- wrong settings are one line each, with file, line and column, and exit 2;
- SIGHUP takes new settings and refuses broken ones; SIGTERM ends it with 0;
- its trace replays to the tokens that it counted."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from processes import Processes, answers, free_ports, get, require, require_packet_sockets

CANARY = "ornithorhynchus"


def settings_text(folder, web, port, more=""):
    return f"""
[web]
listen = "127.0.0.1:{web}"
[state]
directory = "{folder}/state"
[capture]
interface = "lo"
ports = [{port}]
[ceiling]
peak_bytes_per_second = 40e9
{more}"""


def failure(command):
    """Exit status and the lines on stderr of a command that is expected to fail."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stderr.strip().splitlines()


def value(web, pattern):
    found = re.search("^" + pattern + r" (\S+)$", get(f"http://127.0.0.1:{web}/metrics"), re.M)
    return float(found[1]) if found else None


def check_second_daemon(program, settings):
    status, lines = failure([program, "run", "--config", settings])
    assert status not in (0, None), "a second daemon runs"
    assert len(lines) == 1 and "in use" in lines[0], lines


def check_bad_settings(program, folder):
    path = folder / "bad.toml"
    path.write_text('[web]\nlissten = "127.0.0.1:1"\n[windows]\nspans = ["nonsense"]\n')
    status, lines = failure([program, "run", "--config", path])
    assert status == 2, status
    assert len(lines) == 2 and f"{path}:2:1: " in lines[0] and "listen" in lines[0], lines
    status, lines = failure([program, "check-config", path])
    assert status == 2 and len(lines) == 2, lines
    status, lines = failure([program, "run", "--config", path, "--log-format", "json"])
    assert status == 2 and [json.loads(line)["level"] for line in lines] == ["error", "error"], lines
    path.write_text('[web]\nlisten = ":1"\n')
    done = subprocess.run([program, "check-config", path], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 and "open to the network and asks for no password" in done.stdout, done


def check_reload(daemon, log, settings, folder, web, port):
    settings.write_text(settings_text(folder, web, port).replace("40e9", "80e9"))
    daemon.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    while value(web, "rooflined_ceiling_bytes_per_second") != 80e9:
        assert time.monotonic() < deadline, "the new ceiling did not come"
        time.sleep(0.2)
    settings.write_text("[web\n")
    daemon.send_signal(signal.SIGHUP)
    while "the running ones stay" not in log.read_text():
        assert time.monotonic() < deadline, "broken settings were not refused"
        time.sleep(0.2)
    assert value(web, "rooflined_ceiling_bytes_per_second") == 80e9


def shown(folder, web):
    places = {path: get(f"http://127.0.0.1:{web}{path}") for path in ("/metrics", "/api/v1/state", "/api/v1/history", "/")}
    for path in (folder / "state").rglob("*"):
        if path.is_file():
            places[str(path)] = path.read_text(errors="replace")
    return places


def check_no_text(places):
    for place, text in places.items():
        assert CANARY not in text, f"text of a conversation in {place}"
    assert len(places["trace"].splitlines()) > 50, "nothing was traced"


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    program, sim = binaries / "rooflined", binaries / "rooflined-sim"
    require(program, sim)
    require_packet_sockets()
    port, web = free_ports(2)
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        (folder / "state").mkdir()
        settings, trace, log = folder / "rooflined.toml", folder / "trace", folder / "rooflined.log"
        settings.write_text(settings_text(folder, web, port))
        model = folder / "model.gguf"
        subprocess.run([sim, "make-model", model, "--preset", "dense"], check=True)
        processes.start("sim", sim, "serve", "--listen", f"127.0.0.1:{port}", "--model", model, "--bandwidth", "40e9",
                        "--efficiency", "0.6", "--dialect", "llama.cpp")
        daemon = processes.start("rooflined", program, "run", "--config", settings, "--trace", trace)
        processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{web}/readyz"), 20)
        processes.wait_for("the server", lambda: answers(f"http://127.0.0.1:{port}/v1/models"), 20)

        body = json.dumps({"model": CANARY, "stream": True, "user": CANARY, "max_tokens": 150,
                           "messages": [{"role": "user", "content": f"{CANARY} " * 50}]})
        for _ in range(2):
            answer = subprocess.run(
                ["curl", "-sSN", f"http://127.0.0.1:{port}/v1/chat/completions?key={CANARY}", "-d", body,
                 "-H", f"Authorization: Bearer {CANARY}", "-H", f"Cookie: session={CANARY}",
                 "-H", "Content-Type: application/json"], capture_output=True, text=True, check=True).stdout
            assert "[DONE]" in answer, answer[-300:]
        processes.wait_for("the tokens", lambda: value(web, r"rooflined_output_tokens_total\{.*\}") == 300, 15)
        processes.wait_for("an MBU", lambda: value(web, r'rooflined_mbu_ratio\{.*window="1m".*\}') is not None, 15)
        print("MBU", value(web, r'rooflined_mbu_ratio\{.*window="1m".*\}'))

        check_second_daemon(program, settings)
        check_bad_settings(program, folder)
        check_reload(daemon, log, settings, folder, web, port)
        places = shown(folder, web)
        assert processes.stop(daemon) == 0
        check_no_text(places | {"log": log.read_text(), "trace": trace.read_text()})
        replayed = subprocess.run([program, "replay", trace, "--json"], capture_output=True, text=True, check=True)
        assert json.loads(replayed.stdout)["targets"][0]["output_tokens"] == 300, replayed.stdout
    return 0


if __name__ == "__main__":
    sys.exit(main())
