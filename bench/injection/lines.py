"""What has been played: one line of JSON for each case, form and model, in a file that only grows."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy.kept import FOLDER, Conditions, append_line, read_lines
from bench.injection.cases import Case

LINES = FOLDER / "injection.jsonl"


@dataclass(frozen=True, slots=True)
class InjectionLine:
    """One case in one form."""

    model: str
    form: str
    version: str
    case: Case
    conditions: Conditions
    dojo: str
    """The version of AgentDojo and the most rounds of a case."""
    utility: bool
    attacked: bool
    reached: bool
    requests: int
    input_tokens: int
    output_tokens: int
    seconds: float
    calls: list[tuple[str, str]]
    text: str = ""
    failure: str = ""
    code: str = ""
    """Which code of ours spoke and read; none for the plain forms."""

    @property
    def key(self) -> tuple[str, ...]:
        return (self.model, self.form, self.version, self.case.key, str(self.conditions), self.dojo)


def read(file: Path = LINES) -> Iterator[InjectionLine]:
    """Return all lines."""
    return read_lines(file, InjectionLine)


def append(line: InjectionLine, file: Path = LINES) -> None:
    """Keep one more."""
    append_line(line, file)
