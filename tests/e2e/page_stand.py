"""Serves the daemon's own page, with its own headers, over states that somebody made."""

import http.server
import json
import threading
import urllib.request

import page_states


class Stand:
    """Context manager: `url` shows the page over the state called `shown`."""

    def __init__(self, page_url):
        with urllib.request.urlopen(page_url, timeout=10) as answer:
            self.page = answer.read()
            self.headers = [(name, answer.headers[name]) for name in ("Content-Type", "Content-Security-Policy", "Referrer-Policy")]
        self.shown = "one"

    def _body(self, path):
        state = page_states.STATES[self.shown]
        if path == "/api/v1/state":
            return json.dumps(state).encode()
        return json.dumps(page_states.history(state)).encode() if path == "/api/v1/history" else None

    def __enter__(self):
        stand = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = stand.page if self.path == "/" else stand._body(self.path)
                self.send_response(200 if body else 404)
                for name, value in stand.headers if self.path == "/" else [("Content-Type", "application/json")]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        return False
