"""The field cases: outputs of models from public issues, and the verdict on each reading of one.

A case names the model, its tools, the text, and the calls that must come of it. It is read with each of `READINGS`,
whole and cut; a cut must change nothing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final

from testkit.golden import GOLDEN
from toolspeak.dialects import Dialect, ReadOptions, load
from toolspeak.engine.narration import written_call
from toolspeak.engine.readers import emulated_dialect
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import DEFAULT_DIALECT
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold
from toolspeak.text.strict import parse
from toolspeak.toolset.toolset import ToolSet

READINGS: Final = ("written", "gateway", "any", "taught")
"""The dialect that the text is in; the one that the gateway reads leaked calls with; the one for every form; the
one that reads an emulated turn."""


class Verdict(Enum):
    """What came of one reading, from good to bad."""

    RIGHT = "right"
    REFUSED = "not read: the model is asked again"
    SHOWN = "text lost or markup shown"
    MISSED = "missed"
    WRONG = "wrong call"
    FALSE = "false call"


@dataclass(frozen=True)
class FieldCase:
    """One output of a model."""

    id: str
    source: str
    """The issue that taught us the case."""
    model: str
    dialect: str
    tools: ToolSet
    text: str
    accepted: tuple[list[Any], ...]
    """Lists of calls, each of which is right; the first is the best."""
    contains: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    note: str = ""

    def dialect_of(self, reading: str) -> Dialect:
        """Return the dialect of a reading."""
        facts = family_facts(self.model)
        if reading == "taught":
            return emulated_dialect(facts.dialect or DEFAULT_DIALECT, facts)
        return load({"written": self.dialect, "gateway": facts.leaks_as or "any"}.get(reading, "any"))

    def read(self, dialect: Dialect, pieces: Iterable[str]) -> Turn:
        """Read the text, cut into these pieces."""
        options = ReadOptions(calls_in_reasoning=family_facts(self.model).calls_in_reasoning)
        reader = dialect.reader(self.tools, options=options)
        events = [event for piece in pieces for event in reader.feed(piece)]
        return fold((*events, *reader.finish()))

    def verdict(self, turn: Turn) -> Verdict:
        """Judge a turn of ours; the gateway also asks again if the text is a call that no reader understands."""
        calls = [{"name": call.name, "arguments": parse(call.arguments)} for call in turn.calls]
        return self.judge(calls, turn.text, complains=bool(turn.complaints) or self._is_asked_for(turn.text))

    def judge(self, calls: list[Any], text: str, *, complains: bool) -> Verdict:
        """Judge calls and text; calls that are right as far as they go are refused if a complaint tells of the rest."""
        if calls in self.accepted:
            is_refused = not calls and bool(self.accepted[0])  # the text of an attempt may be shown then
            return Verdict.RIGHT if is_refused or self._shows(text) else Verdict.SHOWN
        if any(_is_part(calls, accepted) for accepted in self.accepted):
            return Verdict.REFUSED if complains else Verdict.MISSED
        return Verdict.WRONG if self.accepted[0] else Verdict.FALSE

    def _is_asked_for(self, text: str) -> bool:
        return bool(written_call(text, map(self.tools.tool, self.tools.names)))

    def _shows(self, text: str) -> bool:
        return all(part in text for part in self.contains) and not any(part in text for part in self.absent)


def _is_part(calls: list[Any], of: list[Any]) -> bool:
    rest = iter(of)
    return all(call in rest for call in calls)


@cache
def field_cases() -> tuple[FieldCase, ...]:
    """Return all cases."""
    lines = (GOLDEN / "field.jsonl").read_text(encoding="utf-8").split("\n")
    return tuple(_case(json.loads(line)) for line in lines if line)


def _case(row: Mapping[str, Any]) -> FieldCase:
    expect: dict[str, Any] = row["expect"]
    tools = [Tool(tool["name"], "", tool["parameters"]) for tool in row["tools"]]
    return FieldCase(
        id=row["id"],
        source=row["source"],
        model=row["model"],
        dialect=row["dialect"],
        tools=ToolSet.of(tools),
        text=row["text"],
        accepted=(expect["calls"], *expect.get("any_of", ())),
        contains=tuple(expect.get("text_contains", ())),
        absent=tuple(expect.get("text_absent", ())),
        note=row["note"],
    )
