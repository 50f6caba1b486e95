"""The field cases: outputs of models from public issues, and the verdict on each reading of one.

A case has the model, its tools, the text, and the expected calls. It is read with each of `READINGS`,
whole and cut; a cut must change nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from toolspeak.conformance import cases
from toolspeak.conformance.cases import CaseVerdict as Verdict
from toolspeak.conformance.cases import ConformanceCase
from toolspeak.dialects import Dialect, ReadOptions, load
from toolspeak.engine.narration import written_call
from toolspeak.engine.readers import emulated_dialect
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import DEFAULT_DIALECT
from toolspeak.ir.json import as_string, object_at
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold
from toolspeak.text.strict import parse
from toolspeak.toolset.toolset import ToolSet

__all__ = ["READINGS", "FieldCase", "Verdict", "field_cases"]

READINGS: Final = ("written", "gateway", "any", "taught")
"""The dialect of the text; the dialect that the gateway reads leaked calls with; the dialect for every form; the
dialect that reads an emulated turn."""


@dataclass(frozen=True)
class FieldCase(ConformanceCase):
    """One output of a model, and our readers for it."""

    @cached_property
    def tools(self) -> ToolSet:
        """The offered tools, compiled."""
        return ToolSet.of([Tool(as_string(each["name"]), "", object_at(each, "parameters")) for each in self.functions])

    def dialect_of(self, reading: str) -> Dialect:
        """Return the dialect of a reading."""
        facts = family_facts(self.model)
        if reading == "taught":
            return emulated_dialect(facts.dialect or DEFAULT_DIALECT, facts)
        return load({"written": self.dialect, "gateway": facts.leaks_as or "any"}.get(reading, "any"))

    def read(self, dialect: Dialect, pieces: Iterable[str]) -> Turn:
        """Read the text in these chunks."""
        options = ReadOptions(calls_in_reasoning=family_facts(self.model).calls_in_reasoning)
        reader = dialect.reader(self.tools, options=options)
        events = [event for piece in pieces for event in reader.feed(piece)]
        return fold((*events, *reader.finish()))

    def verdict(self, turn: Turn) -> Verdict:
        """Judge a turn of ours; the gateway also retries if the text is a call that no reader understands."""
        calls = [{"name": call.name, "arguments": parse(call.arguments)} for call in turn.calls]
        return self.judge(calls, turn.text, complains=bool(turn.complaints) or self._is_asked_for(turn.text))

    def _is_asked_for(self, text: str) -> bool:
        return bool(written_call(text, map(self.tools.tool, self.tools.names)))


@cache
def field_cases() -> tuple[FieldCase, ...]:
    """Return all cases."""
    return tuple(FieldCase(**vars(case)) for case in cases.field_cases())
