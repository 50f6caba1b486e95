"""The path of a request, which says the model and the method.

/v1beta/models/google%2Fgemma:streamGenerateContent?alt=sse   ->  google/gemma, streamed as server-sent events
/models/m:streamGenerateContent                               ->  m, streamed as one array
/v1/tunedModels/mine:generateContent                          ->  tunedModels/mine, whole
"""

import re
from dataclasses import dataclass
from typing import Final

MODELS: Final = "models/"
TUNED: Final = "tunedModels/"
STREAM: Final = "streamGenerateContent"
WHOLE: Final = "generateContent"
SSE: Final = "alt=sse"

_PLACE = re.compile(r"(?:^|/)(models|tunedModels)/(.*)", re.DOTALL)
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNSAFE = re.compile(r"[^A-Za-z0-9._~-]")


@dataclass(frozen=True, slots=True)
class Address:
    """What a path says. `sse` tells how a stream is framed."""

    model: str = ""
    stream: bool = False
    sse: bool = True


def read_path(path: str) -> Address:
    """Read the path of a request, with its query."""
    route, _, query = path.partition("?")
    place = _PLACE.search(route)
    if place is None:
        return Address()
    rest = place[2] if ":" in place[2] else _unquoted(place[2])
    model, colon, method = rest.rpartition(":")
    if not colon:
        model, method = method, ""
    prefix = TUNED if place[1] == "tunedModels" else ""
    sse = any(option.removeprefix("$") == SSE for option in query.split("&"))
    return Address(prefix + _unquoted(model), method == STREAM, sse)


def write_path(model: str, *, stream: bool) -> str:
    """Write the path of a request, behind the base URL."""
    prefix = TUNED if model.startswith(TUNED) else MODELS
    method = f"{STREAM}?{SSE}" if stream else WHOLE
    return f"{prefix}{_quoted(model.removeprefix(prefix))}:{method}"


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text)


def _quoted(text: str) -> str:
    return _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), text)
