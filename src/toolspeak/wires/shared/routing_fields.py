"""Body fields by which some servers let a client choose the upstream and its key: the gateway drops or refuses them."""

from dataclasses import replace
from typing import Final

from toolspeak.ir.request import Request

_SNAKE_CASE: Final = (
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


def _camel_case(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(other.title() for other in others)


ROUTING_FIELDS: Final = frozenset((*_SNAKE_CASE, *map(_camel_case, _SNAKE_CASE)))
"""In snake case, and in camel case as on Google's wire."""


def drop_routing_fields(request: Request) -> Request:
    """Return the request without fields that say where it goes, or with which key (SAFE-6).

    Only the configuration decides that. The fields are dropped instead of ignored, because the upstream may itself be a
    gateway that obeys them: a client could then send the operator's key to a server of its own. No vendor's protocol
    has a field of these names.
    """
    if all(ROUTING_FIELDS.isdisjoint(extra) for extra in request.extra.values()):
        return request
    kept = {wire: {k: v for k, v in extra.items() if k not in ROUTING_FIELDS} for wire, extra in request.extra.items()}
    return replace(request, extra=kept)
