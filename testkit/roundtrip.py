"""Every dialect that writes reads back what it has written (INL-3, P1), for examples of `hostile.py`.

An example must give the same names and arguments (an integer stays one), no complaint, no lost character, the text
around it unaltered, the same turn when it comes in chunks, and the same where an emulated turn is read (INL-9).

Some dialects allow no text around their calls: see ROOM.
"""

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final

from testkit.hostile import Example, example, tool_set
from testkit.splits import pieces_at
from toolspeak.dialects import Dialect, load, names
from toolspeak.engine.readers import emulated_dialect
from toolspeak.facts.model import UNKNOWN_MODEL
from toolspeak.ir.event import Event, raw_of
from toolspeak.ir.message import Call
from toolspeak.ir.turn import Turn, fold
from toolspeak.text.strict import without_surrogates

ROOM: Final = {
    "llama_json": (False, False),  # the whole message is the call
    "pythonic": (False, False),  # as above
    "steps_json": (True, False),
    "decision_json": (True, False),  # the decision may follow a text, but nothing follows it
    "inline_json": (True, False),  # the call is the last line
}
"""Whether text may come before and after the calls; dialects that are not listed allow both."""


def writing() -> list[str]:
    """Return the dialects with a writer."""
    return [name for name in names() if load(name).writer is not None]


def example_for(name: str, source: Random, tools_source: Random | None = None) -> Example:
    """Make an example for a dialect."""
    made = example(source, tool_set(tools_source or source))
    before, after = ROOM.get(name, (True, True))
    return Example(made.tools, made.calls, made.before if before else "", made.after if after else "")


def text_of(dialect: Dialect, made: Example) -> str:
    """Write an example as a whole message."""
    if dialect.writer is None:
        return ""
    written = dialect.writer.write_calls(made.calls, made.tools)
    return "\n".join(part for part in (made.before, written, made.after) if part)


def read(dialect: Dialect, made: Example, pieces: Iterable[str]) -> list[Event]:
    """Read a text that comes in chunks."""
    reader = dialect.reader(made.tools)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return [*events, *reader.finish()]


def failures(dialect: Dialect, made: Example, source: Random) -> Iterator[str]:
    """Return what has changed."""
    text = text_of(dialect, made)
    events = read(dialect, made, (text,))
    turn = fold(events)
    expected = [(call.name, without_surrogates(exact(call))) for call in made.calls]
    got = [(call.name, exact(call)) for call in turn.calls]
    if got != expected:
        yield f"calls {got} != {expected}"
    if text != without_surrogates(text):
        yield "a lone surrogate leaves"
    if turn.complaints:
        yield f"complaints {turn.complaints}"
    if made.before not in turn.text or made.after not in turn.text:
        yield f"text {turn.text!r} is not {made.before!r} and {made.after!r}"
    if "".join(map(raw_of, events)) != text:
        yield "lost characters"
    if in_pieces(dialect, made, text, source) != turn:
        yield "different in pieces"
    # A fence that begins the message may be around the whole reply: there `any` reads code as a call, if a tool has
    # the name of its function.
    is_read_alone = dialect.name not in names() or text.lstrip().startswith("```python")  # keyed markers are (SAFE-4)
    if not is_read_alone and _emulated(dialect, made, text) != turn:
        yield "different in an emulated turn, which is read in all forms"


def _emulated(dialect: Dialect, made: Example, text: str) -> Turn:
    return fold(read(emulated_dialect(dialect.name, UNKNOWN_MODEL), made, (text,)))


def in_pieces(dialect: Dialect, made: Example, text: str, source: Random) -> Turn:
    """Read a text cut at random places."""
    places = sorted(source.randint(0, len(text)) for _ in range(source.randint(1, 8)))
    return fold(read(dialect, made, pieces_at(text, places)))


def exact(call: Call) -> str:
    """Write a call's arguments so that only equal ones look alike: 1 is not 1.0."""
    return json.dumps(json.loads(call.arguments), sort_keys=True, ensure_ascii=False)
