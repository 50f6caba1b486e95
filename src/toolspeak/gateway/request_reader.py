"""Reads clients' bodies within the limits, off the event loop where they are large."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from toolspeak.ir.request import Request
from toolspeak.runtime.offload import Offload, Run
from toolspeak.wires import Wire
from toolspeak.wires.limits import RequestLimits, check_body, decode_within

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Decodes bodies of all wires, and of the gateway's own endpoints."""

    limits: RequestLimits
    offload: Offload

    async def read(self, wire: Wire, body: bytes, path: str) -> tuple[Request, Run]:
        """Return the request, and where further work on it runs; raises `BadField`."""
        prepare = self.offload.for_size(len(body))
        return await prepare(lambda: decode_within(self.limits, wire, body, path)), prepare

    async def read_json(self, body: bytes, decode: Callable[[bytes], T]) -> T:
        """Return what `decode` makes of a body; raises `TooLarge` before it is decoded, and what `decode` raises."""

        def decoded() -> T:
            check_body(body, self.limits)
            return decode(body)

        return await self.offload.for_size(len(body))(decoded)
