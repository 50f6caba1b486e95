"""The words of this wire, and what they mean."""

from typing import Final

from toolspeak.ir.event import StopReason, Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires._counts import count
from toolspeak.wires._loose import mapped

NAME: Final = "ollama"
LONGEST_NAME: Final = 128
"""Ollama itself names no limit; no tool that we have seen is longer."""

STOPS: Final = {
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "load": StopReason.END,
    "unload": StopReason.END,
}


def done_reason(stop: StopReason | None) -> str:
    """Return why it ended; calls are a plain stop here."""
    return "length" if stop is StopReason.LENGTH else "stop"


def usage_of(value: Json) -> Usage:
    """Read token counts; what is no number counts as none."""
    counts = mapped(value)
    return Usage(count(counts, "prompt_eval_count"), count(counts, "eval_count"))


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts, and the durations that nobody has measured."""
    return {
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": usage.input_tokens,
        "prompt_eval_duration": 0,
        "eval_count": usage.output_tokens,
        "eval_duration": 0,
    }
