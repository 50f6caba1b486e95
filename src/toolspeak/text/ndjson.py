r"""Reads and writes newline-delimited JSON: one JSON text per line.

    {"a":1}\n
    \r\n                          ->  ['{"a":1}', '{"b":2}']
    {"b":2}

Blank lines are skipped, and the last line may lack its end. A CR ends a line too: the NDJSON specification
forbids both CR and LF inside a text, so no conforming stream is cut wrongly. Chunking is invisible.
"""

from toolspeak.errors import BadRequest
from toolspeak.text.lines import FrameLimits, Lines, from_utf8, to_utf8

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
