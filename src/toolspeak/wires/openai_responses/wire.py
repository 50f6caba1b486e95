"""OpenAI Responses as a record of functions."""

from toolspeak.ir.json import JsonObject
from toolspeak.wires.openai_chat.answer_writer import encode_failure
from toolspeak.wires.openai_responses import API, NAME
from toolspeak.wires.openai_responses.answer_reader import decode_turn, new_decoder
from toolspeak.wires.openai_responses.answer_writer import ResponsesEncoder, encode_turn
from toolspeak.wires.openai_responses.request_reader import decode_request
from toolspeak.wires.openai_responses.request_writer import encode_request
from toolspeak.wires.openai_responses.storage import (
    conversation_after,
    expand_request,
    final_response,
    wants_storage,
)
from toolspeak.wires.shared.failures import read_failure
from toolspeak.wires.shared.interface import ResponseStorage, Wire


def encode_count(tokens: int) -> JsonObject:
    """Write the answer to a token count."""
    return {"object": "response.input_tokens", "input_tokens": tokens}


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
    skips_comments=True,
    storage=ResponseStorage(expand_request, wants_storage, conversation_after, final_response),
)
