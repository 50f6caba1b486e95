"""Reads clients' requests: bodies within the limits, settings in headers, and without fields that choose the upstream.

A large body is decoded in a thread: one legal body of 19 MB blocked every other client for 23 seconds when it was
decoded on the event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from toolspeak import dialects
from toolspeak.engine.settings import NOTHING_SAID, OPTIONS, Settings
from toolspeak.errors import BadField
from toolspeak.gateway.exchange import Exchange, header
from toolspeak.ir.request import Request
from toolspeak.runtime.offload import Offload, Run
from toolspeak.wires import Wire
from toolspeak.wires.limits import RequestLimits, check_body, decode_within

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Decodes the bodies of all wires and of the gateway's own endpoints, within the limits of `[limits]`."""

    limits: RequestLimits
    offload: Offload

    async def read(self, wire: Wire, body: bytes, path: str) -> tuple[Request, Run]:
        """Return the request, and the runner for further work on it. Raises `BadField`."""
        prepare = self.offload.for_size(len(body))
        return await prepare(lambda: decode_within(self.limits, wire, body, path)), prepare

    async def read_json(self, body: bytes, decode: Callable[[bytes], T]) -> T:
        """Return the result of `decode`. Raises `TooLarge` before decoding, and the exceptions of `decode`."""

        def decoded() -> T:
            check_body(body, self.limits)
            return decode(body)

        return await self.offload.for_size(len(body))(decoded)


# ---------------------------------------------------------------- settings in headers

_HEADERS: Final = {f"x-toolspeak-{option.name}".encode(): option for option in OPTIONS}


def settings_in_headers(exchange: Exchange) -> Settings:
    """Return the settings of this one request (MODE-1); most have none. Raises `BadField`."""
    sent = {name: value for name in _HEADERS if exchange.headers(name) and (value := header(exchange, name))}
    if not sent:
        return NOTHING_SAID
    checked = {_HEADERS[name].name: _checked(name, value) for name, value in sent.items()}
    return msgspec.convert(checked, Settings)


def _checked(name: bytes, value: str) -> str:
    option = _HEADERS[name]
    if option.choices and value not in option.choices:
        raise BadField(name.decode(), f"{value[:40]!r} is not one of {', '.join(option.choices)}")
    if option.about.form == "dialect":
        dialects.load(value)  # raises `UnknownName` here, so that a typo is a 400 and not a fault of the turn
    return value
