"""Anthropic Messages: `POST /v1/messages`.

Read first: `incoming.py` and `encoder.py` (we are the server), `outgoing.py` and `decoder.py` (we are the client).
"""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.anthropic.decoder import decode_turn, new_decoder
from toolspeak.wires.anthropic.encoder import MessagesEncoder, encode_turn
from toolspeak.wires.anthropic.errors import encode_failure
from toolspeak.wires.anthropic.incoming import decode_request
from toolspeak.wires.anthropic.outgoing import encode_request
from toolspeak.wires.anthropic.words import NAME

WIRE = Wire(
    name=NAME,
    stream_type="text/event-stream",
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=MessagesEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
)
