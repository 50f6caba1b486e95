"""Golden texts, damaged at random: nothing raises, no byte is lost, no cut changes the result."""

import random
from itertools import chain
from typing import Final

from testkit.golden import Case, cases
from testkit.splits import at_random, by_characters
from toolspeak.dialects import Dialect, load, names
from toolspeak.ir.event import Event, raw_of
from toolspeak.ir.turn import fold

LONGEST: Final = 3_000
CUTS: Final = 3
_ODDS_AND_ENDS: Final = (
    *("```", "`", "\n", "\n\n", " ", "{", "}", "[", "]", '"', "'", ":", ",", "<", "</", ">", "\\", "(", ")", "=", "é"),
    *("```json\n", "\n```\n", "> ", "Action:", "Thought:", "Observation:", "]]>", "<![CDATA[", '<|"|>', "\u2028"),
    *("<think>", "</think>", "<parameter=", "</parameter>", "<arg_key>", "</arg_value>", "<invoke name="),
    *("find_bus", "now", '{"name": "now", "arguments": {}}'),
)


def fragments() -> list[str]:
    """Return the texts to insert: the markers of all dialects, and characters with a meaning."""
    grammars = [load(name).grammar for name in names()]
    wrappers = chain.from_iterable(grammar.wrappers for grammar in grammars)
    markers = {marker for wrapper in wrappers for marker in (*wrapper.openers, *wrapper.closers)}
    results = {result for grammar in grammars for result in grammar.results}
    return sorted(markers | results) + list(_ODDS_AND_ENDS)


def damaged(text: str, others: list[Case], pieces: list[str], source: random.Random) -> str:
    """Cut out, double, truncate, insert, replace, or graft a piece of another case, a few times."""
    for _ in range(source.randint(1, 6)):
        start = source.randint(0, len(text))
        end = min(len(text), start + source.randint(0, 20))
        match source.randint(0, 5):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:end] + text[start:]
            case 2:
                text = text[:start]
            case 3:
                text = text[:start] + source.choice(pieces) + text[start:]
            case 4:
                text = text[:start] + source.choice(pieces) + source.choice(pieces) + text[end:]
            case _:
                other = source.choice(others).raw
                begin = source.randint(0, len(other))
                text = text[:start] + other[begin : begin + source.randint(0, 80)] + text[start:]
    return text


def read(dialect: Dialect, case: Case, pieces: tuple[str, ...]) -> list[Event]:
    """Read a text in these chunks."""
    reader = dialect.reader(case.tools, options=case.options)
    return [*chain.from_iterable(map(reader.feed, pieces)), *reader.finish()]


def breach(dialect: Dialect, case: Case, text: str, seed: int) -> str | None:
    """Return the broken promise on this text, if any."""
    whole = fold(read(dialect, case, (text,)))
    for pieces in ((text,), by_characters(text), *at_random(text, CUTS, seed)):
        events = read(dialect, case, pieces)
        if "".join(map(raw_of, events)) != text:
            return f"P1: bytes lost, cut as {pieces!r}"
        if fold(events) != whole:
            return f"another result, cut as {pieces!r}"
    return None


def one(seed: int, texts: list[Case], pieces: list[str]) -> str | None:
    """Damage and read one text; the seed alone reproduces it."""
    source = random.Random(seed)
    case = source.choice(texts)
    text = damaged(case.raw, texts, pieces, source)
    dialect = source.choice((case.dialect, load("any"), load(source.choice(names()))))
    found = breach(dialect, case, text, seed)
    return None if found is None else f"seed {seed}, {dialect.name}, {text!r}: {found}"


def texts() -> list[Case]:
    """Return the cases that are damaged."""
    return [case for case in cases() if case.deltas is None and case.body == "text" and len(case.raw) <= LONGEST]
