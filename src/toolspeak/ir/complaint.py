"""Why a tool call that the model attempted cannot be delivered."""

from dataclasses import dataclass
from enum import StrEnum


class Problem(StrEnum):
    """The kinds of complaint; the values are what people see in traces and corrections."""

    PARSE_ERROR = "parse_error"
    TRUNCATED = "truncated"
    UNKNOWN_TOOL = "unknown_tool"
    AMBIGUOUS = "ambiguous"
    SCHEMA_ERROR = "schema_error"
    WRONG_TOOL = "wrong_tool"
    UNRELATED = "unrelated"
    DISCONNECTED = "upstream_disconnect"


@dataclass(frozen=True, slots=True)
class Complaint:
    """`name` is what the model wrote (None where it wrote none); `detail` names the field and what is accepted."""

    problem: Problem
    name: str | None
    detail: str = ""
