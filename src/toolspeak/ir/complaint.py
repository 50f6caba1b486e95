"""Complaints: why a tool call that the model attempted cannot be delivered. Fixes: what was repaired in a value."""

from dataclasses import dataclass
from enum import StrEnum


class Problem(StrEnum):
    """The kinds of complaint; traces show the values."""

    PARSE_ERROR = "parse_error"
    """The call cannot be read, and repair would have to guess."""
    TRUNCATED = "truncated"
    """The answer ended inside of the call. It never runs, whatever the finish reason says (P3)."""
    UNKNOWN_TOOL = "unknown_tool"
    AMBIGUOUS = "ambiguous"
    """The name fits several tools."""
    SCHEMA_ERROR = "schema_error"
    WRONG_TOOL = "wrong_tool"
    """The tool exists, but the tool choice or the limit of calls forbids this call (CHK-1)."""
    UNRELATED = "unrelated"
    """A guardrail dropped the call (CHK-10, CHK-14)."""
    DISCONNECTED = "upstream_disconnect"


@dataclass(frozen=True, slots=True)
class Complaint:
    """`name` is what the model wrote (None where it wrote none); `detail` names the field and what is accepted."""

    problem: Problem
    name: str | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Fix:
    """One lossless change: `what` was done, at `path` (a JSON pointer; empty for the whole value)."""

    what: str
    path: str = ""
