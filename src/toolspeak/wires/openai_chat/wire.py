"""OpenAI Chat Completions as a record of functions."""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.openai_chat import API
from toolspeak.wires.openai_chat.decoder import decode_turn, new_decoder
from toolspeak.wires.openai_chat.encoder import ChatEncoder, encode_turn
from toolspeak.wires.openai_chat.errors import encode_failure
from toolspeak.wires.openai_chat.incoming import decode_request
from toolspeak.wires.openai_chat.outgoing import encode_request
from toolspeak.wires.openai_chat.words import NAME

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
)
