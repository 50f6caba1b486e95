"""Anthropic Messages as a record of functions."""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.anthropic import API
from toolspeak.wires.anthropic.decoder import decode_turn, new_decoder
from toolspeak.wires.anthropic.encoder import MessagesEncoder, encode_turn
from toolspeak.wires.anthropic.errors import encode_failure
from toolspeak.wires.anthropic.incoming import decode_request
from toolspeak.wires.anthropic.models import encode_model, encode_models
from toolspeak.wires.anthropic.outgoing import encode_request
from toolspeak.wires.anthropic.words import NAME

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
    models_path="models?limit=1000",
)
