"""Models as this wire lists them, and how it counts tokens."""

from collections.abc import Sequence

import msgspec

from toolspeak.ir.json import JsonObject
from toolspeak.wires._models import MOST_OUTPUT, ModelEntry


def encode_model(entry: ModelEntry) -> JsonObject:
    """Describe one model."""
    return {
        "name": f"models/{entry.name}",
        "displayName": entry.name,
        "inputTokenLimit": entry.context_tokens,
        "outputTokenLimit": MOST_OUTPUT,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def encode_models(entries: Sequence[ModelEntry]) -> JsonObject:
    """List models."""
    return {"models": [encode_model(entry) for entry in entries]}


class _Counted(msgspec.Struct):
    generateContentRequest: msgspec.Raw = msgspec.Raw()  # noqa: N815 # the vendor's name


def unwrap_count(body: bytes) -> bytes:
    """Return the request that is counted: some clients wrap it."""
    try:
        inner = msgspec.json.decode(body, type=_Counted).generateContentRequest
    except msgspec.MsgspecError:
        return body
    return bytes(inner) or body


def encode_count(tokens: int) -> JsonObject:
    """Tell the tokens of a request."""
    return {"totalTokens": tokens}
