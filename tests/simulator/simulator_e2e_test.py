#!/usr/bin/env python3
"""serve and load against each other, as black boxes: what the clients count is what the engine says it did.

No figure of time is asserted but ratios that hold whatever the speed of the machine.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

SIM = sys.argv[1]
IDLE_SERVER = ["serve", "--model", "builtin:moe-small", "--bandwidth", "1GB", "--efficiency", "1"]


class Server:
    def __init__(self, *arguments):
        command = [SIM, "serve", "--listen", "127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stderr.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=30) == 0

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def truth(self):
        return self.get("/sim/truth")


def load(url, *arguments, exit_status=0):
    command = [SIM, "load", "--url", url, "--json", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=100, check=False)
    assert done.returncode == exit_status, (command, done.returncode)
    return json.loads(done.stdout)


def close_to(value, wanted, share):
    assert abs(value - wanted) <= share * wanted, f"{value} is not within {share} of {wanted}"


def streams_agree(dialect, route):
    model = ["--model", "builtin:moe-small", "--bandwidth", "100GB", "--efficiency", "0.6", "--dialect", dialect]
    with Server(*model) as server:
        seen = load(server.url + route, "--concurrency", "4", "--duration", "2s", "--prompt-tokens", "20",
                    "--output-tokens", "150")
        truth = server.truth()
    requests = seen["requests"]
    assert requests["failed"] == 0 and requests["cut"] == 0 and requests["completed"] >= 4, requests
    assert seen["output_tokens"] == 150 * requests["completed"] == truth["output_tokens"], (seen, truth)
    assert seen["prompt_tokens"] == 20 * requests["completed"] == truth["prompt_tokens"]
    assert truth["requests"] == {"finished": requests["completed"], "cancelled": 0}
    assert truth["running"] == truth["waiting"] == 0
    # Each pass bears one token for each sequence in it; a request's first token comes from prefill.
    assert truth["decode_tokens"] == 149 * requests["completed"]
    assert truth["decode_tokens"] / 4 <= truth["steps"] <= truth["decode_tokens"]
    assert truth["bytes"]["total"] == sum(truth["bytes"][part] for part in ("dense", "experts", "kv"))
    close_to(truth["mbu"], 0.6, 0.01)
    close_to(seen["itl_seconds"]["mean"], truth["itl_mean_seconds"], 0.05)


def whole_answers_agree():
    model = ["--model", "builtin:moe-small", "--bandwidth", "1000GB", "--efficiency", "1"]
    with Server(*model, "--prefill-rate", "20000", "--overhead", "100us") as server:
        seen = load(server.url, "--rate", "50", "--duration", "1s", "--no-stream", "--output-tokens", "20")
        truth = server.truth()
    assert seen["output_tokens"] == truth["output_tokens"] > 0
    assert seen["ttft_seconds"] is None and seen["itl_seconds"] is None
    assert 0 < truth["mbu"] < 1, truth


def a_client_that_leaves_frees_its_place():
    model = ["--model", "builtin:moe-small", "--bandwidth", "100GB", "--efficiency", "1", "--max-batch", "1"]
    with Server(*model) as server:
        port = int(server.url.rsplit(":", 1)[1])
        body = json.dumps({"prompt": "a", "max_tokens": 100000, "stream": True}).encode()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert client.recv(100)
            while server.truth()["running"] == 0:
                time.sleep(0.01)
        while server.truth()["requests"]["cancelled"] == 0:
            time.sleep(0.01)
        assert server.truth()["running"] == 0
        seen = load(server.url, "--concurrency", "1", "--duration", "1s", "--output-tokens", "3")
        assert seen["output_tokens"] == 3 * seen["requests"]["completed"] > 0


def interrupts_are_clean():
    with Server("--model", "builtin:moe-small", "--bandwidth", "1GB", "--efficiency", "1") as server:
        command = [SIM, "load", "--url", server.url, "--json", "--concurrency", "3", "--duration", "1h"]
        client = subprocess.Popen(command, stdout=subprocess.PIPE)
        while server.truth()["output_tokens"] < 6:
            time.sleep(0.01)
        client.send_signal(signal.SIGINT)
        out, _ = client.communicate(timeout=30)
        assert client.returncode == 130
        assert json.loads(out)["requests"]["cut"] == 3


def bad_input_is_one_line():
    for arguments in (["serve"], ["load", "--url", "ftp://x", "--concurrency", "1", "--duration", "1s"],
                      ["serve", "--listen", "8080", "--model", "builtin:moe-small", "--bandwidth", "1", "--efficiency",
                       "1"], ["make-model", "/nonexistent/m.gguf"], ["nonsense"],
                      [*IDLE_SERVER, "--listen", "127.0.0.1:0", "--change", "1s:colour=red"],
                      [*IDLE_SERVER, "--listen", "127.0.0.1:0", "--change", "1s:rate=5"],
                      [*IDLE_SERVER, "--listen", "127.0.0.1:0", "--change", "soon:efficiency=1"],
                      [*IDLE_SERVER, "--listen", "127.0.0.1:0", "--change", "1s:efficiency=2"],
                      [*IDLE_SERVER, "--pcap", "/nonexistent/x.pcap", "--concurrency", "1", "--duration", "1s"],
                      [*IDLE_SERVER, "--pcap", "/dev/null", "--duration", "1s"],
                      ["load", "--url", "http://127.0.0.1:9", "--concurrency", "1", "--duration", "1s",
                       "--output-tokens", "9-3"]):
        done = subprocess.run([SIM, *arguments], capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1, (arguments, done)
    nobody = load("http://127.0.0.1:9", "--concurrency", "1", "--duration", "100ms", exit_status=1)
    assert nobody["requests"]["completed"] == 0 and nobody["failures"]


def a_written_model_is_served():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.gguf")
        subprocess.run([SIM, "make-model", path], check=True, timeout=30)
        with Server("--model", path, "--bandwidth", "1e12", "--efficiency", "1", "--dialect", "llama.cpp") as server:
            assert server.get("/props")["model_path"] == os.path.realpath(path)
            assert server.get("/v1/models")["data"][0]["id"] == "m.gguf"
            assert server.get("/health")["status"] == "ok"


def a_capture_tells_its_truth():
    command = [SIM, "serve", "--model", "builtin:moe-small", "--bandwidth", "100GB", "--efficiency", "0.6", "--dialect",
               "vllm", "--concurrency", "4", "--duration", "20s", "--prompt-tokens", "50-100", "--output-tokens", "exp:80",
               "--change", "10s:efficiency=0.3,version=9.9,restart=2s,concurrency=1,output-tokens=20"]
    with tempfile.TemporaryDirectory() as folder:
        captures, truths = [], []
        for name in ("a", "b"):
            path = os.path.join(folder, name)
            truths.append(subprocess.run([*command, "--pcap", path], check=True, timeout=60, capture_output=True).stdout)
            with open(path, "rb") as capture:
                captures.append(capture.read())
    assert truths[0] == truths[1]
    # The ids of responses are another server's in each run: as long, and of other letters.
    assert len(captures[0]) == len(captures[1]) > 100_000
    assert b"vllm-0.11.0-" in captures[0] and b"vllm-9.9-" in captures[0]
    first, second = json.loads(truths[0])["phases"]
    close_to(first["mbu"], 0.6, 0.001)
    close_to(second["mbu"], 0.3, 0.001)
    close_to(first["batch_mean"], 4, 0.1)
    close_to(second["batch_mean"], 1, 0.001)


def changes_come_while_it_serves():
    with Server("--model", "builtin:moe-small", "--bandwidth", "100GB", "--efficiency", "0.6", "--dialect", "llama.cpp",
                "--change", "4s:efficiency=0.3", "--change", "6s:version=b2-b,restart=100ms") as server:
        assert server.truth()["efficiency"] == 0.6 and server.truth()["version"] == "b10488-5eae9cb4"
        tokens = load(server.url, "--concurrency", "1", "--duration", "1s", "--output-tokens", "10")["output_tokens"]
        while server.truth()["efficiency"] == 0.6:
            time.sleep(0.05)
        while True:
            try:
                if server.get("/props")["build_info"] == "b2-b":
                    break
            except OSError:
                pass
            time.sleep(0.05)
        # What was done before the restart is not forgotten.
        assert server.truth()["output_tokens"] == tokens > 0
        assert server.truth()["efficiency"] == 0.3


def the_boundary_is_found():
    with Server("--model", "builtin:moe-small", "--bandwidth", "10TB", "--efficiency", "1", "--overhead", "5ms",
                "--max-batch", "1") as server:
        command = [SIM, "slo", "--url", server.url, "--ttft", "100ms", "--output-tokens", "10", "--trial", "1s",
                   "--first-rate", "2", "--precision", "0.5", "--json"]
        found = json.loads(subprocess.run(command, check=True, timeout=100, capture_output=True).stdout)
    assert found["found"] and found["rate"] >= 2, found
    fails = [trial["rate"] for trial in found["trials"] if not trial["meets"]]
    # One at a time, each of ten steps of 5 ms: more than 20 a second cannot be served.
    assert found["rate"] < min(fails) and found["boundary"]["rate"] == found["rate"] < 40, found
    assert found["boundary"]["load"]["requests"]["good"] > 0


def clients_leave_and_read_slowly():
    with Server("--model", "builtin:moe-small", "--bandwidth", "100GB", "--efficiency", "1") as server:
        seen = load(server.url, "--concurrency", "8", "--duration", "2s", "--output-tokens", "20-60", "--prompt-tokens",
                    "exp:30", "--abort-share", "0.3", "--slow-share", "0.1", "--whole-share", "0.2", "--ttft", "10s")
    requests = seen["requests"]
    assert requests["failed"] == 0 and requests["left"] > 0 and 0 < requests["good"] <= requests["completed"], requests


streams_agree("openai", "/v1/chat/completions")
streams_agree("llama.cpp", "/completion")
streams_agree("vllm", "/v1/completions")
streams_agree("sglang", "/v1/chat/completions")
streams_agree("ollama", "/api/chat")
a_capture_tells_its_truth()
changes_come_while_it_serves()
the_boundary_is_found()
clients_leave_and_read_slowly()
whole_answers_agree()
a_client_that_leaves_frees_its_place()
interrupts_are_clean()
bad_input_is_one_line()
a_written_model_is_served()
