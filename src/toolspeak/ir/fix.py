"""Fixes: records of what repair or coercion did to a value. Traces and complaints show them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fix:
    """One lossless change: `what` was done, at `path` (a JSON pointer; empty for the whole value)."""

    what: str
    path: str = ""
