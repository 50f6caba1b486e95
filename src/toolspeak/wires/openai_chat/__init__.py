"""OpenAI Chat Completions: `POST /v1/chat/completions`, the wire that most servers imitate."""

from typing import Final

from toolspeak.wires.shared.interface import Endpoint, HttpApi, Operation

NAME: Final = "openai_chat"

FORWARDED: Final = (
    "/completions",
    "/embeddings",
    "/rerank",
    "/moderations",
    "/images/generations",
    "/images/edits",
    "/images/variations",
    "/audio/speech",
    "/audio/transcriptions",
    "/audio/translations",
)
"""Endpoints besides chat that servers with this wire have."""

API = HttpApi(
    endpoints=(
        Endpoint("POST", "/chat/completions", Operation.TURN),
        Endpoint("GET", "/models", Operation.MODELS),
        Endpoint("GET", "/models/{model}", Operation.MODEL),
        *(Endpoint("POST", path, Operation.FORWARD) for path in FORWARDED),
    ),
)
