"""A TCP proxy on loopback that can lose its server: connections are refused, cut, or answered by silence."""

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards to a port until it is told to be away."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._silent = False
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._listen()

    def _listen(self) -> None:
        self._listener.listen(100)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def away(self) -> None:
        """Cut all connections, and refuse new ones."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        with self._lock:
            opened, self._open = self._open, []
        for each in opened:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def silence(self, silent: bool = True) -> None:
        """Take what is sent, and pass nothing on."""
        self._silent = silent

    def back(self) -> None:
        """Listen on the same port again."""
        self._silent = False
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listen()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    self._open += [client, server]
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if not self._silent:
                    other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
