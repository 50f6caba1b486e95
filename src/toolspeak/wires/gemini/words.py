"""The words of this wire, and what they mean."""

import re
from typing import Final

from toolspeak.ir.event import StopReason, Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires._counts import count
from toolspeak.wires._fields import Fields
from toolspeak.wires._loose import mapped

NAME: Final = "gemini"
LONGEST_NAME: Final = 64
"""Newer models take 128 characters; all take these."""

NO_SIGNATURE: Final = "skip_thought_signature_validator"
"""What Google's servers accept on a call that another model made."""

STOPS: Final = {
    "STOP": StopReason.END,
    "OTHER": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "CONTINUATION": StopReason.LENGTH,
    "SAFETY": StopReason.FILTER,
    "RECITATION": StopReason.FILTER,
    "BLOCKLIST": StopReason.FILTER,
    "PROHIBITED_CONTENT": StopReason.FILTER,
    "SPII": StopReason.FILTER,
    "LANGUAGE": StopReason.FILTER,
    "IMAGE_SAFETY": StopReason.FILTER,
    "IMAGE_PROHIBITED_CONTENT": StopReason.FILTER,
    "IMAGE_RECITATION": StopReason.FILTER,
    "MODEL_ARMOR": StopReason.FILTER,
}
BAD_CALLS: Final = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
BAD_ANSWER: Final = "MALFORMED_RESPONSE"
NO_REASON: Final = "FINISH_REASON_UNSPECIFIED"
FINISH_REASONS: Final = {
    StopReason.END: "STOP",
    StopReason.CALLS: "STOP",
    StopReason.LENGTH: "MAX_TOKENS",
    StopReason.FILTER: "SAFETY",
    StopReason.ERROR: "OTHER",
}

_WORD_START = re.compile(r"(?<=[a-z0-9])_([a-z0-9])")


def camel(fields: Fields) -> Fields:
    """Spell the keys of one object as we do: every field has two names, `functionCall` and `function_call`."""
    if any("_" in key for key in fields.left):
        fields.left = {_WORD_START.sub(_upper, key): value for key, value in fields.left.items()}
    return fields


def camel_at(fields: Fields, key: str) -> Fields | None:
    """Take an object to take fields out of, by either of their names."""
    inside = fields.fields(key)
    return None if inside is None else camel(inside)


def camel_each(fields: Fields, key: str) -> list[Fields]:
    """Take an array of objects; one object that stands alone is an array of one, as Google's own examples have it."""
    if isinstance(fields.left.get(key), dict):
        return [inside] if (inside := camel_at(fields, key)) is not None else []
    return [camel(each) for each in fields.each(key)]


def _upper(found: re.Match[str]) -> str:
    return found[1].upper()


def usage_of(value: Json) -> Usage:
    """Read token counts; what is no number counts as none."""
    counts = mapped(value)
    thoughts = count(counts, "thoughtsTokenCount")
    return Usage(
        input_tokens=count(counts, "promptTokenCount") + count(counts, "toolUsePromptTokenCount"),
        output_tokens=count(counts, "candidatesTokenCount") + thoughts,
        cache_read_tokens=count(counts, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )


def usage_body(usage: Usage) -> JsonObject:
    """Write token counts; thoughts are not counted among the candidates' tokens."""
    thoughts = min(usage.reasoning_tokens, usage.output_tokens)
    body: JsonObject = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - thoughts,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }
    if thoughts:
        body["thoughtsTokenCount"] = thoughts
    if usage.cache_read_tokens:
        body["cachedContentTokenCount"] = usage.cache_read_tokens
    return body
