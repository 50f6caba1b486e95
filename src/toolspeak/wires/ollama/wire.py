"""Ollama as a record of functions."""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.ollama import API
from toolspeak.wires.ollama.decoder import decode_turn, new_decoder
from toolspeak.wires.ollama.encoder import OllamaEncoder, encode_turn, stream_type
from toolspeak.wires.ollama.errors import encode_failure
from toolspeak.wires.ollama.incoming import decode_request
from toolspeak.wires.ollama.models import encode_model, encode_models
from toolspeak.wires.ollama.outgoing import encode_request
from toolspeak.wires.ollama.words import NAME

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
