r"""The frames of an answer: events or, where a server sends one array or a whole answer, its chunks.

data: {…}\n\ndata: {…}\n\n   ->  SseFrame, SseFrame
[{…},\r\n{…}]                ->  bytes, bytes: at the end
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from toolspeak.errors import BadFrame
from toolspeak.text.lines import BOM
from toolspeak.text.sse import SSE_LIMITS, SseDecoder, SseFrame
from toolspeak.wires._breaks import UNREADABLE

_CHUNKS = msgspec.json.Decoder(list[msgspec.Raw]).decode
_STARTS: Final = b"[{"
_BEFORE: Final = b" \t\r\n" + BOM


def chunks_of(body: bytes) -> list[bytes]:
    """Return the chunks of a stream that came as one array, or the whole answer."""
    body = body.lstrip(_BEFORE)
    try:
        return [*map(bytes, _CHUNKS(body))] if body.startswith(b"[") else [body]
    except UNREADABLE as error:
        raise BadFrame(str(error)) from None


class GeminiFrames:
    """Cuts one answer into frames; one that comes whole, or as an array, is kept until its end."""

    def __init__(self) -> None:
        """Start at the first byte."""
        self._events = SseDecoder()
        self._body: bytearray | None = None
        self._begun = False

    def feed(self, chunk: bytes) -> Iterable[SseFrame | bytes]:
        """Return the frames that this chunk completes."""
        if not self._begun:
            chunk = chunk.lstrip(_BEFORE)
            self._begun = bool(chunk)
            self._body = bytearray() if chunk[:1] and chunk[0] in _STARTS else None
        if self._body is None:
            return self._events.feed(chunk)
        if len(self._body) + len(chunk) > SSE_LIMITS.event_bytes:
            raise BadFrame(f"the answer is over the limit: at most {SSE_LIMITS.event_bytes} bytes are accepted")
        self._body += chunk
        return ()

    def finish(self) -> Iterable[SseFrame | bytes]:
        """Return what the end of the bytes completes."""
        return self._events.finish() if self._body is None else chunks_of(bytes(self._body))
