"""Cases for the parsers inside of a model server, and what must come of each: the calls of our own reader.

It is run by the Python of the server's environment, which has toolspeak but not the tools of this repository.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from testkit.field import field_cases
from testkit.golden import cases
from testkit.splits import at_random, by_characters
from toolspeak import dialects
from toolspeak.dialects import ReadOptions
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Turn
from toolspeak.text.strict import parse
from toolspeak.toolset.toolset import ToolSet

RANDOM_CUTS: Final = 5
LONG: Final = 4_000
"""Characters from which a text is not cut into single ones."""


@dataclass(frozen=True)
class Reading:
    """One text, read with the parser of one dialect."""

    case: str
    dialect: str
    text: str
    tools: tuple[Tool, ...]
    choice: ToolChoice
    splits_reasoning: bool = False
    """Whether the server also has the dialect's parser of reasoning."""
    opener: str = ""
    """The marker with which the prompt has opened the reasoning."""

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools as a client of the OpenAI protocol sends them."""
        functions = [{"name": tool.name, "parameters": dict(tool.parameters)} for tool in self.tools]
        return [{"type": "function", "function": function} for function in functions]

    def own(self) -> Turn:
        """Read it with our own reader."""
        options = ReadOptions(self.choice, starts_in_reasoning=bool(self.opener))
        return dialects.load(self.dialect).read(self.text, ToolSet.of(self.tools), options)

    def cuts(self) -> Iterator[tuple[str, ...]]:
        """Yield the pieces in which the text arrives."""
        if len(self.text) <= LONG:
            yield by_characters(self.text)
        yield from at_random(self.text, RANDOM_CUTS, seed=len(self.text))


@dataclass(frozen=True)
class ServerAnswer:
    """What a client of the server gets: text, and calls with their arguments as JSON text."""

    text: str
    calls: Sequence[tuple[str, str]]
    reasoning: str = ""

    def complete_calls(self) -> list[Any]:
        """Return the calls that a client can run: those whose arguments are JSON."""
        found: list[Any] = []
        for name, arguments in self.calls:
            try:
                found.append([name, json.loads(arguments)])
            except ValueError:
                continue
        return found


def readings() -> Iterator[Reading]:
    """Yield every golden case and every field case, in its own dialect and in `any`.

    Left out are cases without text, cases of a dialect that is made for one conversation, and forced calls: both
    servers make the model write those as JSON, and read them without the parser.
    """
    known = set(dialects.names())
    for case in cases():
        is_text = case.deltas is None and case.body == "text"
        if is_text and case.dialect.name in known and case.options.choice.mode in (ChoiceMode.AUTO, ChoiceMode.NONE):
            for dialect in dict.fromkeys((case.dialect.name, "any")):
                yield Reading(case.id, dialect, case.raw, case.tools, case.options.choice)
    for field in field_cases():
        tools = tuple(field.tools.tool(name) for name in field.tools.names)
        for dialect in dict.fromkeys((field.dialect, "any")):
            yield Reading(field.id, dialect, field.text, tools, AUTO)


UNCLOSED: Final = ("fp-004-unclosed-think-ends-with-call", "mm-09", "sm-15", "D38-harmony-analysis")
"""Outputs that are reasoning to their end, with a call in it that our own reader takes out. A server gives its parser
of calls only what follows the reasoning, so that the call stays reasoning there."""


def reasoning_readings() -> Iterator[Reading]:
    """Yield the texts with reasoning for a server with both parsers, also as the rest of a prompt that opened it."""
    for reading in readings():
        if reading.case in UNCLOSED or not reading.own().reasoning:
            continue
        yield replace(reading, splits_reasoning=True)
        for marks in dialects.load(reading.dialect).grammar.reasoning:
            is_closed = any(closer in reading.text for closer in marks.closers)
            if is_closed and reading.text.startswith(marks.opener):
                rest = reading.text.removeprefix(marks.opener)
                yield replace(reading, text=rest, splits_reasoning=True, opener=marks.opener)


def markers(dialect: str) -> list[str]:
    """Return the markers of reasoning, which are tokens in the vocabularies of the models that write them."""
    marks = dialects.load(dialect).grammar.reasoning
    return [marker for each in marks for marker in (each.opener, *each.closers)]


def compare(
    whole: Callable[[Reading], ServerAnswer],
    streamed: Callable[[Reading, Sequence[str]], ServerAnswer],
    *,
    tells_parallel: bool,
) -> dict[str, Any]:
    """Read everything whole and cut; return the counts and what is different.

    `tells_parallel` says whether the server tells its parsers that the client wants one call at most.
    """
    counts, different, tried = Counter[str](), list[str](), set[str]()
    for given in chain(readings(), reasoning_readings()):
        reading = given if tells_parallel else replace(given, choice=replace(given.choice, parallel=True))
        tried.add(reading.dialect)
        turn, answer = reading.own(), whole(reading)
        wrong = _wrong(turn, answer)
        counts["texts"] += 1
        counts["with reasoning"] += reading.splits_reasoning
        counts["calls"] += len(turn.calls)
        for pieces in reading.cuts():
            counts["streams"] += 1
            cut = streamed(reading, pieces)
            counts["left open"] += len(cut.calls) - len(answer.calls)
            wrong += [f"cut {line}" for line in _different(cut, answer)]
        different += [f"{reading.case} {reading.dialect} {line}" for line in wrong]
    untried = sorted(set(dialects.names()) - tried)
    return {**counts, "dialects": len(tried), "untried": untried, "different": different}


def _wrong(turn: Turn, answer: ServerAnswer) -> list[str]:
    """Say how a whole answer differs from the turn of our own reader."""
    expected = [[call.name, parse(call.arguments)] for call in turn.calls]
    wrong: list[str] = []
    if answer.complete_calls() != expected or len(answer.calls) != len(expected):
        wrong.append(f"calls: {answer.calls} != {expected}")
    if answer.reasoning and answer.reasoning.strip() != turn.reasoning.strip():
        wrong.append(f"reasoning: {answer.reasoning[:200]!r} != {turn.reasoning[:200]!r}")
    # Without a parser of reasoning, that is in the text; so are rejected calls.
    is_plain = not turn.complaints and bool(answer.reasoning) == bool(turn.reasoning)
    if is_plain and answer.text.strip() != turn.text.strip():
        wrong.append(f"text: {answer.text[:200]!r} != {turn.text[:200]!r}")
    return wrong


def _different(cut: ServerAnswer, whole: ServerAnswer) -> list[str]:
    """Say how a streamed answer differs from the whole one."""
    if cut.complete_calls() != whole.complete_calls():
        return [f"calls: {cut.calls} != {whole.calls}"]
    if cut.reasoning.strip() != whole.reasoning.strip():
        return [f"reasoning: {cut.reasoning[:200]!r} != {whole.reasoning[:200]!r}"]
    # A call that was left open has been seen, and is not shown as text again.
    if len(cut.calls) == len(whole.calls) and cut.text.strip() != whole.text.strip():
        return [f"text: {cut.text[:200]!r} != {whole.text[:200]!r}"]
    return []
