"""OpenAI Responses: `POST /v1/responses`, the wire of Codex and of the vendor's newer clients.

Read first: `incoming.py` with `read_items.py`, and `encoder.py` with `blocks.py` (we are the server); then
`outgoing.py` with `write_items.py`, and `decoder.py` with `growing.py` (we are the client).
"""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.openai_responses.decoder import decode_turn, new_decoder
from toolspeak.wires.openai_responses.encoder import ResponsesEncoder, encode_turn
from toolspeak.wires.openai_responses.errors import encode_failure
from toolspeak.wires.openai_responses.incoming import decode_request
from toolspeak.wires.openai_responses.outgoing import encode_request
from toolspeak.wires.openai_responses.words import NAME

WIRE = Wire(
    name=NAME,
    stream_type="text/event-stream",
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=ResponsesEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
)
