"""Connections to PostgreSQL that give up on a server that is reachable but does not respond.

A frozen server (SIGSTOP, a stalled disk) keeps its sockets open, and its kernel acknowledges what we send: no TCP
timeout helps, and a statement timeout is the server's own to enforce. libpq then waits for ever, and its thread too:
a gateway would lose one thread to each request.
"""

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
import sqlalchemy as sa
from psycopg.abc import PQGen
from sqlalchemy.event import listen
from typing_extensions import override

from toolspeak.runtime.clock import CLOCK

T = TypeVar("T")


def limit_waits(engine: sa.Engine, seconds: float) -> None:
    """Let every statement of an engine fail with `OperationalError` after so many seconds without a response."""

    def connect(dialect: object, record: object, args: Any, named: Any) -> psycopg.Connection[Any]:  # noqa: ANN401
        del dialect, record
        opened = _Bounded.connect(*args, **named)
        opened.seconds = seconds
        return opened

    listen(engine, "do_connect", connect)


class _Bounded(psycopg.Connection[Any]):
    """Closes itself when a wait takes too long: what the server sends later would answer another statement."""

    seconds: float = 60.0

    @override
    def wait(self, gen: PQGen[T], *args: Any, **named: Any) -> T:
        try:
            return super().wait(_bounded(gen, CLOCK.monotonic() + self.seconds), *args, **named)
        except _Late:
            self.close()
            raise


class _Late(psycopg.OperationalError):
    """The server did not respond in time."""


def _bounded(gen: PQGen[T], deadline: float) -> Generator[Any, Any, T]:
    """Run a generator of psycopg until the deadline. psycopg resumes it every 0.1 s, with 0 if nothing has come."""
    try:
        state = next(gen)
        while True:
            ready = yield state
            if not ready and CLOCK.monotonic() > deadline:
                raise _Late("the server did not respond in time")
            state = gen.send(ready)
    except StopIteration as stop:
        value: T = stop.value
        return value
