"""Cases for the parsers inside of a model server, and what must come of each: the calls of our own reader.

It is run by the Python of the server's environment, which has toolspeak but not the tools of this repository.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools as a client of the OpenAI protocol sends them."""
        functions = [{"name": tool.name, "parameters": dict(tool.parameters)} for tool in self.tools]
        return [{"type": "function", "function": function} for function in functions]

    def own(self) -> Turn:
        """Read it with our own reader."""
        options = ReadOptions(self.choice)
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
    for given in readings():
        reading = given if tells_parallel else replace(given, choice=replace(given.choice, parallel=True))
        tried.add(reading.dialect)
        turn = reading.own()
        expected = [[call.name, parse(call.arguments)] for call in turn.calls]
        answer = whole(reading)
        counts["texts"] += 1
        counts["calls"] += len(expected)
        if answer.complete_calls() != expected or len(answer.calls) != len(expected):
            different.append(f"{reading.case} {reading.dialect} whole: {answer.calls} != {expected}")
        if not (turn.reasoning or turn.complaints) and answer.text.strip() != turn.text.strip():
            different.append(f"{reading.case} {reading.dialect} text: {answer.text[:200]!r} != {turn.text[:200]!r}")
        for pieces in reading.cuts():
            counts["streams"] += 1
            cut = streamed(reading, pieces)
            counts["left open"] += len(cut.calls) - len(expected)
            if cut.complete_calls() != expected:
                different.append(f"{reading.case} {reading.dialect} cut: {cut.calls} != {expected}")
            # A call that was left open has been seen, and is not shown as text again.
            elif len(cut.calls) == len(expected) and cut.text.strip() != answer.text.strip():
                different.append(
                    f"{reading.case} {reading.dialect} cut text: {cut.text[:200]!r} != {answer.text[:200]!r}"
                )
    untried = sorted(set(dialects.names()) - tried)
    return {**counts, "dialects": len(tried), "untried": untried, "different": different}
