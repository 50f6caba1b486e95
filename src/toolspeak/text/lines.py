r"""Bytes in any chunks become lines: the one splitter under `sse.py` and `ndjson.py`.

    b"data: a\r" b"\ndata" b": b\n\nda"   ->   [b"data: a"] [] [b"data: b", b""]

A line ends with LF, CR or CRLF, and is given out as soon as its end is seen. UTF-8 is decoded only from whole
lines: no byte of a longer character equals CR or LF, so no cut of the stream can cut a character.
Held between two calls is at most one unfinished line, and each byte is looked at once, however it is chunked.
"""

from dataclasses import dataclass

from toolspeak.errors import BadFrame

BOM = b"\xef\xbb\xbf"
CR = 13


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """The largest values accepted from a peer. Bytes are those of the wire, before they are decoded."""

    line_bytes: int = 8 * 1024 * 1024
    """One line without its end; a byte order mark before the first line counts."""
    event_bytes: int = 8 * 1024 * 1024
    """The data of one SSE event, with the line feeds that join its lines."""
    event_lines: int = 65_536
    """The `data` lines of one SSE event, empty ones too. Other lines are not held, so they are not counted."""


class Lines:
    """Cut a byte stream into lines, until a limit is broken.

    A breach must not take back or hide what came before it, or the chunking would show. So it is kept, and
    not raised by `feed`: the owner gives out what it has, and calls `check` as soon as it has nothing.
    """

    def __init__(self, line_bytes: int) -> None:
        """Start at the first byte of a stream."""
        self._line_bytes = line_bytes
        self._held = bytearray()
        self._after_cr = False
        self._at_start = True
        self._breach = ""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without their ends, up to the first that is too long."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk or self._breach:
            return []
        might_break = len(self._held) + len(chunk) > self._line_bytes
        lines = self._split(chunk)
        if might_break:
            self._cut_at_breach(lines)
        return self._without_bom(lines) if self._at_start else lines

    @property
    def at_rest(self) -> bool:
        """Return whether the next byte starts a line, and not the first."""
        return not (self._held or self._after_cr or self._at_start or self._breach)

    def finish(self) -> list[bytes]:
        """Return the last line if the stream stopped before its end."""
        lines = [bytes(self._held)] if self._held else []
        self._held.clear()
        return self._without_bom(lines)

    def refuse(self, limit: str, measured: int, accepted: int) -> None:
        """Remember that the peer broke a limit; no line comes out any more."""
        self._breach = f"{limit} {measured} is over the limit: at most {accepted} is accepted"
        self._held.clear()

    def check(self) -> None:
        """Raise `BadFrame` if a limit was broken, each time."""
        if self._breach:
            raise BadFrame(self._breach)

    def _split(self, chunk: bytes) -> list[bytes]:
        lines = chunk.splitlines()
        self._after_cr = chunk[-1] == CR
        tail = b"" if chunk[-1] in b"\r\n" else lines.pop()
        if lines and self._held:
            self._held += lines[0]
            lines[0] = bytes(self._held)
            self._held.clear()
        self._held += tail
        return lines

    def _cut_at_breach(self, lines: list[bytes]) -> None:
        for index, length in enumerate([*map(len, lines), len(self._held)]):
            if length > self._line_bytes:
                self.refuse("line_bytes", length, self._line_bytes)
                del lines[index:]
                return

    def _without_bom(self, lines: list[bytes]) -> list[bytes]:
        if self._at_start and lines:
            self._at_start = False
            lines[0] = lines[0].removeprefix(BOM)
        return lines


def from_utf8(line: bytes) -> str:
    """Decode what a peer sent; bytes that are not UTF-8 become U+FFFD."""
    return line.decode("utf-8", "replace")


def to_utf8(text: str) -> bytes:
    r"""Encode what we send; halves of a surrogate pair are joined, and a lone one becomes U+FFFD.

    They come from models that write half of a `\ud83d\ude00`: no reason to break off an answer.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
