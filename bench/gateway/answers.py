"""Answers of the bench's upstream, selected by the name of the model: `KIND-PACE`, such as `text-5` or `fenced-0`.

The kind is the answer, the pace the milliseconds between two frames of its stream; 0 sends them all in one write. A
stream has about 200 frames with four tokens each, and each frame is a separate HTTP chunk.
"""

import json
import re
from collections.abc import Iterator
from functools import cache

from testkit.vendor_answers import STREAMS, WHOLES, Answer

CHUNKS = 200
TOKENS = 16
"""Characters of a chunk: four tokens."""
FIRST = "harbour"
"""In the first chunk of every text; `LAST` is in the last one."""
LAST = "That was all."
PROSE = "The harbour is quiet in the morning, and the first ferry leaves at half past six; nobody minds the rain. "
PATH, TOOL = "docs/ferries.md", "write_file"
CUT_AFTER = "The harbour has a new ferry; I write it down.\n\n"
MARK = "@@@"
"""Placeholder for the text in a stream of one chunk, which the long streams are made from."""

KINDS = ("small", "brief", "text", "call", "fenced", "forge")
PACES = (0, 2, 5, 10)
MODELS = tuple(f"{kind}-{pace}" for kind in KINDS for pace in PACES)


def prose(length: int) -> str:
    """Return a text of that many characters, from the first words to the last."""
    text = PROSE * (length // len(PROSE) + 1)
    return text[: length - len(LAST)] + LAST


def arguments(length: int) -> dict[str, str]:
    """Return the arguments of the call, with a text of that many characters."""
    return {"path": PATH, "text": prose(length)}


def fenced() -> str:
    """Return a sentence and a call as text, in the form that toolspeak teaches by default."""
    call = json.dumps({"name": TOOL, "arguments": arguments(CHUNKS * TOKENS - 180)})
    return f"{CUT_AFTER}```tool_call\n{call}\n```\n"


def forge() -> str:
    """Return the same call in the form that forge teaches."""
    return json.dumps({"tool": TOOL, "args": arguments(CHUNKS * TOKENS - 180)})


@cache
def answer(kind: str) -> Answer:
    """Return the model's answer."""
    if kind == "small":
        return Answer(prose(700))
    if kind == "brief":
        return Answer(prose(8 * TOKENS))
    if kind == "text":
        return Answer(prose(CHUNKS * TOKENS))
    if kind == "call":  # the pieces of a vendor's stream of arguments have three characters
        return Answer(calls=(("call_7d1f", TOOL, arguments(CHUNKS * 3 - 60)),))
    return Answer(fenced() if kind == "fenced" else forge())


@cache
def whole(wire: str, kind: str) -> bytes:
    """Return the body of a whole answer."""
    return json.dumps(WHOLES[wire](answer(kind)), ensure_ascii=False).encode()


@cache
def frames(wire: str, kind: str) -> tuple[bytes, ...]:
    """Return the frames of a streamed answer."""
    end = "\n" if wire == "ollama" else "\n\n"
    said = answer(kind)
    made = STREAMS[wire](said) if said.calls else "".join(long(wire, said.text, end))
    return tuple((lengthened(frame) + end).encode() for frame in numbered(made).split(end) if frame)


def long(wire: str, text: str, end: str) -> Iterator[str]:
    """Make a stream of many chunks from a stream of one: its first text is a delta, later ones repeat all."""
    seen = False
    for frame in STREAMS[wire](Answer(MARK)).split(end):
        if MARK in frame and not seen:
            seen = True
            yield from (frame.replace(MARK, quoted(piece)) + end for piece in chunks(text))
        elif frame:
            yield frame.replace(MARK, quoted(text)) + end


def chunks(text: str) -> Iterator[str]:
    """Cut a text into chunks of four tokens."""
    for start in range(0, len(text), TOKENS):
        yield text[start : start + TOKENS]


def quoted(text: str) -> str:
    """Write a text as the inside of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def numbered(stream: str) -> str:
    """Renumber the events where the wire numbers them."""
    counter = iter(range(10_000))
    return re.sub(r'"sequence_number": \d+', lambda _: f'"sequence_number": {next(counter)}', stream)


def lengthened(frame: str) -> str:
    """Write an OpenAI chunk as long as a real one, about 250 bytes."""
    real = '"chatcmpl-CbZq3Q0xnJ1wYtT5mR2u8eVfKdLh9", "service_tier": "default", "system_fingerprint": "fp_44709d6fcb"'
    return frame.replace('"chatcmpl-up"', real)
