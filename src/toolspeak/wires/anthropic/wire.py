"""Anthropic Messages as a record of functions, with its list of models."""

from collections.abc import Sequence

from toolspeak.ir.json import JsonObject
from toolspeak.wires.anthropic import API, NAME
from toolspeak.wires.anthropic.answer_reader import decode_turn, new_decoder
from toolspeak.wires.anthropic.answer_writer import MessagesEncoder, encode_failure, encode_turn
from toolspeak.wires.anthropic.request_reader import decode_request
from toolspeak.wires.anthropic.request_writer import encode_request
from toolspeak.wires.shared.failures import read_failure
from toolspeak.wires.shared.interface import Wire
from toolspeak.wires.shared.model_list import MOST_OUTPUT, SINCE_TEXT, ModelEntry


def encode_model(entry: ModelEntry) -> JsonObject:
    """Describe one model."""
    limit: JsonObject = {} if entry.context_tokens is None else {"max_input_tokens": entry.context_tokens}
    return {
        "type": "model",
        "id": entry.name,
        "display_name": entry.name,
        "created_at": SINCE_TEXT,
        **limit,
        "max_tokens": MOST_OUTPUT,
        "toolspeak": entry.tools,
    }


def encode_models(entries: Sequence[ModelEntry]) -> JsonObject:
    """List models; all of them fit one page."""
    first, last = (entries[0].name, entries[-1].name) if entries else (None, None)
    return {"data": [encode_model(entry) for entry in entries], "has_more": False, "first_id": first, "last_id": last}


WIRE = Wire(
    name=NAME,
    api=API,
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=MessagesEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
    encode_models=encode_models,
    encode_model=encode_model,
    skips_comments=True,
    models_path="models?limit=1000",
)
