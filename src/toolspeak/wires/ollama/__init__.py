"""Ollama: `POST /api/chat`, one JSON object per line."""

from typing import Final

from toolspeak.wires.shared.interface import Endpoint, HttpApi, Operation

NAME: Final = "ollama"

VERSION: Final = "0.20.0"
"""Clients check the version before they send tools; Codex needs 0.13.4 or newer."""

API = HttpApi(
    endpoints=(
        Endpoint("POST", "/api/chat", Operation.TURN),
        Endpoint("GET", "/api/tags", Operation.MODELS),
        Endpoint("POST", "/api/show", Operation.MODEL),
        Endpoint("POST", "/api/generate", Operation.FORWARD),
        Endpoint("POST", "/api/embed", Operation.FORWARD),
        Endpoint("POST", "/api/embeddings", Operation.FORWARD),
        Endpoint("GET", "/api/ps", Operation.FIXED, {"models": []}),
        Endpoint("GET", "/api/version", Operation.FIXED, {"version": VERSION}),
        Endpoint("GET", "/", Operation.HOME),
    ),
    prefix="/api/",
)
