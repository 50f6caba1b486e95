"""A run by the beginning of its id."""

from typing import Final

from toolspeak.errors import BadRequest, UnknownRun
from toolspeak.runs.runs import Runs

_LATEST: Final = 1000
"""Runs among which a beginning is looked for."""
_SHOWN: Final = 3
_PREFIX: Final = "run_"
SHORT: Final = 8
"""Characters of an id that people see, if they tell it from others."""


def short(id: str, size: int = SHORT) -> str:
    """Return the part of an id that people need."""
    return id.removeprefix(_PREFIX)[:size]


async def named(runs: Runs, beginning: str) -> str:
    """Return the id that begins so; it must be the only one, unless it is the whole id."""
    ids = [line.id for line in await runs.list(limit=_LATEST)]
    found = [id for id in ids if id.startswith((beginning, _PREFIX + beginning))]
    if beginning in found or not found:
        return (await runs.show(beginning)).line.id  # older ones can be shown by their whole id
    if not beginning:
        raise UnknownRun("an id is needed: `toolspeak runs` lists them")
    if len(found) > 1:
        examples = ", ".join(found[:_SHOWN])
        raise BadRequest(f"{len(found)} runs begin with {beginning!r}: {examples}; say more of the id")
    return found[0]
