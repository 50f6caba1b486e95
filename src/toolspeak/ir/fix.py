"""What repair or coercion did to a value, so that nobody has to guess later."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fix:
    """One lossless change: `what` was done, at `path` (a JSON pointer; empty for the whole value)."""

    what: str
    path: str = ""
