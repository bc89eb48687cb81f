"""A daemon beside many simulated servers, each of which has answered two requests: the first makes it known, and what is
read of its model comes too late for it."""

import json
import subprocess
import urllib.request

from processes import answers, free_ports, get

TOKENS = 40


def settings(folder, web, ports, more=""):
    path = folder / "rooflined.toml"
    path.write_text(f"""
[web]
listen = "127.0.0.1:{web}"
[state]
directory = "{folder}/state"
[capture]
interface = "lo"
ports = {json.dumps(ports)}
[ceiling]
peak_bytes_per_second = 400e9
{more}""")
    (folder / "state").mkdir(exist_ok=True)
    return path


def ask(port, tokens=TOKENS):
    """One streamed answer of a server, read to its end."""
    body = json.dumps({"model": "m", "stream": True, "max_tokens": tokens, "messages": [{"role": "user", "content": "x"}]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert b"[DONE]" in answer.read(), f"port {port}: no end of the answer"


def state(web):
    return json.loads(get(f"http://127.0.0.1:{web}/api/v1/state"))


def start(processes, binaries, folder, count):
    """The web port of a daemon that shows `count` targets, the ports of their servers, and the daemon's process."""
    web, *ports = free_ports(count + 1)
    model = folder / "model.gguf"
    subprocess.run([binaries / "rooflined-sim", "make-model", model, "--preset", "dense"], check=True)
    for index, port in enumerate(ports):
        processes.start(f"sim-{index}", binaries / "rooflined-sim", "serve", "--listen", f"127.0.0.1:{port}", "--model", model,
                        "--bandwidth", "200e9", "--efficiency", "0.6", "--dialect", "llama.cpp")
    daemon = processes.start("rooflined", binaries / "rooflined", "run", "--config", settings(folder, web, ports))
    processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{web}/readyz"), 20)
    for port in ports:
        processes.wait_for("a server", lambda: answers(f"http://127.0.0.1:{port}/v1/models"), 20)
    # One after the other: the simulators say the same words, and the same words at the same time are one stream on its way
    # through several hops.
    for port in ports:
        ask(port)
    processes.wait_for("the models", lambda: sum("geometry" in target for target in state(web)["targets"]) == count, 30)
    for port in ports:
        ask(port)
    processes.wait_for("the tokens", lambda: sum(t["output_tokens"] for t in state(web)["targets"]) == 2 * count * TOKENS, 30)
    return web, ports, daemon
