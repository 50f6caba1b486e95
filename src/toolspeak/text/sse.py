r"""Reads and writes server-sent events by the WHATWG event-stream rules.

    : a comment, ignored          ->  (nothing)
    event: delta
    data: {"text":                ->  SseFrame(data='{"text":\n"hi"}', event="delta")
    data: "hi"}
    (blank line)

Unknown fields and `retry` are ignored, `[DONE]` is data like any other, and an `id` stays for the events that
follow, until the next one. Chunking is invisible.

There is one departure from the standard, which drops an event without a blank line at the end of the stream. Servers do
end like that, so `finish` returns such an event if its data is not empty. Only the reader of the data can know whether
the data is complete.
"""

from msgspec import Struct

from toolspeak.errors import BadRequest
from toolspeak.text.lines import FrameLimits, Lines, from_utf8, to_utf8

SSE_LIMITS = FrameLimits()


class SseFrame(Struct, frozen=True, gc=False):
    """One event. `event` is empty where the peer named none; `id` is the last one seen."""

    data: str
    event: str = ""
    id: str = ""


class SseDecoder:
    """Decodes bytes into events.

    If a limit is exceeded, `BadFrame` is raised: at once, or by the next call if this one still has events to return.
    After that every call raises it.

    `feed` has two fast paths, because it runs for every read of every stream: for one event that begins like the last
    one, and for several whole events. Both require that the chunk begins at the start of an event and ends with a blank
    line. All other chunks are read line by line.
    """

    def __init__(self, limits: FrameLimits = SSE_LIMITS) -> None:
        """Start at the first byte of a stream."""
        self._limits = limits
        self._calm = False  # whether the next byte starts an event
        self._head, self._head_event = b"data: ", ""  # the bytes before the data of the last event: most are equal
        self._safe = min(limits.line_bytes, limits.event_bytes)
        self._lines = Lines(limits.line_bytes)
        self._data: list[bytes] = []
        self._data_bytes = -1  # the first line has no line feed before it
        self._event = ""
        self._id = ""

    @property
    def is_between_events(self) -> bool:
        """Whether the next byte is known to start an event."""
        return self._calm

    def feed(self, chunk: bytes) -> list[SseFrame]:
        """Return the events that this chunk completes."""
        head = self._head
        frames: list[SseFrame] = []
        if not self._calm or chunk[-2:] != b"\n\n" or len(chunk) > self._safe or b"\r" in chunk:
            self._by_line(chunk, frames)
        elif chunk.startswith(head) and chunk.find(b"\n", len(head)) == len(chunk) - 2:
            return [SseFrame(chunk[len(head) : -2].decode("utf-8", "replace"), self._head_event, self._id)]
        else:
            self._whole_events(chunk, frames)
        return frames

    def _whole_events(self, chunk: bytes, frames: list[SseFrame]) -> None:
        """Read a chunk of whole events, as most reads are; from the first unusual event on, read line by line."""
        pos = 0
        for block in chunk[:-2].split(b"\n\n"):
            first, more, data = block.partition(b"\n")
            if not more and first[:6] == b"data: ":
                self._head, self._head_event, data = b"data: ", "", first
            elif first[:7] == b"event: " and data[:6] == b"data: " and b"\n" not in data:
                self._head, self._head_event = first + b"\ndata: ", from_utf8(first[7:])
            else:
                self._by_line(chunk[pos:], frames)
                return
            frames.append(SseFrame(from_utf8(data[6:]), self._head_event, self._id))
            pos += len(block) + 2

    def _by_line(self, chunk: bytes, frames: list[SseFrame]) -> None:
        self._calm = False
        for line in self._lines.feed(chunk):
            if not line:
                self._end_event(frames)
            elif not self._read_field(line):
                break
        if not frames:
            self._lines.check()
        self._calm = not self._data and not self._event and self._lines.at_rest

    def finish(self) -> list[SseFrame]:
        """Return the event that the stream left without its blank line, if it has data."""
        for line in self._lines.finish():
            self._read_field(line)
        self._lines.check()
        frames: list[SseFrame] = []
        if self._data_bytes > 0:
            self._end_event(frames)
        return frames

    def _end_event(self, frames: list[SseFrame]) -> None:
        if self._data:
            frames.append(SseFrame(from_utf8(b"\n".join(self._data)), self._event, self._id))
            self._data.clear()
            self._data_bytes = -1
        self._event = ""

    def _read_field(self, line: bytes) -> bool:
        """Read one line that is not blank; return False if it exceeds a limit."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            return self._add_data(value)
        if name == b"event":
            self._event = from_utf8(value)
        elif name == b"id" and b"\0" not in value:
            self._id = from_utf8(value)
        return True

    def _add_data(self, value: bytes) -> bool:
        self._data.append(value)
        self._data_bytes += 1 + len(value)
        if self._data_bytes > self._limits.event_bytes:
            self._lines.refuse("event_bytes", self._data_bytes, self._limits.event_bytes)
            return False
        if len(self._data) > self._limits.event_lines:
            self._lines.refuse("event_lines", len(self._data), self._limits.event_lines)
            return False
        return True


def sse_event(data: str, event: str = "") -> bytes:
    """Return one event as bytes; line ends in `data` arrive as line feeds. Raises BadRequest for one in `event`."""
    if "\n" in event or "\r" in event:
        raise BadRequest(f"event {event!r} has a line end: an SSE event name is one line")
    name = f"event: {event}\n" if event else ""
    return to_utf8(name + _prefixed("data: ", data) + "\n")


def sse_comment(text: str = "") -> bytes:
    """Return a comment as bytes, for keep-alive. Not for Gemini clients: google-genai fails to parse comments."""
    return to_utf8(_prefixed(": " if text else ":", text) + "\n")


def _prefixed(prefix: str, text: str) -> str:
    # Not `splitlines`: for a str it also cuts at U+2028 and others, and it forgets a line end at the end.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f"{prefix}{line}\n" for line in lines)
