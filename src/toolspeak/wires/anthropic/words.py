"""The words of this wire, and what they mean."""

from typing import Final

from toolspeak.ir.event import StopReason, Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires._breaks import CUTS
from toolspeak.wires._counts import count
from toolspeak.wires._loose import inner, mapped

NAME: Final = "anthropic"
REDACTED: Final = "redacted_thinking"
"""A thought that the vendor shows to nobody: inside toolspeak a signature of this name and the sealed data."""
LONGEST_NAME: Final = 128

STOPS: Final = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "pause_turn": StopReason.END,
    "tool_use": StopReason.CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "refusal": StopReason.FILTER,
}
_COUNTS: Final = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def stop_body(stop: StopReason | None, stop_sequence: str, *, calls: bool) -> JsonObject:
    """Return why it ended: with calls it is never a plain end, and without any it is never `tool_use`."""
    if stop in CUTS:
        return {"stop_reason": "max_tokens" if stop is StopReason.LENGTH else "refusal", "stop_sequence": None}
    if calls:
        return {"stop_reason": "tool_use", "stop_sequence": None}
    if stop_sequence:
        return {"stop_reason": "stop_sequence", "stop_sequence": stop_sequence}
    return {"stop_reason": "end_turn", "stop_sequence": None}


def usage_of(value: Json) -> Usage:
    """Read token counts. This vendor's `input_tokens` leave out what a cache read or wrote; ours do not."""
    counts = mapped(value)
    read, written = count(counts, "cache_read_input_tokens"), count(counts, "cache_creation_input_tokens")
    thought = count(inner(counts, "output_tokens_details"), "thinking_tokens")
    return Usage(count(counts, "input_tokens") + read + written, count(counts, "output_tokens"), read, written, thought)


def merged_counts(known: Json, value: Json) -> Json:
    """Add the counts of a later event: they are totals, and those that it leaves out or has as zero stay."""
    if not isinstance(value, dict):
        return known
    told: JsonObject = {key: value[key] for key in _COUNTS if count(value, key)}
    details = inner(value, "output_tokens_details")
    return {**mapped(known), **told, **({"output_tokens_details": details} if details else {})}


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    body: JsonObject = {
        "input_tokens": max(usage.input_tokens - cached, 0),
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.reasoning_tokens:
        body["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return body


def sealed(data: str) -> str:
    """Return the signature that carries a thought which nobody may see."""
    return f"{REDACTED}:{data}"


def unsealed(signature: str) -> str:
    """Return the sealed data of such a signature; empty if it is an ordinary one."""
    head, mark, data = signature.partition(":")
    return data if mark and head == REDACTED else ""
