"""Gemini as a record of functions, with its list of models and its token count."""

from collections.abc import Sequence

import msgspec

from toolspeak.ir.json import JsonObject
from toolspeak.wires.gemini import API, NAME
from toolspeak.wires.gemini.answer_reader import decode_turn, new_decoder
from toolspeak.wires.gemini.answer_writer import GeminiEncoder, encode_failure, encode_turn, stream_type
from toolspeak.wires.gemini.request_reader import decode_request
from toolspeak.wires.gemini.request_writer import encode_request
from toolspeak.wires.shared.failures import read_failure
from toolspeak.wires.shared.interface import Wire
from toolspeak.wires.shared.model_list import MOST_OUTPUT, ModelEntry


def encode_model(entry: ModelEntry) -> JsonObject:
    """Describe one model."""
    limit: JsonObject = {} if entry.context_tokens is None else {"inputTokenLimit": entry.context_tokens}
    return {
        "name": f"models/{entry.name}",
        "displayName": entry.name,
        **limit,
        "outputTokenLimit": MOST_OUTPUT,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def encode_models(entries: Sequence[ModelEntry]) -> JsonObject:
    """List models."""
    return {"models": [encode_model(entry) for entry in entries]}


class _Counted(msgspec.Struct):
    generateContentRequest: msgspec.Raw = msgspec.Raw()  # noqa: N815 # the vendor's name


def unwrap_count(body: bytes) -> bytes:
    """Return the request to count: some clients wrap it in `generateContentRequest`."""
    try:
        inner = msgspec.json.decode(body, type=_Counted).generateContentRequest
    except msgspec.MsgspecError:
        return body
    return bytes(inner) or body


def encode_count(tokens: int) -> JsonObject:
    """Write the answer to a token count."""
    return {"totalTokens": tokens}


WIRE = Wire(
    name=NAME,
    api=API,
    stream_type=stream_type,
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=GeminiEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
    encode_models=encode_models,
    encode_model=encode_model,
    encode_count=encode_count,
    unwrap_count=unwrap_count,
    models_path="models?pageSize=1000",
)
