"""Numbers of tokens, as servers tell them: missing, null or nonsense is none."""

from toolspeak.ir.event import Usage
from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires._loose import inner, mapped


def count(body: JsonObject, key: str) -> int:
    """Read a number of tokens."""
    value = body.get(key)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def read_counts(value: Json, told: str, said: str) -> Usage:
    """Read token counts as OpenAI writes them; what went in and out is `prompt` and `completion`, or other words."""
    body = mapped(value)
    into, out = inner(body, f"{told}_tokens_details"), inner(body, f"{said}_tokens_details")
    return Usage(
        count(body, f"{told}_tokens"),
        count(body, f"{said}_tokens"),
        count(into, "cached_tokens"),
        count(into, "cache_write_tokens"),
        count(out, "reasoning_tokens"),
    )


def write_counts(usage: Usage, told: str, said: str) -> JsonObject:
    """Write token counts as OpenAI does."""
    cache: JsonObject = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    return {
        f"{told}_tokens": usage.input_tokens,
        f"{told}_tokens_details": cache,
        f"{said}_tokens": usage.output_tokens,
        f"{said}_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
