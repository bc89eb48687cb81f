"""A scrape that moves: a recorded one, its counters growing with time, served like the daemon serves it."""

import http.server
import re
import threading
import time


class Exposition:
    """Context manager: an endpoint on 127.0.0.1 whose /metrics is `text` with counters that grow by a hundredth a second."""

    def __init__(self, text):
        self.lines = text.splitlines()
        self.growing = set()
        for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.M):
            if kind == "counter":
                self.growing.add(name)
            elif kind == "histogram":
                self.growing |= {f"{name}_{part}" for part in ("bucket", "sum", "count")}
        self.began = time.monotonic()

    def scrape(self):
        factor = 1 + (time.monotonic() - self.began) / 100
        out = []
        for line in self.lines:
            name = re.match(r"[^{ ]*", line)[0]
            if name in self.growing:
                series, value = line.rsplit(" ", 1)
                line = f"{series} {float(value) * factor!r}"
            out.append(line)
        return "\n".join(out) + "\n"

    def __enter__(self):
        exposition = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(exposition.scrape().encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        return False
