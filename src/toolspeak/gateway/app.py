"""The gateway: who asks, for what, and whatever goes wrong in the words of the client's own protocol."""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

import msgspec

from toolspeak import wires
from toolspeak.config.shape import Config, Key
from toolspeak.engine.warm import warm
from toolspeak.errors import BadField, BadRequest, TooLarge
from toolspeak.gateway import routes, side, turns
from toolspeak.gateway.admission import Admission
from toolspeak.gateway.auth import EVERYBODY, Keyring
from toolspeak.gateway.exchange import Exchange, Gone, Headers, Refused, answer
from toolspeak.gateway.hosts import Doors
from toolspeak.gateway.journal import log_failure
from toolspeak.gateway.marks import Marks, marks_of
from toolspeak.gateway.offer import RunsOffer
from toolspeak.gateway.overload import Overload
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.routes import Routes, Target
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.runtime.directory import Directory
from toolspeak.runtime.prober import Prober
from toolspeak.runtime.transport import Transport
from toolspeak.wires import Operation

_LOG: Final = logging.getLogger(__name__)
_JSON = b"application/json"
_WARM_AFTER = 0.2
"""Seconds: who asks at once shall not have to share the processor with it."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """Answers every exchange once."""

    config: Config
    routes: Routes
    directory: Directory
    transport: Transport
    keyring: Keyring
    doors: Doors
    admission: Admission
    overload: Overload
    reader: RequestReader
    prober: Prober
    runs: RunsOffer
    clock: Clock = CLOCK

    async def begin(self) -> None:
        """Make the first request as quick as the others."""
        loop = asyncio.get_running_loop()
        loop.call_later(_WARM_AFTER, lambda: loop.run_in_executor(None, warm))
        self.overload.start()
        await self.runs.open()
        await self.directory.listing()

    async def close(self) -> None:
        """Close what is open upstream."""
        self.overload.stop()
        await self.runs.close()
        await self.prober.close()
        self.reader.offload.close()
        await self.transport.close()

    async def handle(self, exchange: Exchange) -> None:
        """Answer an exchange, whatever happens."""
        target = self.routes.find(exchange)
        marks = marks_of(self.routes.request_id_header(target), self.clock)
        try:
            await self._answer(exchange, target, marks)
        except asyncio.CancelledError:
            failure = Failure(FailureKind.TRANSIENT, "the gateway shuts down", 503)
            await self._fail(exchange, target, marks, failure)
        except Gone:
            _LOG.info("trace=%s the client hung up", marks.trace)
        except Refused as refused:
            await self._fail(exchange, target, marks, refused.failure)
        except BadRequest as error:
            field = error.field if isinstance(error, BadField) else ""
            kind = FailureKind.TOO_LARGE if isinstance(error, TooLarge) else FailureKind.INVALID_REQUEST
            failure = Failure(kind, str(error), error.status, field)
            await self._fail(exchange, target, marks, failure)
        except Exception:  # noqa: BLE001 # a client is owed an answer, whatever broke
            _LOG.exception("trace=%s a fault of the gateway", marks.trace)
            message = f"the gateway has a fault; its log knows more under trace {marks.trace}"
            await self._fail(exchange, target, marks, Failure(FailureKind.OTHER, message, 500))

    async def _answer(self, exchange: Exchange, target: Target, marks: Marks) -> None:
        origin = self.doors.check(exchange)
        if origin:
            marks.allow(origin)
        if exchange.method == "OPTIONS":
            await answer(exchange, 204, b"text/plain", b"", (*marks.headers, *_PREFLIGHT))
            return
        if target.what in routes.OPEN:  # also while there is no room: who is busy is not dead
            await self._dispatch(exchange, target, marks, EVERYBODY)
            return
        key = self.keyring.tenant(exchange)
        exchange.tenant = key.tenant
        with self.admission.enter(key):
            if target.what != routes.LOAD:
                self.overload.check(self.admission.inside)
            await self._dispatch(exchange, target, marks, key)

    async def _dispatch(self, exchange: Exchange, target: Target, marks: Marks, key: Key) -> None:
        if target.what == Operation.TURN:
            turn = turns.Turns(self.directory, self.prober, self.reader, self.config.server.keep_alive, self.clock)
            await turn.take(exchange, wires.load(target.wire), marks, key)
            return
        if target.what == routes.LOAD:
            report = self.overload.report(self.admission.inside)
            await answer(exchange, 200, _JSON, msgspec.json.encode(report), marks.headers)
            return
        if target.what == routes.RUNS:
            await self.runs.answer(exchange, target, marks, key)
            return
        body = await side.body_of(exchange, target, self.directory, self.reader, key)
        if isinstance(body, str):
            await answer(exchange, 200, b"text/plain; charset=utf-8", body.encode(), marks.headers)
        else:
            await answer(exchange, 200, _JSON, body, marks.headers)

    async def _fail(self, exchange: Exchange, target: Target, marks: Marks, failure: Failure) -> None:
        error = wires.load(target.wire).encode_failure(failure, marks.stamp)
        log_failure(marks.trace, target, error.status, failure)
        if marks.started:
            await marks.end_stream(failure)
            return
        headers: Headers = (*marks.headers, *_advice(failure, error.status))
        await answer(exchange, error.status, _JSON, error.body, headers)


_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, POST, OPTIONS"),
    (b"access-control-allow-headers", b"*, authorization"),
)


def _advice(failure: Failure, status: int) -> Headers:
    """Tell SDKs whether to try again: they would repeat every 5xx."""
    again = (b"x-should-retry", b"true" if failure.kind.is_temporary else b"false")
    if failure.retry_after is None:
        return (again,) if status >= 500 else ()  # noqa: PLR2004 # the server's side
    return (again, (b"retry-after", b"%d" % max(1, round(failure.retry_after))))
