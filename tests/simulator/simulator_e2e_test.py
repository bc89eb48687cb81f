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
                       "1"], ["make-model", "/nonexistent/m.gguf"], ["nonsense"]):
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


streams_agree("openai", "/v1/chat/completions")
streams_agree("llama.cpp", "/completion")
whole_answers_agree()
a_client_that_leaves_frees_its_place()
interrupts_are_clean()
bad_input_is_one_line()
a_written_model_is_served()
