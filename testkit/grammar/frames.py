r"""Bytes to frames, as strictly as the strictest client.

Server-sent events have the lines `event: NAME`, `data: JSON` and one blank line, and nothing else: no `\r`, no `id:`,
no second `data:`. Between frames there may be bare newlines, and comments where the wire allows them. NDJSON is one
object per line. No line has U+2028, U+2029 or U+0085 in it: clients that read lines with Python's `splitlines` (all
that use `httpx.Response.iter_lines`, such as google-genai and ollama) would cut it there.
"""

from typing import NamedTuple

from testkit.grammar.shape import Obj, expect, obj, parse, refuse

PLAN = ": x-toolspeak-plan: "
"""The comment that may follow the last frame."""


class Frame(NamedTuple):
    """One server-sent event; without a name `event` is empty."""

    event: str
    data: str


def sse(data: bytes, *, comments: bool = True) -> list[Frame]:
    """Read a whole stream of server-sent events, which must end with a complete frame."""
    reader = _Reader(comments)
    for number, line in enumerate(_lines(data), start=1):
        reader.feed(line, f"line {number}")
    return reader.finish()


def ndjson(data: bytes) -> list[Obj]:
    """Read a stream of JSON objects, one per line."""
    places = [(line, f"line {number}") for number, line in enumerate(_lines(data), start=1)]
    for line, where in places:
        expect(line != "", f"{where} is blank")
    return [obj(parse(line, where), where) for line, where in places]


def body(data: bytes) -> Obj:
    """Read one JSON object."""
    return obj(parse(decoded(data), "body"), "body")


def decoded(data: bytes) -> str:
    """Return the text of UTF-8 bytes."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(f"not UTF-8: {error}")


def _lines(data: bytes) -> list[str]:
    source = decoded(data)
    expect(source.endswith("\n"), f"the stream ends inside a line: {source[-40:]!r}")
    lines = source[:-1].split("\n")
    for number, line in enumerate(lines, start=1):
        expect(line.splitlines() in ([], [line]), f"line {number} has a raw line separator in it: {line!r:.200}")
    return lines


class _Reader:
    def __init__(self, comments: bool) -> None:
        self._comments = comments
        self._frames: list[Frame] = []
        self._event: str | None = None
        self._data: str | None = None
        self._complete = False
        self._last = ""

    def feed(self, line: str, where: str) -> None:
        name, colon, value = line.partition(": ")
        fresh = self._event is None and self._data is None
        last, self._last = self._last, line
        if not (self._complete and PLAN in (last[: len(PLAN)], line[: len(PLAN)])):  # it may follow the last frame
            self._complete = line == "" and not fresh
        if line == "":
            self._blank(where)
        elif line.startswith(":"):
            expect(self._comments and fresh, f"{where}: a comment may not stand here: {line!r:.80}")
        elif name == "event" and colon:
            expect(fresh and value != "", f"{where}: an event's name may not stand here: {line!r:.80}")
            self._event = value
        else:
            expect(name == "data" and colon != "", f"{where}: no line of ours: {line!r:.80}")
            expect(self._data is None, f"{where}: a second line of data in one frame: {line!r:.80}")
            self._data = value

    def finish(self) -> list[Frame]:
        expect(self._complete, "the stream does not end with a complete frame")
        return self._frames

    def _blank(self, where: str) -> None:
        if self._data is not None:
            self._frames.append(Frame(self._event or "", self._data))
        else:
            expect(self._event is None, f"{where}: an event without data")
        self._event = self._data = None
