"""Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`.

Read first: `incoming.py`, `history.py` and `encoder.py` (we are the server), `outgoing.py`, `contents.py` and
`decoder.py` (we are the client).
"""

from toolspeak.wires._failures import read_failure
from toolspeak.wires._wire import Wire
from toolspeak.wires.gemini.decoder import decode_turn, new_decoder
from toolspeak.wires.gemini.encoder import GeminiEncoder, encode_turn
from toolspeak.wires.gemini.errors import encode_failure
from toolspeak.wires.gemini.incoming import decode_request
from toolspeak.wires.gemini.outgoing import encode_request
from toolspeak.wires.gemini.words import NAME

WIRE = Wire(
    name=NAME,
    stream_type="text/event-stream",
    decode_request=decode_request,
    encode_request=encode_request,
    new_decoder=new_decoder,
    new_encoder=GeminiEncoder,
    decode_turn=decode_turn,
    encode_turn=encode_turn,
    encode_failure=encode_failure,
    decode_failure=read_failure,
)
