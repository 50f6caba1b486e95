"""OpenAI Chat Completions: `POST /v1/chat/completions`, the wire that most servers imitate."""

from typing import Final

from toolspeak.wires.shared.interface import Endpoint, HttpApi, Operation

NAME: Final = "openai_chat"

API = HttpApi(
    endpoints=(
        Endpoint("POST", "/chat/completions", Operation.TURN),
        Endpoint("GET", "/models", Operation.MODELS),
        Endpoint("GET", "/models/{model}", Operation.MODEL),
    ),
)
