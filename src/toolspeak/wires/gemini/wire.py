"""Gemini as a record of functions."""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.gemini import API
from toolspeak.wires.gemini.decoder import decode_turn, new_decoder
from toolspeak.wires.gemini.encoder import GeminiEncoder, encode_turn, stream_type
from toolspeak.wires.gemini.errors import encode_failure
from toolspeak.wires.gemini.incoming import decode_request
from toolspeak.wires.gemini.models import encode_count, encode_model, encode_models, unwrap_count
from toolspeak.wires.gemini.outgoing import encode_request
from toolspeak.wires.gemini.words import NAME

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
