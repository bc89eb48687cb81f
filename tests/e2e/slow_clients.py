"""Clients of an HTTP endpoint as an attacker or a broken network makes them: many at once, and none that gets on."""

import contextlib
import resource
import selectors
import socket
import threading

REQUEST = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n"
ROUND_SECONDS = 0.5
OPENED_MAX = 20_000


class SlowClients:
    """Context manager: `count` connections, each opened anew when the server closes it. A third sends nothing, a third a
    byte now and then, a third asks and takes no answer."""

    def __init__(self, port, count):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 256)), hard))
        self.address, self.count = ("127.0.0.1", port), count
        self.selector = selectors.DefaultSelector()
        self.opened = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        for _ in range(self.count):
            self._open()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()

    def open_now(self):
        return len(self.selector.get_map())

    def _open(self):
        if self.opened >= OPENED_MAX:
            return
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.setblocking(False)
        client.connect_ex(self.address)
        kind = self.opened % 3
        self.opened += 1
        self.selector.register(client, selectors.EVENT_READ, kind)

    def _close(self, client):
        self.selector.unregister(client)
        client.close()

    def _run(self):
        sent = {}
        while not self.stopping.wait(ROUND_SECONDS):
            for key in list(self.selector.get_map().values()):
                with contextlib.suppress(BlockingIOError, OSError):
                    at = sent.get(key.fileobj, 0)
                    if key.data == 1 and at < len(REQUEST):
                        sent[key.fileobj] = at + key.fileobj.send(REQUEST[at:at + 1])
                    elif key.data == 2 and at == 0:
                        sent[key.fileobj] = key.fileobj.send(REQUEST + b"\r\n")
            for key, _ in self.selector.select(0):
                if self._ended(key):
                    sent.pop(key.fileobj, None)
                    self._close(key.fileobj)
                    self._open()

    @staticmethod
    def _ended(key):
        """Whether the server closed it. An answer is looked at and left where it is."""
        try:
            return not key.fileobj.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
