"""Reads clients' requests: bodies within the limits, settings in headers, and without fields that choose the upstream.

A large body is decoded in a thread: one legal body of 19 MB blocked every other client for 23 seconds when it was
decoded on the event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

from toolspeak import dialects
from toolspeak.engine.settings import NOTHING_SAID, Mode, Release, Settings, Strategy
from toolspeak.errors import BadField
from toolspeak.facts.model import Constrain
from toolspeak.gateway.exchange import Exchange, header
from toolspeak.ir.request import Request
from toolspeak.runtime.offload import Offload, Run
from toolspeak.wires import Wire
from toolspeak.wires.limits import RequestLimits, check_body, decode_within

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Decodes the bodies of all wires and of the gateway's own endpoints, within the limits of `[limits]`."""

    limits: RequestLimits
    offload: Offload

    async def read(self, wire: Wire, body: bytes, path: str) -> tuple[Request, Run]:
        """Return the request, and the runner for further work on it. Raises `BadField`."""
        prepare = self.offload.for_size(len(body))
        return await prepare(lambda: decode_within(self.limits, wire, body, path)), prepare

    async def read_json(self, body: bytes, decode: Callable[[bytes], T]) -> T:
        """Return the result of `decode`. Raises `TooLarge` before decoding, and the exceptions of `decode`."""

        def decoded() -> T:
            check_body(body, self.limits)
            return decode(body)

        return await self.offload.for_size(len(body))(decoded)


# ---------------------------------------------------------------- settings in headers

_MODE, _STRATEGY = b"x-toolspeak-mode", b"x-toolspeak-strategy"
_RELEASE, _DIALECT = b"x-toolspeak-release", b"x-toolspeak-dialect"
_CONSTRAINT = b"x-toolspeak-constraint"
_NAMES: Final = (_MODE, _STRATEGY, _RELEASE, _DIALECT, _CONSTRAINT)


def settings_in_headers(exchange: Exchange) -> Settings:
    """Return the settings of this one request (MODE-1); most have none. Raises `BadField`."""
    sent = {name: value for name in _NAMES if exchange.headers(name) and (value := header(exchange, name))}
    if not sent:
        return NOTHING_SAID
    return Settings(
        mode=_choice(Mode, _MODE, sent),
        strategy=_choice(Strategy, _STRATEGY, sent),
        release=_choice(Release, _RELEASE, sent),
        dialect=_dialect(sent),
        constraint=_choice(Constrain, _CONSTRAINT, sent),
    )


def _choice(kind: type[E], name: bytes, sent: dict[bytes, str]) -> E | None:
    value = sent.get(name)
    if value is None:
        return None
    if value not in list(kind):
        raise BadField(name.decode(), f"{value[:40]!r} is not one of {', '.join(kind)}")
    return kind(value)


def _dialect(sent: dict[bytes, str]) -> str | None:
    value = sent.get(_DIALECT)
    if value is not None:
        dialects.load(value)  # raises `UnknownName` here, so that a typo is a 400 and not a fault of the turn
    return value


# ---------------------------------------------------------------- routing fields

_ROUTING_FIELDS: Final = (
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
"""Body fields by which some servers let a client choose the upstream and its key."""


def _camel_case(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(other.title() for other in others)


_DROPPED: Final = frozenset((*_ROUTING_FIELDS, *map(_camel_case, _ROUTING_FIELDS)))
"""In snake case, and in camel case as on Google's wire."""


def drop_routing_fields(request: Request) -> Request:
    """Return the request without fields that say where it goes, or with which key (SAFE-6).

    Only the configuration decides that. The fields are dropped instead of ignored, because the upstream may itself be a
    gateway that obeys them: a client could then send the operator's key to a server of its own. No vendor's protocol
    has a field of these names.
    """
    if all(_DROPPED.isdisjoint(extra) for extra in request.extra.values()):
        return request
    kept = {wire: {k: v for k, v in extra.items() if k not in _DROPPED} for wire, extra in request.extra.items()}
    return replace(request, extra=kept)
