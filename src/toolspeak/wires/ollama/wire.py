"""Ollama as a record of functions, with its list of models."""

from collections.abc import Sequence
from typing import Final

from toolspeak.ir.json import Json, JsonObject
from toolspeak.wires.ollama import API, NAME
from toolspeak.wires.ollama.answer_reader import decode_turn, new_decoder
from toolspeak.wires.ollama.answer_writer import OllamaEncoder, encode_failure, encode_turn, stream_type
from toolspeak.wires.ollama.request_reader import decode_request
from toolspeak.wires.ollama.request_writer import encode_request
from toolspeak.wires.shared.failures import read_failure
from toolspeak.wires.shared.interface import Wire
from toolspeak.wires.shared.model_list import SINCE_TEXT, ModelEntry

_ARCHITECTURE: Final = "toolspeak"


def encode_models(entries: Sequence[ModelEntry]) -> JsonObject:
    """List models."""
    return {"models": [_listed(entry) for entry in entries]}


def encode_model(entry: ModelEntry) -> JsonObject:
    """Describe one model; its fields differ from those of the list."""
    info: JsonObject = {"general.architecture": _ARCHITECTURE}
    if entry.context_tokens is not None:
        info[f"{_ARCHITECTURE}.context_length"] = entry.context_tokens
    return {
        "details": _details(),
        "model_info": info,
        "capabilities": _capabilities(),
        "template": "",
        "parameters": "",
        "modified_at": SINCE_TEXT,
        "toolspeak": entry.tools,
    }


def _listed(entry: ModelEntry) -> JsonObject:
    return {
        "name": entry.name,
        "model": entry.name,
        "modified_at": SINCE_TEXT,
        "size": 0,
        "digest": "0" * 64,
        "details": _details(),
        "capabilities": _capabilities(),
    }


def _details() -> JsonObject:
    families: list[Json] = [_ARCHITECTURE]
    return {
        "parent_model": "",
        "format": "gguf",
        "family": _ARCHITECTURE,
        "families": families,
        "parameter_size": "",
        "quantization_level": "",
    }


def _capabilities() -> list[Json]:
    """Return the capabilities. `tools` is always among them: llm-ollama refuses to send tools without it."""
    return ["completion", "tools"]


WIRE = Wire(
    name=NAME,
    api=API,
    stream_type=stream_type,
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=OllamaEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
    encode_models=encode_models,
    encode_model=encode_model,
    models_path="api/tags",
)
