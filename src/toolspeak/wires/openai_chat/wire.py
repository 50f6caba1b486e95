"""OpenAI Chat Completions as a record of functions."""

from toolspeak.wires.openai_chat import API, NAME
from toolspeak.wires.openai_chat.answer_reader import decode_turn, new_decoder
from toolspeak.wires.openai_chat.answer_writer import ChatEncoder, encode_failure, encode_turn
from toolspeak.wires.openai_chat.request_reader import decode_request
from toolspeak.wires.openai_chat.request_writer import encode_request
from toolspeak.wires.shared.failures import read_failure
from toolspeak.wires.shared.interface import Wire

WIRE = Wire(
    name=NAME,
    api=API,
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=ChatEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
    extensible=True,
    skips_comments=True,
)
