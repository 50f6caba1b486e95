"""The conformance cases: outputs of models, the tools they were offered, and the calls that must come of each.

`data/field.jsonl` has outputs from public issues, `data/failures.jsonl` the failures that parsers are known for, and
`data/samples.jsonl` one well-formed output of each text format. The tests of this repository read the same files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, Final, cast

from toolspeak import conformance
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.strict import dump, parse

STREAM: Final = "stream"
WHOLE: Final = "whole"
_NO_TEXT_EXPECTED: Final = ("rendered", "classify", "action", "events")
"""Expectations of rows that are about history, errors and wires: no output of a model is read there."""
_OTHER_FORMATS: Final = ("native_gemini", "nonce_json")
"""Answers of another wire, and a form whose markers the gateway itself must have chosen."""

_ONLY_TEXT: Final = "noncall"
"""The kind of texts that only look like calls."""


class CaseVerdict(Enum):
    """What came of one output, from good to bad."""

    RIGHT = "right"
    REFUSED = "not read: the model is asked again"
    SHOWN = "text lost or markup shown"
    MISSED = "missed"
    WRONG = "wrong call"
    FALSE = "false call"


@dataclass(frozen=True)
class ConformanceCase:
    """One output of a model, and what a client must get."""

    id: str
    kind: str
    """The family of the model, or what is special about the output; a row of the table."""
    source: str
    """The issue that taught us the case, or the origin of the text."""
    functions: tuple[JsonObject, ...]
    """The offered tools, each with `name` and `parameters`."""
    text: str
    accepted: tuple[list[Any], ...]
    """Lists of calls, each of which is right; the first is the best."""
    model: str = ""
    """The model that wrote the text; empty if no particular one did."""
    dialect: str = ""
    """The dialect of toolspeak that the text is in, if the row names one."""
    contains: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    exact_text: str | None = None
    """The whole text for the client, white space aside; None if the case does not say."""
    finish: str = "stop"
    """The finish_reason of the model server."""
    tool_choice: Json = None
    parallel: bool = True
    deltas: tuple[JsonObject, ...] = ()
    """Native deltas of a stream, sent instead of the text."""
    note: str = ""

    @property
    def ways(self) -> tuple[str, ...]:
        """How the case can be asked for: streamed and whole; native deltas have no whole form."""
        return (STREAM,) if self.deltas else (STREAM, WHOLE)

    @property
    def has_text(self) -> bool:
        """Whether the client must get some text: an error in its place is not right."""
        return bool(self.contains) or bool(self.exact_text) or self.kind == _ONLY_TEXT

    def judge(self, calls: list[Any], text: str, *, complains: bool) -> CaseVerdict:
        """Judge calls and text; calls that are right as far as they go are refused if a complaint tells of the rest."""
        calls = _typed(calls)
        if calls in map(_typed, self.accepted):
            is_refused = not calls and bool(self.accepted[0])  # the text of an attempt may be shown then
            return CaseVerdict.RIGHT if is_refused or self._shows(text) else CaseVerdict.SHOWN
        if any(_is_part(calls, _typed(accepted)) for accepted in self.accepted):
            return CaseVerdict.REFUSED if complains else CaseVerdict.MISSED
        return CaseVerdict.WRONG if self.accepted[0] else CaseVerdict.FALSE

    def _shows(self, text: str) -> bool:
        if self.exact_text is not None and text.split() != self.exact_text.split():
            return False
        return all(part in text for part in self.contains) and not any(part in text for part in self.absent)


def _typed(value: Json) -> Any:  # noqa: ANN401 # JSON, with a tuple for each boolean
    """Return a value in which `true` and `1`, which are equal in Python, differ."""
    if isinstance(value, bool):
        return (value,)
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in value.items()}
    return [_typed(item) for item in value] if isinstance(value, list) else value


def _is_part(calls: list[Any], of: list[Any]) -> bool:
    rest = iter(of)
    return all(call in rest for call in calls)


@cache
def conformance_cases() -> tuple[ConformanceCase, ...]:
    """Return all cases."""
    return (*field_cases(), *_failure_cases(), *_sample_cases())


def field_cases() -> Iterator[ConformanceCase]:
    """Yield the outputs from public issues."""
    for row in case_rows("field"):
        expect: Mapping[str, Any] = row["expect"]
        yield ConformanceCase(
            id=row["id"],
            kind=row["family"],
            source=row["source"],
            functions=tuple(row["tools"]),
            text=row["text"],
            accepted=(expect["calls"], *expect.get("any_of", ())),
            model=row["model"],
            dialect=row["dialect"],
            contains=tuple(expect.get("text_contains", ())),
            absent=tuple(expect.get("text_absent", ())),
            note=row["note"],
        )


def _failure_cases() -> Iterator[ConformanceCase]:
    return (_failure_case(row) for row in failure_rows() if _is_sent(row))


def _is_sent(row: Mapping[str, Any]) -> bool:
    """Return whether a row is an output that any gateway could get, whatever its limits and its markers are."""
    is_own = "context" in row or "limits" in row["expect"] or "stream_end" in row
    return not is_own and row["dialect_hint"] not in _OTHER_FORMATS and not row["raw_output"].startswith("data: ")


def _failure_case(row: Mapping[str, Any]) -> ConformanceCase:
    expect: Mapping[str, Any] = row["expect"]
    other: Mapping[str, Any] = expect.get("alt", {})
    text: str = expect["text"]
    # A refused call may be shown or dropped, and so may the text of another accepted reading. A signal tells the engine
    # to ask again: what the client gets then is its own affair, if only it is no call.
    is_exact = not expect.get("invalid") and not other and "signal" not in expect
    return ConformanceCase(
        id=row["id"],
        kind=row["group"].replace("_", " "),
        source=row["source"],
        functions=tuple(row["tools"]),
        text=row["raw_output"],
        accepted=(expect["calls"], *([other["calls"]] if "calls" in other else ())),
        exact_text=text if is_exact else None,
        finish=row.get("upstream_finish", "stop"),
        tool_choice=row.get("tool_choice"),
        parallel=row.get("parallel_tool_calls", True),
        deltas=tuple({"tool_calls": delta} if isinstance(delta, list) else delta for delta in _deltas(row)),
        note=expect.get("notes", ""),
    )


def _deltas(row: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = row.get("native_deltas") or []
    return found


def _sample_cases() -> Iterator[ConformanceCase]:
    head, *rows = case_rows("samples")
    for row in rows:
        is_damaged = row["dialect"].startswith("BAD-")
        yield ConformanceCase(
            id=row["dialect"].partition(" ")[0],
            kind="damaged samples" if is_damaged else "one sample of each format",
            source="composed",
            functions=tuple(head["tools"]),
            text=row["text"],
            accepted=(row["calls"],),
            note=row["note"],
        )


# ---------------------------------------------------------------- files


def case_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of one file of cases."""
    text = files(conformance).joinpath("data", f"{name}.jsonl").read_text(encoding="utf-8")
    return [cast("dict[str, Any]", parse(line)) for line in text.split("\n") if line]


def failure_rows() -> Iterator[dict[str, Any]]:
    """Yield the rows of `failures.jsonl` that hold an output of a model, with repeated parts written out."""
    for row in case_rows("failures"):
        if not set(_NO_TEXT_EXPECTED) & set(row["expect"]) and row["dialect_hint"] != "native_gemini":
            yield _written_out(row)


def _written_out(row: dict[str, Any]) -> dict[str, Any]:
    text = dump(row)
    for part in [row.get("expand"), *row.get("expand_many", [])]:
        if part:
            filling: str = part["repeat"] * part["times"]
            filling = filling[: -part["strip_last"]] if "strip_last" in part else filling
            text = text.replace(part["token"], dump(filling)[1:-1])
    return cast("dict[str, Any]", parse(text))
