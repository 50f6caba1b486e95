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
    # `GET /models` is also a path of OpenAI and Gemini; only clients of Anthropic send this header.
    recognizes=lambda head: bool(head.headers(b"anthropic-version")),
    # Claude Code reports a response without it.
    request_id_header=b"request-id",
)
