"""OpenAI Chat Completions: `POST /v1/chat/completions`, the wire that most servers imitate.

Read first: `incoming.py` and `encoder.py` (we are the server), `outgoing.py` and `decoder.py` (we are the client).
"""

from toolspeak.wires._api import Endpoint, HttpApi, Operation

API = HttpApi(
    endpoints=(
        Endpoint("POST", "/chat/completions", Operation.TURN),
        Endpoint("GET", "/models", Operation.MODELS),
        Endpoint("GET", "/models/{model}", Operation.MODEL),
    ),
)
