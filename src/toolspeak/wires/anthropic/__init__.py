"""Anthropic Messages: `POST /v1/messages`.

Read first: `incoming.py` and `encoder.py` (we are the server), `outgoing.py` and `decoder.py` (we are the client).
"""

from toolspeak.wires._api import Endpoint, HttpApi, Operation

API = HttpApi(
    endpoints=(
        Endpoint("POST", "/messages", Operation.TURN),
        Endpoint("POST", "/messages/count_tokens", Operation.COUNT),
        Endpoint("GET", "/models", Operation.MODELS),
        Endpoint("GET", "/models/{model}", Operation.MODEL),
        Endpoint("GET", "/api/hello", Operation.HEALTH),
    ),
    recognizes=lambda head: bool(head.headers(b"anthropic-version")),
    request_id_header=b"request-id",
)
