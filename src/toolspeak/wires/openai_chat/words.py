"""The words of this wire, and what they mean."""

from typing import Final

from toolspeak.ir.event import StopReason, Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires._counts import count, inner

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
    """Say why it ended; with calls it is never `stop`."""
    return FINISH_REASONS[StopReason.CALLS if calls and stop in (StopReason.END, None) else stop or StopReason.END]


def usage_of(value: Json) -> Usage:
    """Read token counts; what is no number counts as none."""
    if not isinstance(value, dict):
        return Usage()
    prompt, completion = inner(value, "prompt_tokens_details"), inner(value, "completion_tokens_details")
    return Usage(
        count(value, "prompt_tokens"),
        count(value, "completion_tokens"),
        count(prompt, "cached_tokens"),
        count(prompt, "cache_write_tokens"),
        count(completion, "reasoning_tokens"),
    )


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
