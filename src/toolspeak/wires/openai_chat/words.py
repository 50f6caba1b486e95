"""The words of this wire, and what they mean."""

from typing import Final

from toolspeak.ir.event import StopReason, Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires._counts import read_counts, write_counts

NAME: Final = "openai_chat"
LONGEST_NAME: Final = 64

STOPS: Final = {
    "stop": StopReason.END,
    "tool_calls": StopReason.CALLS,
    "function_call": StopReason.CALLS,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.FILTER,
}
FINISH_REASONS: Final = {
    StopReason.END: "stop",
    StopReason.CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.FILTER: "content_filter",
    StopReason.ERROR: "stop",
}


def finish_reason(stop: StopReason | None, *, calls: bool) -> str:
    """Return why it ended; with calls it is never `stop`."""
    return FINISH_REASONS[StopReason.CALLS if calls and stop in (StopReason.END, None) else stop or StopReason.END]


def usage_of(value: Json) -> Usage:
    """Read token counts; what is no number counts as none."""
    return read_counts(value, "prompt", "completion")


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts."""
    return write_counts(usage, "prompt", "completion")
