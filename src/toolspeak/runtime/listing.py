"""The models that an upstream says it has, in whatever form it says so.

OpenAI, Anthropic  {"data": [{"id": "m"}]}
Together           [{"id": "m", "type": "chat"}]
Gemini             {"models": [{"name": "models/m", "supportedGenerationMethods": ["generateContent"]}]}
Ollama             {"models": [{"name": "m:latest"}]}

Models that only embed, paint or listen are left out, where the upstream tells.
"""

from collections.abc import Callable

import msgspec

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.transport import Broken
from toolspeak.runtime.upstream import HttpUpstream

_PATHS = {"ollama": "api/tags", "gemini": "models?pageSize=1000", "anthropic": "models?limit=1000"}
_PATH = "models"
_GEMINI = "models/"
_GENERATES = "generateContent"
_SPEAKS_NOT = frozenset(("embedding", "embeddings", "image", "audio", "transcribe", "moderation", "rerank", "video"))


class _Entry(msgspec.Struct):
    id: str | None = None
    name: str | None = None
    type: object = None
    supportedGenerationMethods: list[str] | None = None  # noqa: N815 # the vendor's name


class _List(msgspec.Struct):
    data: list[_Entry] | None = None
    models: list[_Entry] | None = None


_decode: Callable[[bytes], _List | list[_Entry]] = msgspec.json.Decoder(_List | list[_Entry]).decode


async def list_models(upstream: HttpUpstream) -> list[str]:
    """Ask an upstream; raises `Broken` if it does not tell."""
    body = await upstream.get(_PATHS.get(upstream.wire.name, _PATH))
    try:
        found = _decode(body)
    except msgspec.MsgspecError as error:
        raise Broken(
            Failure(FailureKind.OTHER, f"the upstream's list of models cannot be read: {error}", 502)
        ) from None
    entries = found if isinstance(found, list) else found.data or found.models or ()
    names = (entry.id or (entry.name or "").removeprefix(_GEMINI) for entry in entries if _speaks(entry))
    return [name for name in names if name]


def _speaks(entry: _Entry) -> bool:
    methods = entry.supportedGenerationMethods
    return entry.type not in _SPEAKS_NOT and (methods is None or _GENERATES in methods)
