"""Models as each protocol lists them. Each one tells what is known about its tools (OBS-4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.gateway.routes import ANTHROPIC, CHAT, GEMINI, OLLAMA
from toolspeak.ir.json import Json, JsonObject
from toolspeak.runtime.directory import Route

_SINCE, _SINCE_TEXT = 1735689600, "2025-01-01T00:00:00Z"
"""Upstreams do not tell when a model was made, and protocols demand a time."""
_CONTEXT, _OUTPUT = 131_072, 32_768
_ARCHITECTURE = "toolspeak"


@dataclass(frozen=True, slots=True)
class Entry:
    """A model under the name that a client may use."""

    name: str
    route: Route

    @property
    def context(self) -> int:
        """Return the tokens that it takes, as far as they are known."""
        return self.route.known.context_tokens or _CONTEXT

    @property
    def tools(self) -> JsonObject:
        """Say how its tools work here."""
        mode = self.route.settings.mode
        return {"mode": mode.value if mode else "auto", "upstream_tools": self.route.known.tools.value}


def _openai(entry: Entry) -> JsonObject:
    owner = entry.route.place
    return {"id": entry.name, "object": "model", "created": _SINCE, "owned_by": owner, "toolspeak": entry.tools}


def _anthropic(entry: Entry) -> JsonObject:
    return {
        "type": "model",
        "id": entry.name,
        "display_name": entry.name,
        "created_at": _SINCE_TEXT,
        "max_input_tokens": entry.context,
        "max_tokens": _OUTPUT,
        "toolspeak": entry.tools,
    }


def _gemini(entry: Entry) -> JsonObject:
    return {
        "name": f"models/{entry.name}",
        "displayName": entry.name,
        "inputTokenLimit": entry.context,
        "outputTokenLimit": _OUTPUT,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }


def _ollama(entry: Entry) -> JsonObject:
    return {
        "name": entry.name,
        "model": entry.name,
        "modified_at": _SINCE_TEXT,
        "size": 0,
        "digest": "0" * 64,
        "details": _details(),
        "capabilities": _capabilities(),
    }


def _shown(entry: Entry) -> JsonObject:
    info: JsonObject = {"general.architecture": _ARCHITECTURE, f"{_ARCHITECTURE}.context_length": entry.context}
    return {
        "details": _details(),
        "model_info": info,
        "capabilities": _capabilities(),
        "template": "",
        "parameters": "",
        "modified_at": _SINCE_TEXT,
        "toolspeak": entry.tools,
    }


def _details() -> JsonObject:
    families: list[Json] = [_ARCHITECTURE]
    return {
        "parent_model": "",
        "format": "gguf",
        "family": _ARCHITECTURE,
        "families": families,
        "parameter_size": "",
        "quantization_level": "",
    }


def _capabilities() -> list[Json]:
    """Say `tools`: that every model has them is what we are for."""
    return ["completion", "tools"]


def _openai_list(entries: Sequence[Entry]) -> JsonObject:
    return {"object": "list", "data": [_openai(entry) for entry in entries]}


def _anthropic_list(entries: Sequence[Entry]) -> JsonObject:
    first, last = (entries[0].name, entries[-1].name) if entries else (None, None)
    return {"data": [_anthropic(entry) for entry in entries], "has_more": False, "first_id": first, "last_id": last}


def _gemini_list(entries: Sequence[Entry]) -> JsonObject:
    return {"models": [_gemini(entry) for entry in entries]}


def _ollama_list(entries: Sequence[Entry]) -> JsonObject:
    return {"models": [_ollama(entry) for entry in entries]}


LISTS: Final[dict[str, Callable[[Sequence[Entry]], JsonObject]]] = {
    CHAT: _openai_list,
    ANTHROPIC: _anthropic_list,
    GEMINI: _gemini_list,
    OLLAMA: _ollama_list,
}
ONE: Final[dict[str, Callable[[Entry], JsonObject]]] = {
    CHAT: _openai,
    ANTHROPIC: _anthropic,
    GEMINI: _gemini,
    OLLAMA: _shown,
}
