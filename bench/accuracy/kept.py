"""Finished tasks: one line of JSON for each task, form and model, in an append-only file."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from testkit.llama_models import cache_folder

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FOLDER = cache_folder() / "accuracy"
LINES = FOLDER / "lines.jsonl"


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that must be equal for two lines to share a table."""

    seed: int
    max_tokens: int
    server: str


@dataclass(frozen=True, slots=True)
class Line:
    """One task in one form."""

    model: str
    form: str
    version: str
    set: str
    task: str
    conditions: Conditions
    right: bool
    valid: bool
    called: bool
    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float
    calls: list[tuple[str, str]]
    text: str = ""
    failure: str = ""
    notes: list[str] = field(default_factory=list[str])
    """What was missing in a conversation."""
    code: str = ""
    """The version of our code; empty for the forms of other projects."""
    cached_tokens: int = 0
    """Input tokens that the server took from its cache."""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.model, self.form, self.version, self.set, self.task, str(self.conditions))


def read(file: Path = LINES) -> Iterator[Line]:
    """Return all lines."""
    return read_lines(file, Line)


def append(line: Line, file: Path = LINES) -> None:
    """Append a line to the file."""
    append_line(line, file)


LineKind = TypeVar("LineKind")


def read_lines(file: Path, kind: type[LineKind]) -> Iterator[LineKind]:
    """Return the lines of a file, each one as a dataclass of this kind; a line that was cut short is skipped."""
    if not file.exists():
        return
    for text in file.read_text().splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            yield msgspec.json.decode(text, type=kind)


def append_line(line: "DataclassInstance", file: Path) -> None:
    """Append a line to a file; the readers skip a line that was cut short."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(json.dumps(asdict(line), ensure_ascii=False) + "\n")
