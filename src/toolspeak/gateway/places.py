"""Words by which some servers let a client say where its request goes, and with whose key.

Here only the configuration says so, and no server behind us shall hear them either (SAFE-6).
"""

from dataclasses import replace
from typing import Final

from toolspeak.ir.request import Request

_SPELLED: Final = (
    "api_base",
    "api_key",
    "api_type",
    "api_version",
    "azure_endpoint",
    "base_url",
    "custom_llm_provider",
    "endpoint",
    "extra_headers",
    "upstream",
    "user_config",
)


def _humped(word: str) -> str:
    first, *others = word.split("_")
    return first + "".join(other.title() for other in others)


_WORDS: Final = frozenset((*_SPELLED, *map(_humped, _SPELLED)))
"""Also as Google's wire writes names."""


def without_places(request: Request) -> Request:
    """Return the request without them; no vendor's protocol has them."""
    if all(_WORDS.isdisjoint(said) for said in request.extra.values()):
        return request
    kept = {wire: {k: v for k, v in said.items() if k not in _WORDS} for wire, said in request.extra.items()}
    return replace(request, extra=kept)
