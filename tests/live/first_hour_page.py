"""Writes docs/first-hour.md: the three commands with what they printed, and the frictions of the first hour."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "first-hour.md"


@dataclass(frozen=True, slots=True)
class Friction:
    """What went wrong for users of toolspeak 0.1.0, and what happens now."""

    before: str
    after: str
    proof: str
    """The test that fails if it comes back."""


FRICTIONS = (
    Friction(
        "The doctor's profile dropped right calls: 7 of 7 before, 0 of 3 after",
        "A profile is saved only if it is better beyond chance; a guardrail that removes a call reports it",
        "CAP-9, CHK-16, `just everyday`",
    ),
    Friction("Failed streams were logged as success", "They are logged as failures, with the party at fault", "OBS-6"),
    Friction(
        "No log line had the tenant, the path or the upstream", "Each request has one line with all of them", "OBS-6"
    ),
    Friction(
        "A missing extra caused a traceback", "One line with the `pip install` command to run", "`test_extras.py`"
    ),
    Friction(
        "Ctrl-C on `serve` with an open stream: silence, then tracebacks",
        "The gateway drains with a countdown; a second Ctrl-C closes the streams cleanly",
        "OBS-11",
    ),
    Friction("Ctrl-C in the doctor lost all results", "It keeps the results so far and prints the best one", "CAP-10"),
    Friction("`kill -HUP` stopped the gateway", "It reloads the configuration", "OBS-10"),
    Friction(
        "A dead upstream went unnoticed", "`serve` names it and says what to start; `/ready` returns 503", "OBS-8"
    ),
    Friction("Only chat worked: embeddings and completions returned 404", "They are forwarded", "PASS-1 to PASS-4"),
    Friction("All mistakes in a configuration on one line", "One line each, and `toolspeak config check`", "OBS-12"),
    Friction("`run` hid rejected calls", "It shows them with their arguments and the reason", "RUN-8"),
    Friction(
        "`client.chat(tools=[function])` failed", "Functions are accepted as tools everywhere", "`test_functions.py`"
    ),
    Friction("Markup of another dialect leaked to the user", "toolspeak reads it", "INL-9"),
    Friction("Rejections without a reason", "The complaint is shown with its text", "`test_chat.py`"),
    Friction("The docs were ahead of the code", "Planned features are marked as planned", "`test_cli_page.py`"),
)

HEAD = """\
# The first hour

From an empty environment to a file written by an agent, in three commands. `just first-hour` runs the commands in a
fresh virtual environment with a fresh home directory, and generates this page.
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
        f"The file was written by {kept['by']}. Measured on {kept['date']}, on a shared machine with two cores, with "
        f"the model already on disk: {seconds:.0f} s in total."
    )


def _steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for step in steps:
        yield f"\n## {step['title']}\n\n{step['about']}\n\n```\n$ {step['command']}\n{step['output'].rstrip()}\n```\n"
        yield f"\n{step['seconds']:.0f} s.\n"


def _rows() -> Iterator[str]:
    for number, friction in enumerate(FRICTIONS, start=1):
        yield f"| {number} | {friction.before} | {friction.after} | {friction.proof} |\n"
