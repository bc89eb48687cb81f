#!/usr/bin/env python3
"""`rooflined doctor` on real wrong set-ups, and on one where nothing is wrong: doctor_test.py BIN_DIR

Each wrong set-up is made, not described: settings with a fault, no such interface, no right to capture, no daemon, no
server on the watched port, a model that the daemon's user may not read, an encrypted port, an open endpoint."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from processes import Processes, answers, free_ports, get, require, require_packet_sockets


def settings_text(folder, web, port, more="", listen="127.0.0.1"):
    return f"""
[web]
listen = "{listen}:{web}"
[state]
directory = "{folder}/state"
[capture]
ports = [{port}]
[ceiling]
peak_bytes_per_second = 40e9
{more}"""


def doctor(program, settings, *more, prefix=()):
    command = [*prefix, str(program), "doctor", "--config", str(settings), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    answer = json.loads(done.stdout)
    return done.returncode, {(each["health"], each["topic"]): each for each in answer["findings"]}


def expect(findings, health, topic, words, fix=""):
    found = findings.get((health, topic))
    assert found is not None, f"no {health} {topic} in {list(findings)}"
    assert words in found["text"], found
    assert fix in "\n".join(found["fix"]), found


def check_without_a_daemon(program, folder, web, port):
    settings = folder / "plain.toml"
    settings.write_text(settings_text(folder, web, port))
    status, findings = doctor(program, settings)
    assert status == 1, status
    expect(findings, "broken", "daemon", "does not answer", "systemctl enable --now rooflined")
    expect(findings, "broken", "ports", f"no server listens on a watched port ({port})", "[capture]")

    settings.write_text(settings_text(folder, web, port) + "\nprots = 1\n")
    status, findings = doctor(program, settings)
    assert status == 2, status
    expect(findings, "broken", "settings", "plain.toml:", "check-config")

    settings.write_text(settings_text(folder, web, port).replace("[capture]", '[capture]\ninterface = "nowhere0"'))
    _, findings = doctor(program, settings)
    expect(findings, "broken", "capture", "there is no interface nowhere0", "ip -brief link")

    settings.write_text(settings_text(folder, web, port, listen="0.0.0.0"))
    _, findings = doctor(program, settings)
    expect(findings, "hint", "endpoint", "open to the network", "basic_auth_users")

    unprivileged = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")
    settings.write_text(settings_text(folder, web, port))
    os.chmod(folder, 0o755)
    _, findings = doctor(program, settings, prefix=unprivileged)
    expect(findings, "broken", "capture", "CAP_NET_RAW", "setcap cap_net_raw=ep")


def check_model(program, folder, web, port):
    model = folder / "private" / "m.gguf"
    model.parent.mkdir()
    model.write_bytes(b"GGUF")
    os.chmod(model.parent, 0o750)
    os.chmod(model, 0o640)
    settings = folder / "model.toml"
    target = f'[[target]]\nname = "chat"\nport = {port}\nmodel = "{model}"\n'
    settings.write_text(settings_text(folder, web, port, target))
    _, findings = doctor(program, settings, "--user", "nobody")
    expect(findings, "broken", "model of chat", f"user nobody may not read {model}", "SupplementaryGroups=root")
    os.chmod(model.parent, 0o755)
    os.chmod(model, 0o644)
    _, findings = doctor(program, settings, "--user", "nobody")
    expect(findings, "ok", "model of chat", str(model))


def check_with_a_daemon(folder, programs, web, port):
    settings = folder / "live.toml"
    settings.write_text(settings_text(folder, web, port))
    with Processes(folder) as processes:
        processes.start("sim", programs / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{port}", "--model",
                        "builtin:llama-3.2-1b-q8_0", "--bandwidth", "40e9", "--efficiency", "0.6")
        processes.start("daemon", programs / "rooflined", "run", "--config", settings)
        processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{web}/healthz"), 20)
        processes.wait_for("the simulator", lambda: answers(f"http://127.0.0.1:{port}/v1/models"), 20)
        _, findings = doctor(programs / "rooflined", settings)
        expect(findings, "ok", "daemon", f"answers on 127.0.0.1:{web}")
        expect(findings, "ok", "ports", str(port))
        expect(findings, "hint", "targets", "none yet", "stream")
        expect(findings, "ok", "ceiling", "40.0 GB/s, configured")

        # A TLS client hello to the watched port.
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(bytes.fromhex("16030100c8010000c40303") + bytes(189))
        state = lambda: json.loads(get(f"http://127.0.0.1:{web}/api/v1/state"))
        processes.wait_for("the encrypted connection", lambda: state()["capture"]["parse_errors"].get("tls", 0) > 0, 20)
        status, findings = doctor(programs / "rooflined", settings)
        assert status == 1, status
        expect(findings, "broken", "TLS", "encrypted", "proxy")


def main():
    programs = pathlib.Path(sys.argv[1])
    require(programs / "rooflined", programs / "rooflined-sim", "setpriv")
    require_packet_sockets()
    with tempfile.TemporaryDirectory(prefix="rooflined-doctor-") as name:
        folder = pathlib.Path(name)
        web, port = free_ports(2)
        check_without_a_daemon(programs / "rooflined", folder, web, port)
        check_model(programs / "rooflined", folder, web, port)
        check_with_a_daemon(folder, programs, web, port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
