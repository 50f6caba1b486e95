"""Lists of models: ours for clients, an upstream's for us. Here is OpenAI's format, which most servers imitate.

OpenAI, Anthropic  {"data": [{"id": "m"}]}
Together           [{"id": "m", "type": "chat"}]
Gemini             {"models": [{"name": "models/m", "supportedGenerationMethods": ["generateContent"]}]}
Ollama             {"models": [{"name": "m:latest"}]}

Models for embeddings, images or audio are left out, if the upstream reports the type.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject

SINCE: Final = 1735689600
SINCE_TEXT: Final = "2025-01-01T00:00:00Z"
"""A constant: protocols require a date, and upstreams do not report one."""
MOST_OUTPUT: Final = 32_768
"""Tokens of one answer; upstreams do not report this limit either."""
_TYPES_WITHOUT_TEXT: Final = frozenset(
    ("embedding", "embeddings", "image", "audio", "transcribe", "moderation", "rerank", "video")
)
_GOOGLE_PREFIX: Final = "models/"
_GENERATES: Final = "generateContent"


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model under the name that a client may use."""

    name: str
    owner: str
    """The upstream."""
    context_tokens: int | None
    """None if it is unknown; then no list states it, because clients compact their history by it."""
    tools: JsonObject
    """How its tools are handled (OBS-4): the field `toolspeak`, in protocols that allow extra fields."""


def encode_model(entry: ModelEntry) -> JsonObject:
    """Describe one model as OpenAI does."""
    return {"id": entry.name, "object": "model", "created": SINCE, "owned_by": entry.owner, "toolspeak": entry.tools}


def encode_models(entries: Sequence[ModelEntry]) -> JsonObject:
    """List models as OpenAI does."""
    return {"object": "list", "data": [encode_model(entry) for entry in entries]}


def encode_count(tokens: int) -> JsonObject:
    """Write the answer to a token count as Anthropic does."""
    return {"input_tokens": tokens}


class _Listed(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    type: object = None
    supportedGenerationMethods: list[str] | None = None  # noqa: N815 # the vendor's name


class _List(msgspec.Struct):
    data: list[_Listed] | None = None
    models: list[_Listed] | None = None


_decode: Callable[[bytes], _List | list[_Listed]] = msgspec.json.Decoder(_List | list[_Listed]).decode


def decode_models(body: bytes) -> list[str]:
    """Return the names in an upstream's list, in any of these formats. Raises `BadField`."""
    try:
        found = _decode(body)
    except msgspec.MsgspecError as error:
        raise BadField("", str(error)) from None
    entries = found if isinstance(found, list) else found.data or found.models or ()
    names = (entry.id or (entry.name or "").removeprefix(_GOOGLE_PREFIX) for entry in entries if _speaks(entry))
    return [name for name in names if name]


def _speaks(entry: _Listed) -> bool:
    methods = entry.supportedGenerationMethods
    return entry.type not in _TYPES_WITHOUT_TEXT and (methods is None or _GENERATES in methods)
