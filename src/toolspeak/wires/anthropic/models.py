"""Models as this wire lists them."""

from collections.abc import Sequence

from toolspeak.ir.json import JsonObject
from toolspeak.wires._models import MOST_OUTPUT, SINCE_TEXT, ModelEntry


def encode_model(entry: ModelEntry) -> JsonObject:
    """Describe one model."""
    return {
        "type": "model",
        "id": entry.name,
        "display_name": entry.name,
        "created_at": SINCE_TEXT,
        "max_input_tokens": entry.context_tokens,
        "max_tokens": MOST_OUTPUT,
        "toolspeak": entry.tools,
    }


def encode_models(entries: Sequence[ModelEntry]) -> JsonObject:
    """List models; all of them fit one page."""
    first, last = (entries[0].name, entries[-1].name) if entries else (None, None)
    return {"data": [encode_model(entry) for entry in entries], "has_more": False, "first_id": first, "last_id": last}
