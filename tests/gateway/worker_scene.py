"""A gateway of several workers as a process of its own, and a grip on each worker."""

import http.client
import json
import os
import re
import signal
import ssl
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testkit.grammar import read_stream
from testkit.meter import children
from testkit.protocols import question
from tests.gateway.scene import Reply, Served, soon
from tests.gateway.signalled_process import PATIENCE, Process, started


@dataclass(frozen=True)
class Pool:
    """A gateway with workers."""

    process: Process
    folder: Path
    """In which the gateway makes its private folder."""

    @property
    def served(self) -> Served:
        return self.process.served

    @property
    def workers(self) -> list[int]:
        """Return the processes that live."""
        return children(self.process.process.pid)

    @contextmanager
    def only(self, worker: int) -> Generator[None]:
        """Suspend all other workers: this one gets every new connection."""
        others = [pid for pid in self.workers if pid != worker]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)

    def ask(self, wire: str = "openai_chat", key: str = "", **more: object) -> Reply:
        """Take a whole turn."""
        asked = question(wire)
        body: dict[str, Any] = {**(asked.body or {}), **more}
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return self.served.post(asked.path, body, headers, seconds=60)

    def figure(self, name: str) -> float:
        """Return the sum of all series of a metric."""
        page = self.served.ask("GET", "/metrics", seconds=60).body.decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.MULTILINE))

    def shows(self, name: str, value: float) -> bool:
        """Return whether a metric gets this value; a page is served again for a second."""
        return soon(lambda: self.figure(name) == value, PATIENCE)


@contextmanager
def working(  # noqa: PLR0913 # what a gateway is started with
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    text: str,
    *options: str,
    workers: int = 2,
    first: str = "",
    tls: ssl.SSLContext | None = None,
) -> Generator[Pool]:
    """Start a gateway with workers; it ends with SIGTERM, with 0, and leaves nothing behind."""
    temporary = Path(tempfile.mkdtemp())  # not below the folder of the test: the path of a socket is short
    monkeypatch.setenv("TMPDIR", str(temporary))
    with started(folder, text, "--workers", str(workers), *options, first=first, tls=tls) as process:
        pool = Pool(process, temporary)
        yield pool
        for pid in pool.workers if process.process.poll() is None else ():
            os.kill(pid, signal.SIGCONT)
        process.process.terminate()
        status, log = process.end()
    assert status == 0, log
    assert "Traceback" not in log, log
    temporary.rmdir()  # it is empty


@dataclass
class Load:
    """Clients that ask without a pause until they are told to stop."""

    pool: Pool
    text: str
    answers: int = 0
    failures: list[str] = field(default_factory=list[str])
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, streams: int, keep_alives: int) -> Generator[None]:
        """Ask while the block runs: streams on new connections, and whole turns on connections that are used again."""
        clients = [threading.Thread(target=self._stream) for _ in range(streams)]
        clients += [threading.Thread(target=self._keep_alive) for _ in range(keep_alives)]
        for client in clients:
            client.start()
        try:
            yield
        finally:
            self._over.set()
            for client in clients:
                client.join(60)

    def waits_for(self, more: int) -> None:
        """Wait until so many further turns were answered."""
        goal = self.answers + more
        assert soon(lambda: self.answers >= goal or bool(self.failures), PATIENCE), "the load stands still"

    def _stream(self) -> None:
        asked = question("anthropic", stream=True)
        while not self._over.is_set():
            try:
                reply = self.pool.served.post(asked.path, asked.body, seconds=60)
                found = read_stream("anthropic", reply.body)
                self._note(reply.status, found.text, found.error)
            except (OSError, http.client.HTTPException, AssertionError) as error:
                self._note(0, "", repr(error))

    def _keep_alive(self) -> None:
        asked = question("openai_chat")
        body, headers = json.dumps(asked.body).encode(), {"content-type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.pool.served.port, timeout=60)
        while not self._over.is_set():
            try:
                connection.request("POST", asked.path, body, headers)  # it connects again after `connection: close`
                answer = connection.getresponse()
                said = json.loads(answer.read())
                self._note(answer.status, said["choices"][0]["message"]["content"], "")
            except (OSError, http.client.HTTPException, KeyError) as error:
                self._note(0, "", repr(error))
                connection.close()
            time.sleep(0.01)
        connection.close()

    def _note(self, status: int, text: str, error: str) -> None:
        if (status, text, error) == (200, self.text, ""):
            self.answers += 1
        else:
            self.failures.append(f"{status} {error} {text[:80]!r}")


def replaced(pool: Pool, old: Sequence[int]) -> bool:
    """Return whether all of these workers have ended, and others are there."""
    return soon(lambda: not set(old) & set(pool.workers) and len(pool.workers) == len(old), PATIENCE)
