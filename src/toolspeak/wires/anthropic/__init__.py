"""Anthropic Messages: `POST /v1/messages`."""

from typing import Final

from toolspeak.wires.shared.interface import Endpoint, HttpApi, Operation

NAME: Final = "anthropic"

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
