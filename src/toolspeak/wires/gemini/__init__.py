"""Gemini: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`."""

from typing import Final

from toolspeak.wires.shared.interface import Endpoint, HttpApi, Operation, RequestHead

NAME: Final = "gemini"


def _recognizes(head: RequestHead) -> bool:
    # google-genai 3 uses `/v1/models`, which OpenAI and Anthropic have too: only where the key is tells them apart.
    return bool(head.headers(b"x-goog-api-key")) or "/v1beta/" in head.path or "key=" in head.query


def _endpoints(folder: str) -> tuple[Endpoint, ...]:
    return (
        Endpoint("POST", f"/{folder}/{{model}}:generateContent", Operation.TURN),
        Endpoint("POST", f"/{folder}/{{model}}:streamGenerateContent", Operation.TURN),
        Endpoint("POST", f"/{folder}/{{model}}:countTokens", Operation.COUNT),
        Endpoint("GET", f"/{folder}", Operation.MODELS),
        Endpoint("GET", f"/{folder}/{{model}}", Operation.MODEL),
    )


API = HttpApi(endpoints=(*_endpoints("models"), *_endpoints("tunedModels")), recognizes=_recognizes)
