"""OpenAI Responses as a record of functions."""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.openai_responses import API
from toolspeak.wires.openai_responses.decoder import decode_turn, new_decoder
from toolspeak.wires.openai_responses.encoder import ResponsesEncoder, encode_turn
from toolspeak.wires.openai_responses.errors import encode_failure
from toolspeak.wires.openai_responses.incoming import decode_request
from toolspeak.wires.openai_responses.outgoing import encode_request
from toolspeak.wires.openai_responses.response import encode_count
from toolspeak.wires.openai_responses.words import NAME

WIRE = Wire(
    name=NAME,
    api=API,
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=ResponsesEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
    encode_count=encode_count,
)
