"""What has been asked: one line of JSON for each task, form and model, in a file that only grows."""

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
    """What must be equal so that two lines may stand in one table."""

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
    """What a conversation lacked."""
    code: str = ""
    """Which code of ours spoke and read; none for the forms of others."""
    cached_tokens: int = 0
    """Of the input tokens: what the server did not have to read again."""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.model, self.form, self.version, self.set, self.task, str(self.conditions))


def read(file: Path = LINES) -> Iterator[Line]:
    """Return all lines."""
    return read_lines(file, Line)


def append(line: Line, file: Path = LINES) -> None:
    """Keep one more."""
    append_line(line, file)


LineKind = TypeVar("LineKind")


def read_lines(file: Path, kind: type[LineKind]) -> Iterator[LineKind]:
    """Return the lines of a file, each one as a dataclass of this kind; one that was cut short is left out."""
    if not file.exists():
        return
    for text in file.read_text().splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            yield msgspec.json.decode(text, type=kind)


def append_line(line: "DataclassInstance", file: Path) -> None:
    """Add a line to a file; it is whole or missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as out:
        out.write(json.dumps(asdict(line), ensure_ascii=False) + "\n")
