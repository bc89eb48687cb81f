"""A headless Chromium, driven over a pipe: opens a page, runs scripts in it, takes pictures, collects what goes wrong."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

SECONDS_MAX = 30


class Browser:
    """Context manager. `errors` collects exceptions, console errors and refused resources of every page opened."""

    def __init__(self, folder):
        self.folder = folder
        self.errors = []
        self.number = 0
        self.buffer = b""
        self.session = None

    @staticmethod
    def program():
        return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

    def __enter__(self):
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()

        def take_pipes():
            # Out of the way of 3 and 4 first: those numbers are what the browser expects.
            low, high = os.dup(read_commands), os.dup(write_answers)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.log = open(self.folder / "chromium.log", "wb")
        # No sandbox: the tests run as root in containers, and open nothing but pages of their own.
        self.process = subprocess.Popen(
            [self.program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", f"--user-data-dir={self.folder}/chromium"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False, preexec_fn=take_pipes)
        os.close(read_commands)
        os.close(write_answers)
        return self

    def __exit__(self, *_):
        self.call("Browser.close", session=False)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.log.close()
        return False

    def _message(self, seconds):
        """The next message of the browser, or None after `seconds`."""
        deadline = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                return None
            part = os.read(self.answers, 1 << 20)
            assert part, "the browser ended: " + (self.folder / "chromium.log").read_text(errors="replace")[-2000:]
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self._note(message)
        return message

    def _note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert", "warning"):
            self.errors.append(" ".join(str(part.get("value")) for part in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")

    def call(self, method, session=True, **parameters):
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            message = self._message(deadline - time.monotonic())
            if message and message.get("id") == command["id"]:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
        raise AssertionError(f"{method}: no answer within {SECONDS_MAX} s")

    def open(self, url, width, height, dark=False):
        if self.session:
            self.call("Page.close")
        target = self.call("Target.createTarget", session=False, url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", session=False, targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        self.wait_for(url, "location.href !== 'about:blank' && document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of a JavaScript expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, what, expression, seconds=20):
        deadline = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"waited {seconds} s for {what}: {self.errors}"
            time.sleep(0.1)

    def listen(self, seconds):
        """Takes what the browser has to say for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._message(left)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path):
        """The whole page as a PNG."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))
