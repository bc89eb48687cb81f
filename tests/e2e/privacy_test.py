#!/usr/bin/env python3
"""No text of a conversation outlives its exchange: privacy_test.py BIN_DIR

A server that answers with a canary in every place where a server can put text, and a client that asks with it. When
the exchanges are over, the canary is nowhere: not in the log (which has no more talkative level), the metrics, the state, the
trace, the API, and not in the memory of the process (what a core image would hold), the capture's ring included."""

import gzip
import json
import pathlib
import re
import socket
import sys
import tempfile
import threading
import time

from processes import Processes, answers, free_ports, get, require, require_packet_sockets

CANARY = "ornithorhynchus"
TOKENS = 40


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(value):
    return b"data: " + (value if isinstance(value, str) else json.dumps(value)).encode() + b"\n\n"


def chat(delta, finish=None):
    return event({"id": f"chatcmpl-{CANARY}", "object": "chat.completion.chunk", "model": CANARY,
                  "system_fingerprint": f"b1-{CANARY} {CANARY}",
                  "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def chat_frames():
    yield chat({"role": "assistant", "content": CANARY})
    for number in range(TOKENS):
        kinds = [{"content": f"{CANARY} \\u00e4\\n \"{CANARY}\""}, {"reasoning_content": CANARY},
                 {"tool_calls": [{"index": 0, "function": {"name": CANARY, "arguments": f'{{"a": "{CANARY}'}}]}]
        yield chat(kinds[number % len(kinds)])
    yield b": " + CANARY.encode() + b"\n\n"
    yield b"data: {\"choices\": [{\"delta\": {\"content\": \"" + CANARY.encode() + b"\xff\xfe\n\n"
    yield event(f"{CANARY} {{ \"{CANARY}")
    yield chat({}, "stop")
    yield event("[DONE]")


def native_frames():
    for _ in range(TOKENS):
        yield event({"content": CANARY, "tokens": [1], "stop": False, "id_slot": 0, "index": 0})
    yield event({"content": "", "stop": True, "model": CANARY, "tokens_predicted": TOKENS, "prompt": CANARY,
                 "generation_settings": {"prompt": CANARY, "stop": [CANARY]}})


def error_frames():
    yield chat({"content": CANARY})
    yield event({"error": {"message": CANARY, "type": CANARY, "code": CANARY}})


ROUTES = {"/v1/chat/completions": chat_frames, "/completion": native_frames, "/v1/completions": error_frames}


def answer(connection):
    with connection:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        head, _, body = request.partition(b"\r\n\r\n")
        length = int((re.search(rb"content-length: *(\d+)", head, re.I) or [0, 0])[1])
        while len(body) < length:
            body += connection.recv(65536)
        path = head.split(b" ")[1].decode().split("?")[0]
        frames = ROUTES.get(path)
        if frames is None:
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        packed = b"x-packed" in head
        fields = f"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nServer: {CANARY}\r\n"
        fields += f"Set-Cookie: session={CANARY}\r\nX-{CANARY}: {CANARY}\r\nConnection: close\r\n"
        fields += "Content-Encoding: gzip\r\n" if packed else ""
        connection.sendall(f"HTTP/1.1 200 {CANARY}\r\n{fields}\r\n".encode())
        if packed:
            connection.sendall(chunk(gzip.compress(b"".join(frames()))))
        else:
            for frame in frames():
                middle = len(frame) // 2  # a frame in two segments waits in a buffer
                connection.sendall(f"{len(frame):x}\r\n".encode() + frame[:middle])
                time.sleep(0.003)
                connection.sendall(frame[middle:] + b"\r\n")
        connection.sendall(b"0\r\n\r\n")


def serve(listener):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def ask(port, path, more=""):
    body = json.dumps({"model": CANARY, "stream": True, "user": CANARY, "prompt": f"{CANARY} " * 20,
                       "messages": [{"role": "user", "content": f"{CANARY} " * 20}]})
    head = (f"POST {path}?key={CANARY} HTTP/1.1\r\nHost: {CANARY}.example\r\nAuthorization: Bearer {CANARY}\r\n"
            f"X-Api-Key: {CANARY}\r\nCookie: session={CANARY}\r\nUser-Agent: {CANARY}\r\n{more}"
            f"Content-Length: {len(body)}\r\n\r\n")
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode())
        connection.sendall(body[:50].encode())
        time.sleep(0.01)
        connection.sendall(body[50:].encode())
        received = b""
        while data := connection.recv(65536):
            received += data
    assert received.endswith(b"0\r\n\r\n"), received[-200:]


def memory_with(pid, text):
    """Readable mappings of a process that hold `text`, and how many bytes were looked through."""
    found, size = [], 0
    wanted = text.encode()
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            place, mode = line.split()[:2]
            if mode[0] != "r" or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            begin, end = (int(part, 16) for part in place.split("-"))
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except OSError:
                continue
            size += len(content)
            at = content.find(wanted)
            if at >= 0:
                found.append((line.strip(), content[max(0, at - 60):at + 60]))
    return found, size


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    program = binaries / "rooflined"
    require(program)
    require_packet_sockets()
    port, web = free_ports(2)
    listener = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        (folder / "state").mkdir()
        settings, trace, log = folder / "rooflined.toml", folder / "trace", folder / "rooflined.log"
        settings.write_text(f'[web]\nlisten = "127.0.0.1:{web}"\n[state]\ndirectory = "{folder}/state"\n'
                            f'[capture]\ninterface = "any"\nports = [{port}]\n[ceiling]\n'
                            "peak_bytes_per_second = 40e9\n")
        daemon = processes.start("rooflined", program, "run", "--config", settings, "--trace", trace)
        processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{web}/readyz"), 20)
        for path in ROUTES:
            ask(port, path)
            ask(port, path, "x-packed: yes\r\n")

        def requests():
            return sum(map(float, re.findall(r"^rooflined_requests_total\{.*\} (\S+)$",
                                             get(f"http://127.0.0.1:{web}/metrics"), re.M)))

        processes.wait_for("the requests", lambda: requests() == 2 * len(ROUTES), 20)
        time.sleep(2)  # the last intervals settle
        found, size = memory_with(daemon.pid, CANARY)
        print(f"looked through {size} bytes of memory")
        assert size > 1_000_000, size
        assert not found, found
        places = {path: get(f"http://127.0.0.1:{web}{path}") for path in ("/metrics", "/api/v1/state", "/api/v1/history", "/")}
        for path in (folder / "state").rglob("*"):
            if path.is_file():
                places[str(path)] = path.read_text(errors="replace")
        assert processes.stop(daemon) == 0
        places |= {"log": log.read_text(errors="replace"), "trace": trace.read_text(errors="replace")}
        for place, text in places.items():
            assert CANARY not in text, f"text of a conversation in {place}"
        assert len(places["trace"].splitlines()) > 2 * TOKENS, "nothing was traced"
    return 0


if __name__ == "__main__":
    sys.exit(main())
