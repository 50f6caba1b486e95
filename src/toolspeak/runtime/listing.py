"""The models that an upstream says it has, in whatever form it says so.

OpenAI, Anthropic  {"data": [{"id": "m"}]}
Gemini             {"models": [{"name": "models/m"}]}
Ollama             {"models": [{"name": "m:latest"}]}
"""

import msgspec

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.transport import Broken
from toolspeak.runtime.upstream import HttpUpstream

_PATHS = {"ollama": "api/tags", "gemini": "models?pageSize=1000"}
_PATH = "models"
_GEMINI = "models/"


class _Entry(msgspec.Struct):
    id: str = ""
    name: str = ""


class _List(msgspec.Struct):
    data: list[_Entry] = []
    models: list[_Entry] = []


async def list_models(upstream: HttpUpstream) -> list[str]:
    """Ask an upstream; raises `Broken` if it does not tell."""
    body = await upstream.get(_PATHS.get(upstream.wire.name, _PATH))
    try:
        found = msgspec.json.decode(body, type=_List)
    except msgspec.MsgspecError as error:
        raise Broken(
            Failure(FailureKind.OTHER, f"the upstream's list of models cannot be read: {error}", 502)
        ) from None
    names = (entry.id or entry.name.removeprefix(_GEMINI) for entry in found.data or found.models)
    return [name for name in names if name]
