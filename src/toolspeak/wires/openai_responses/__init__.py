"""OpenAI Responses: `POST /v1/responses`, the wire of Codex and of OpenAI's newer clients."""

from typing import Final

from toolspeak.wires.shared.interface import Endpoint, HttpApi, Operation

NAME: Final = "openai_responses"

API = HttpApi(
    endpoints=(
        Endpoint("POST", "/responses", Operation.TURN),
        Endpoint("POST", "/responses/input_tokens", Operation.COUNT),
        Endpoint("GET", "/responses/{model}", Operation.RESPONSE),
        Endpoint("DELETE", "/responses/{model}", Operation.RESPONSE),
    ),
)
