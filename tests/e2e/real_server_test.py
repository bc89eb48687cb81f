"""The daemon beside a real llama-server: real_server_test.py BIN_DIR MODELS_FOLDER COMMAND…

Nothing is configured but the ports. 1, 4 and 8 clients stream answers on three routes; the daemon's counters are held
against what the server itself counted: tokens exactly, passes within 1 % of its decode calls less those that only
prefilled (5 % where it speculates), sequence seconds within 1 % of its predicted_ms."""

import http.client
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

import processes

ROUTES = ["/v1/chat/completions", "/v1/completions", "/completion"]
WORDS = "river stone light paper window garden winter letter morning engine silver music forest table".split()


class Request:
    """One streamed request, and when its tokens came."""

    def __init__(self, port, seed, model=None, host="127.0.0.1"):
        chance = random.Random(seed)
        self.host, self.port, self.model = host, port, model
        self.route = ROUTES[seed % len(ROUTES)]
        self.tokens_wanted = chance.randint(40, 120)
        self.prompt = " ".join(chance.choice(WORDS) for _ in range(chance.randint(5, 60)))
        self.sent = self.first = self.last = 0.0
        self.timings = {}

    def body(self):
        body = {"stream": True, "ignore_eos": True, "cache_prompt": False, "n_predict": self.tokens_wanted}
        if self.route.endswith("chat/completions"):
            body["messages"] = [{"role": "user", "content": self.prompt}]
        else:
            body["prompt"] = self.prompt
        if self.model is not None:
            body["model"] = self.model
        return json.dumps(body)

    def run(self):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=300)
        self.sent = time.monotonic()
        connection.request("POST", self.route, self.body(), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200, (response.status, response.read())
        for line in response:
            if not line.startswith(b"data: {"):
                continue
            self.last = time.monotonic()
            self.first = self.first or self.last
            self.timings = json.loads(line[6:]).get("timings") or self.timings
        connection.close()
        assert self.timings.get("predicted_n") == self.tokens_wanted, self.timings


def decode_calls(port):
    return float(re.search(r"^llamacpp:n_decode_total (\S+)", processes.get(f"http://127.0.0.1:{port}/metrics"), re.M)[1])


def prefill_only_calls(requests):
    """Decode calls in which nothing but prompts ran: prefills with no other sequence in decode, those of one call once."""
    alone = []
    for request in requests:
        begin = request.first - request.timings["prompt_ms"] / 1e3
        middle = (begin + request.first) / 2
        if not any(other.first < middle < other.last for other in requests if other is not request):
            alone.append((begin, request.first))
    calls, end = 0, 0.0
    for begin, first in sorted(alone, key=lambda span: span[1]):
        if begin >= end - 0.002:
            calls += 1
        end = max(end, first)
    return calls


def series(port, target_prefix):
    """The daemon's figures of the one target: {name: sum over the other labels}."""
    figures = {}
    for line in processes.get(f"http://127.0.0.1:{port}/metrics").splitlines():
        match = re.match(r'rooflined_(\w+)\{[^}]*target="([^"]*)"[^}]*\} (\S+)', line)
        if match and match[2].startswith(target_prefix) and 'window="5m"' not in line:
            figures[match[1]] = figures.get(match[1], 0.0) + float(match[3])
    return figures


def settled(web, name, wanted):
    """Waits until the ledger has settled what it saw."""
    deadline = time.monotonic() + 10
    while True:
        figures = series(web, "llama.cpp")
        if figures.get(name, 0) >= wanted or time.monotonic() > deadline:
            time.sleep(3)
            return series(web, "llama.cpp")
        time.sleep(0.3)


def run_at_once(clients):
    """A list of requests for each client, which makes them one after the other."""
    failures = []

    def client(mine):
        try:
            for request in mine:
                request.run()
        except Exception as error:  # an assertion in a thread would be lost
            failures.append(error)

    threads = [threading.Thread(target=client, args=(mine,)) for mine in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def run_clients(port, clients, each, seed):
    requests = [[Request(port, seed + 1000 * c + i) for i in range(each)] for c in range(clients)]
    run_at_once(requests)
    return [request for mine in requests for request in mine]


def compare(what, ours, theirs, tolerance):
    difference = ours / theirs - 1
    print(f"  {what:<18}{ours:>12.3f}  server {theirs:>12.3f}  {difference:+.3%}")
    return [] if abs(difference) <= tolerance else [f"{what}: {ours} against {theirs}, allowed {tolerance:.1%}"]


class Watched:
    """A server with a daemon beside it, which has counted so much of it so far."""

    def __init__(self, folder, running, programs, command, options):
        self.port, self.web = processes.free_ports(2)
        settings = pathlib.Path(folder) / "rooflined.toml"
        settings.write_text(
            f'[web]\nlisten = "127.0.0.1:{self.web}"\n[state]\ndirectory = "{folder}/state"\n'
            f"[capture]\nports = [{self.port}]\n[ceiling]\npeak_bytes_per_second = 50e9\n"
        )
        running.start("server", *command, "--host", "127.0.0.1", "--port", self.port, "-c", 8192, "-t", 1, "--metrics",
                      "--no-webui", *options)
        running.wait_for("the server", lambda: processes.answers(f"http://127.0.0.1:{self.port}/health"), 120)
        running.start("daemon", programs / "rooflined", "run", "--config", settings)
        running.wait_for("the daemon", lambda: processes.answers(f"http://127.0.0.1:{self.web}/readyz"), 30)
        self.before = {}

    def measure(self, clients, each, passes_tolerance):
        """The faults."""
        calls = decode_calls(self.port)
        requests = run_clients(self.port, clients, each, 7 * clients)
        calls = decode_calls(self.port) - calls - prefill_only_calls(requests)
        tokens = sum(request.timings["predicted_n"] for request in requests)
        figures = settled(self.web, "output_tokens_total", self.before.get("output_tokens_total", 0) + tokens)
        grown = {name: value - self.before.get(name, 0) for name, value in figures.items()}
        self.before = figures
        print(f"{clients} clients, {len(requests)} requests")
        faults = compare("output tokens", grown.get("output_tokens_total", 0), tokens, 0)
        prompts = sum(r.timings["prompt_n"] + r.timings.get("cache_n", 0) for r in requests)
        faults += compare("prompt tokens", grown.get("prompt_tokens_total", 0), prompts, 0)
        faults += compare("passes", grown.get("decode_passes_total", 0), calls, passes_tolerance)
        seconds = sum(request.timings["predicted_ms"] for request in requests) / 1e3
        faults += compare("sequence seconds", grown.get("decode_sequence_seconds_total", 0), seconds, 0.01)
        batch = grown["decode_sequence_seconds_total"] / grown["decode_busy_seconds_total"]
        print(f"  MBU {figures.get('mbu_ratio')}, batch {batch:.2f}")
        if grown.get("decode_bytes_total", 0) <= 0:
            faults.append("no bytes: the model file was not found")
        return faults


def plain(programs, models, command):
    faults = []
    with tempfile.TemporaryDirectory() as folder, processes.Processes(folder) as running:
        watched = Watched(folder, running, programs, command, ["-m", f"{models}/random.gguf", "-np", 8])
        for clients, each in ((1, 6), (4, 4), (8, 3)):
            faults += watched.measure(clients, each, 0.01)
    return faults


def speculating(programs, models, command):
    """A draft model that is right as often as the server is told: 0.3, 0.6 and 0.95 of four drafts, on two slots."""
    options = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False).stdout
    if "--spec-synth-len" not in options:
        print("this llama-server cannot be told how often its drafts are right")
        return []
    faults = []
    for acceptance in (0.3, 0.6, 0.95):
        with tempfile.TemporaryDirectory() as folder, processes.Processes(folder) as running:
            print(f"drafts right at {acceptance}")
            watched = Watched(folder, running, programs, command,
                              ["-m", f"{models}/random.gguf", "-md", f"{models}/draft.gguf", "--spec-type", "draft-simple",
                               "--spec-draft-n-max", 4, "--spec-synth-len", 1 + 4 * acceptance, "-np", 2])
            faults += watched.measure(2, 4, 0.05)
    return faults


def main():
    programs, models, command = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    processes.require_packet_sockets()
    faults = plain(programs, models, command) + speculating(programs, models, command)
    for fault in faults:
        print("FAILED:", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
