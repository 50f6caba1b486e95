"""The parts of an `Exchange` that are the same on every server: headers by name, and the limits of a body."""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from toolspeak.config.shape import Limits
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.overload import Overload
from toolspeak.ir.failure import Failure, FailureKind

_NONE: Final[list[str]] = []
BODY_PATIENCE: Final = 10
"""Times `body_idle_seconds` that a whole body may take. Without it a client that sends one byte before each timeout
would hold a slot forever."""


class BoundedExchange:
    """A request whose body is read within limits of size, time and memory."""

    def __init__(self, limits: Limits, overload: Overload) -> None:
        """Take the limits, and the memory budget of all bodies."""
        self.tenant = ""
        self.status = 0
        self._limits: Final = limits
        self._overload: Final = overload
        self._held = 0

    def release(self) -> None:
        """Return the memory budget of the body at the end of the exchange."""
        self._overload.release(self.tenant, self._held)

    def headers(self, name: bytes) -> list[str]:
        """Return all values of a header."""
        return self._headers.get(name, _NONE)

    @property
    def _raw_headers(self) -> Sequence[tuple[bytes, bytes]]:
        """Return the headers; their names are in lower case."""
        raise NotImplementedError

    @cached_property
    def _headers(self) -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = {}
        for name, value in self._raw_headers:
            found.setdefault(name, []).append(value.decode("latin-1"))
        return found

    def _hold(self, piece: bytes, size: int) -> bytes:
        """Return a piece of the body, after `size` bytes of it. Raises `Refused` if it is too much."""
        # Counted while it arrives: a chunked body has no Content-Length that could be checked before.
        if size + len(piece) > self._limits.body_bytes:
            raise self._too_large(f"over {size + len(piece)}")
        self._overload.hold(self.tenant, self._held, len(piece))
        self._held += len(piece)
        return piece

    def _check_length(self) -> None:
        """Refuse a body by its headers if it is too large or encoded. No encoding is accepted, against gzip bombs."""
        length = next(iter(self.headers(b"content-length")), "0")
        if length.isdecimal() and int(length[:20]) > self._limits.body_bytes:
            raise self._too_large(length[:20])
        encoding = next(iter(self.headers(b"content-encoding")), "identity").lower()
        if encoding != "identity":
            message = f"content-encoding {encoding[:40]!r} is not accepted: send the body plain"
            raise _refused(FailureKind.INVALID_REQUEST, message, 415)

    def _too_slow(self) -> Refused:
        idle = self._limits.body_idle_seconds
        return _refused(FailureKind.TIMEOUT, f"the body came too slowly: no more of it in {idle:g} s", 408)

    def _too_large(self, size: str) -> Refused:
        most = self._limits.body_bytes
        return _refused(FailureKind.TOO_LARGE, f"the body has {size} bytes, limits.body_bytes is {most}", 413)


def _refused(kind: FailureKind, message: str, status: int) -> Refused:
    return Refused(Failure(kind, message, status))
