"""What the live tests share: free ports, processes that end with the test, waiting for a condition, HTTP."""

import contextlib
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def require(*programs):
    for program in programs:
        if shutil.which(program) is None and not pathlib.Path(program).exists():
            skip(f"{program} is not installed")


def require_packet_sockets():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except (PermissionError, AttributeError):
        skip("no CAP_NET_RAW")


def free_ports(count):
    """Different ports that nobody listens on now. All are held until the last is known."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(contextlib.closing(socket.socket())) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def get(url, timeout=10):
    with urllib.request.urlopen(url, timeout=timeout) as response:
        return response.read().decode()


def answers(url):
    try:
        get(url, 2)
        return True
    except (OSError, urllib.error.URLError):
        return False


class Processes:
    """Context manager. On the way out every process is ended, and on a failure its output is printed."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.running = []

    def __enter__(self):
        return self

    def start(self, name, *command):
        log = (self.folder / f"{name}.log").open("wb")
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running.append((name, process))
        return process

    def stop(self, process, how=signal.SIGTERM, seconds=20):
        """Ends a process, which wait_for() then no longer takes for a failure; returns its exit status."""
        self.running = [(name, each) for name, each in self.running if each is not process]
        process.send_signal(how)
        return process.wait(seconds)

    def wait_for(self, what, condition, seconds):
        """Polls until `condition()` is true; a process that ends meanwhile is a failure."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return
            for name, process in self.running:
                if process.poll() is not None:
                    raise AssertionError(f"{name} ended with {process.returncode} while waiting for {what}")
            time.sleep(0.2)
        raise AssertionError(f"waited {seconds} s for {what}")

    def __exit__(self, kind, error, trace):
        for _, process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
        for name, process in reversed(self.running):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if kind is not None:
                print(f"---- {name} (exit {process.returncode})\n" + (self.folder / f"{name}.log").read_text()[-4000:])
        return False


class Prometheus:
    """The HTTP API of a running Prometheus."""

    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"

    def _call(self, path, **parameters):
        url = f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            answer = json.loads(get(url))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error
        assert answer["status"] == "success", answer
        return answer["data"]

    def ready(self):
        return answers(self.base + "/-/ready")

    def query(self, expression, at=None):
        """The vector of `expression`: [(labels, value)]."""
        data = self._call("query", query=expression, **({} if at is None else {"time": at}))
        return [(item["metric"], float(item["value"][1])) for item in data["result"]]

    def mean(self, expression, start, end, step=1):
        """The mean over a range, of an expression that is one series there; None where it has no sample."""
        data = self._call("query_range", query=expression, start=start, end=end, step=step)
        assert len(data["result"]) <= 1, f"{expression}: {len(data['result'])} series"
        values = [float(value) for series in data["result"] for _, value in series["values"]]
        return sum(values) / len(values) if values else None

    def label_values(self, selector, label):
        return sorted({labels.get(label, "") for labels, _ in self.query(selector)})
