r"""Splits bytes in any chunks into lines, for `sse.py` and for newline-delimited JSON.

    b"data: a\r" b"\ndata" b": b\n\nda"   ->   [b"data: a"] [] [b"data: b", b""]

A line ends with LF, CR or CRLF, and is returned as soon as its end is seen. UTF-8 is decoded only from whole lines: no
byte of a longer character equals CR or LF, so no chunk border can cut a character. At most one unfinished line is held
between two calls, and each byte is read once, however the stream is chunked.

A client that split at LF only never found the end of an event in a CRLF stream: 128 MB took it 39 seconds (pi #9037).

`NdjsonDecoder` returns one JSON text per line. Blank lines are skipped, and the last line may lack its end. The NDJSON
specification forbids both CR and LF inside a text, so a CR may end a line there too.
"""

from dataclasses import dataclass

from toolspeak.errors import BadFrame, BadRequest

BOM = b"\xef\xbb\xbf"
CR = 13


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """Limits for the frames of a peer (P7). Bytes are counted on the wire, before decoding."""

    line_bytes: int = 8 * 1024 * 1024
    """One line without its end; a byte order mark before the first line counts."""
    event_bytes: int = 8 * 1024 * 1024
    """The data of one SSE event, with the line feeds that join its lines."""
    event_lines: int = 65_536
    """The `data` lines of one SSE event, empty ones too: a limit of bytes alone does not see empty lines, which are
    held all the same (ANOLISA #2209). Other lines are not held, so they are not counted."""


class Lines:
    """Splits a byte stream into lines until a limit is exceeded.

    Lines before the breach must be returned, or the result would depend on the chunks. So `feed` only records a breach.
    The owner returns what it has, and calls `check`, which raises, as soon as it has nothing.
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
        # The last chunk ended with CR, which has ended a line. If LF comes now, it belongs to that line end.
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
        """Whether the next byte starts a line that is not the first; owners may then take a fast path."""
        return not (self._held or self._after_cr or self._at_start or self._breach)

    def finish(self) -> list[bytes]:
        """Return the last line if the stream stopped before its end."""
        lines = [bytes(self._held)] if self._held else []
        self._held.clear()
        return self._without_bom(lines)

    def refuse(self, limit: str, measured: int, accepted: int) -> None:
        """Record that the peer exceeded a limit; no more lines are returned."""
        self._breach = f"{limit} {measured} is over the limit: at most {accepted} is accepted"
        self._held.clear()

    def check(self) -> None:
        """Raise `BadFrame` if a limit was exceeded, on each call."""
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
    """Decode bytes of a peer; bytes that are not UTF-8 become U+FFFD."""
    return line.decode("utf-8", "replace")


def to_utf8(text: str) -> bytes:
    r"""Encode text for a peer; surrogate pairs are joined, and a lone surrogate becomes U+FFFD.

    Lone surrogates come from models that write half of a `\ud83d\ude00`. That must not break off the answer.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


# ---------------------------------------------------------------- newline-delimited JSON


NDJSON_LIMITS = FrameLimits()


class NdjsonDecoder:
    """Decodes bytes into lines of JSON text.

    Of the limits, `line_bytes` applies. If a line is longer, `BadFrame` is raised: at once, or by the next call if this
    one still has lines to return. After that every call raises it.
    """

    def __init__(self, limits: FrameLimits = NDJSON_LIMITS) -> None:
        """Start at the first byte of a stream."""
        self._safe = limits.line_bytes
        self._lines = Lines(limits.line_bytes)

    def feed(self, chunk: bytes) -> list[str]:
        """Return the texts that this chunk completes."""
        if self._lines.at_rest and chunk.find(b"\n") == len(chunk) - 1 <= self._safe and b"\r" not in chunk:
            return (
                [from_utf8(chunk[:-1])] if chunk[:-1].strip(b" \t") else []
            )  # the fast path: most servers send exactly one line in one read
        return self._texts(self._lines.feed(chunk))

    def finish(self) -> list[str]:
        """Return the last text if the stream stopped before its line end."""
        return self._texts(self._lines.finish())

    def _texts(self, lines: list[bytes]) -> list[str]:
        texts = [from_utf8(line) for line in lines if line.strip(b" \t")]
        if not texts:
            self._lines.check()
        return texts


def ndjson_line(text: str) -> bytes:
    """Return one JSON text as one line; raises BadRequest if it has a line end."""
    if "\n" in text or "\r" in text:
        raise BadRequest(f"text {text[:80]!r} has a line end: an NDJSON text is one line")
    return to_utf8(text + "\n")
