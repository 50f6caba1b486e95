"""Traces of all workers of a gateway: each keeps its own in memory, and asks the others for theirs.

A file that all of them write would cost every turn 0.7 ms of CPU, two thirds of a small request. A question to the
other workers costs the person who looks a few milliseconds instead.

Each worker has a thread that answers on a Unix socket in the private folder of the gateway: one question and one answer
for each connection, both in MessagePack. A worker that does not answer in time counts as one without traces. A worker
that is replaced hands its traces to another one; those of a worker that is killed are lost.
"""

import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final, Protocol

import msgspec

from toolspeak.traces.store import Summary, TraceQuery
from toolspeak.traces.trace import Trace

_LOG: Final = logging.getLogger(__name__)
_TIMEOUT: Final = 2.0
"""Seconds for a question or an answer: a suspended worker must not hold up the others."""
_READ: Final = 1 << 16
_WAITING: Final = 64


class LiveTurn(msgspec.Struct, frozen=True):
    """A turn that runs in another worker."""

    summary: Summary
    phase: str

    @property
    def id(self) -> str:
        """The id of its trace."""
        return self.summary.id

    @property
    def state(self) -> tuple[str, int]:
        """What a list shows of it: its phase, and how often the upstream was asked."""
        return self.phase, self.summary.requests


class Live(msgspec.Struct, frozen=True):
    """The turns that run, and those that have ended after a number."""

    running: Sequence[LiveTurn] = ()
    ended: Sequence[tuple[int, Summary]] = ()


class WorkerTraces(Protocol):
    """The traces of this worker alone: `trace_log.TraceLog`. Another thread calls it."""

    def find_here(self, id: str, tenant: str | None) -> Trace | None:
        """Return a trace that is in the memory of this worker."""
        ...

    def search_here(self, query: TraceQuery) -> list[Summary]:
        """Return the matching traces that are in the memory of this worker."""
        ...

    def live_here(self, tenant: str | None, since: int) -> Live:
        """Return the turns that run in this worker, and those that have ended."""
        ...

    def adopt(self, traces: Sequence[Trace]) -> None:
        """Keep the traces of a worker that ends."""
        ...


class _Question(msgspec.Struct):
    tenant: str | None = None
    find: str = ""
    query: TraceQuery | None = None
    since: int | None = None
    adopted: Sequence[Trace] = ()


class _Answer(msgspec.Struct):
    trace: Trace | None = None
    listed: list[Summary] = []
    live: Live = Live()


_read_question = msgspec.msgpack.Decoder(_Question).decode
_read_answer = msgspec.msgpack.Decoder(_Answer).decode


class TracePeers:
    """The other workers. All methods but `serve` may block shortly."""

    def __init__(self, folder: Path, column: int) -> None:
        """Take the folder in which each worker has a socket."""
        self._folder: Final = folder
        self._path: Final = folder / f"{column}.sock"
        self.is_replaced = False
        """Whether this worker ends because another one has taken its place."""

    def serve(self, traces: WorkerTraces) -> None:
        """Begin to answer the other workers."""
        listening = socket.socket(socket.AF_UNIX)
        self._path.unlink(missing_ok=True)  # of a worker that was killed
        listening.bind(str(self._path))
        listening.listen(_WAITING)
        Thread(target=_answer_all, args=(listening, traces), name="peer-traces", daemon=True).start()

    def find(self, id: str, tenant: str | None) -> Trace | None:
        """Return a trace of another worker."""
        answers = (answer.trace for answer in self._asked(_Question(tenant, id)))
        return next((trace for trace in answers if trace is not None), None)

    def search(self, query: TraceQuery) -> list[Summary]:
        """Return the matching traces of the other workers."""
        return [summary for answer in self._asked(_Question(query=query)) for summary in answer.listed]

    def live(self, tenant: str | None, since: int) -> list[Live]:
        """Return the turns that run in each of the other workers, and those that have ended."""
        return [answer.live for answer in self._asked(_Question(tenant, since=since))]

    def close(self, traces: Sequence[Trace]) -> None:
        """Answer no more; if this worker is replaced, hand its traces to another one."""
        self._path.unlink(missing_ok=True)
        if self.is_replaced and traces:
            next(self._asked(_Question(adopted=traces)), None)  # the first that answers has taken them

    def _asked(self, question: _Question) -> Iterator[_Answer]:
        data = msgspec.msgpack.encode(question)
        for path in sorted(self._folder.glob("*.sock")):
            if path != self._path:
                with suppress(OSError, msgspec.MsgspecError):  # it has just ended, or is suspended
                    yield _ask(path, data)


def _answer_all(listening: socket.socket, traces: WorkerTraces) -> None:
    while True:
        client, _ = listening.accept()
        with client:
            client.settimeout(_TIMEOUT)
            try:
                question = _read_question(_read_all(client))
                client.sendall(msgspec.msgpack.encode(_answered(question, traces)))
            except OSError:
                continue
            except Exception:  # noqa: BLE001 # the thread must go on answering
                _LOG.exception("a fault while another worker asked for traces")


def _answered(question: _Question, traces: WorkerTraces) -> _Answer:
    if question.adopted:
        traces.adopt(question.adopted)
    answer = _Answer()
    if question.find:
        answer.trace = traces.find_here(question.find, question.tenant)
    if question.query is not None:
        answer.listed = traces.search_here(question.query)
    if question.since is not None:
        answer.live = traces.live_here(question.tenant, question.since)
    return answer


def _ask(path: Path, data: bytes) -> _Answer:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_TIMEOUT)
        connection.connect(str(path))
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return _read_answer(_read_all(connection))


def _read_all(connection: socket.socket) -> bytes:
    pieces: list[bytes] = []
    while piece := connection.recv(_READ):
        pieces.append(piece)
    return b"".join(pieces)
