"""Writes docs/first-hour.md: the three commands with what they printed, and the frictions of the first hour."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.md"


@dataclass(frozen=True, slots=True)
class Friction:
    """What went wrong for people who tried toolspeak 0.1.0, and what happens now."""

    before: str
    after: str
    proof: str
    """The test that fails if it comes back."""


FRICTIONS = (
    Friction(
        "The profile of the doctor dropped right calls: 7 of 7 before, 0 of 3 after",
        "A profile is kept only if it is better beyond chance; a guardrail that takes a call away says so",
        "CAP-9, CHK-16, `just everyday`",
    ),
    Friction("Failed streams were logged as success", "They are logged as failures, with whose fault it is", "OBS-6"),
    Friction("No log line named the tenant, the path or the upstream", "One line for each request has them", "OBS-6"),
    Friction("A traceback when an extra was missing", "One line with the `pip install` to type", "`test_extras.py`"),
    Friction(
        "Ctrl-C on `serve` with an open stream: silence, then tracebacks",
        "It drains with a countdown; twice ends the streams in order",
        "OBS-11",
    ),
    Friction("Ctrl-C in the doctor lost everything", "It keeps what is known and prints the best so far", "CAP-10"),
    Friction("`kill -HUP` ended the gateway", "It reloads the configuration", "OBS-10"),
    Friction("A dead upstream went unnoticed", "`serve` names it and what to start; `/ready` is 503", "OBS-8"),
    Friction("Chat only: embeddings and completions were 404", "They are forwarded", "PASS-1 to PASS-4"),
    Friction("All mistakes of a configuration on one line", "One line each, and `toolspeak config check`", "OBS-12"),
    Friction("`run` hid rejected calls", "It shows them with their arguments and the reason", "RUN-8"),
    Friction("`client.chat(tools=[function])` failed", "Functions are tools everywhere", "`test_functions.py`"),
    Friction("Markup of another dialect leaked to the user", "It is read", "INL-9"),
    Friction("Refusals without a reason", "The complaint is shown with its text", "`test_chat.py`"),
    Friction("Docs were ahead of the code", "What is planned says so", "`test_cli_page.py`"),
)

HEAD = """\
# The first hour

From an empty environment to a file that an agent has written: three commands. `just first-hour` runs them in a fresh
virtual environment with a fresh home, and writes this page.
"""
FRICTIONS_HEAD = """
## What used to go wrong

| | before | now | proof |
| --- | --- | --- | --- |
"""


def page(kept: Mapping[str, Any]) -> str:
    """Return the page."""
    return "".join([HEAD, f"\n{_summary(kept)}\n", *_steps(kept["steps"]), FRICTIONS_HEAD, *_rows()])


def _summary(kept: Mapping[str, Any]) -> str:
    seconds = sum(step["seconds"] for step in kept["steps"] if step["counts"])
    return (
        f"The file was written by {kept['by']}. Measured on {kept['date']} on a shared machine with two cores, the "
        f"model already on its disk: {seconds:.0f} s in all."
    )


def _steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for step in steps:
        yield f"\n## {step['title']}\n\n{step['about']}\n\n```\n$ {step['command']}\n{step['output'].rstrip()}\n```\n"
        yield f"\n{step['seconds']:.0f} s.\n"


def _rows() -> Iterator[str]:
    for number, friction in enumerate(FRICTIONS, start=1):
        yield f"| {number} | {friction.before} | {friction.after} | {friction.proof} |\n"
