"""Which sandbox works here, for people and for programs.

bwrap     works, and confines the shell of runs
sandlock  not here: it leaves root root: run as an ordinary user
"""

from collections.abc import Iterator, Sequence

from toolspeak.cli.terminal import Paint
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.sandbox.find import Found
from toolspeak.runtime.sandbox.journal import Report
from toolspeak.text.visible import visible


def lines(found: Found, paint: Paint, left: Sequence[Report] = ()) -> Iterator[str]:
    """Say of each kind what came of it, what becomes of commands, and what commands have left after a crash."""
    chosen = found.sandbox.name if found.sandbox else ""
    for each in found.tried:
        says = f"not here: {visible(each.problem)}" if each.problem else "works"
        says += ", and confines the shell of runs" if each.name == chosen else ""
        yield f"{each.name:9} {paint.ink(says, 'yellow' if each.problem else 'green')}"
    if not chosen:
        yield paint.ink(f"The shell of runs refuses: {visible(found.refusal)}.", "red")
    for report in left:
        for note in report.notes:
            yield paint.ink(f"A command that toolspeak could not end has changed {report.folder}: {note}", "yellow")


def as_object(found: Found, left: Sequence[Report] = ()) -> JsonObject:
    """Say it for programs."""
    return {
        "sandbox": found.sandbox.name if found.sandbox else None,
        "tried": [{"name": each.name, "works": not each.problem, "problem": each.problem} for each in found.tried],
        "left": [{"folder": str(each.folder), "notes": [*each.notes]} for each in left],
    }
