"""What a client asks for beside its protocol, by headers: the mode of this one request (MODE-1)."""

from enum import StrEnum
from typing import Final, TypeVar

from toolspeak import dialects
from toolspeak.engine.plan import NOTHING_SAID, Mode, Release, Settings, Strategy
from toolspeak.errors import BadField
from toolspeak.facts.model import Constrain
from toolspeak.gateway.exchange import Exchange, header

_MODE, _STRATEGY = b"x-toolspeak-mode", b"x-toolspeak-strategy"
_RELEASE, _DIALECT = b"x-toolspeak-release", b"x-toolspeak-dialect"
_CONSTRAINT = b"x-toolspeak-constraint"
_NAMES: Final = (_MODE, _STRATEGY, _RELEASE, _DIALECT, _CONSTRAINT)
E = TypeVar("E", bound=StrEnum)


def asked_settings(exchange: Exchange) -> Settings:
    """Read the headers; most requests have none."""
    said = {name: value for name in _NAMES if exchange.headers(name) and (value := header(exchange, name))}
    if not said:
        return NOTHING_SAID
    return Settings(
        mode=_word(Mode, _MODE, said),
        strategy=_word(Strategy, _STRATEGY, said),
        release=_word(Release, _RELEASE, said),
        dialect=_dialect(said),
        constraint=_word(Constrain, _CONSTRAINT, said),
    )


def _word(kind: type[E], name: bytes, said: dict[bytes, str]) -> E | None:
    value = said.get(name)
    if value is None:
        return None
    if value not in list(kind):
        raise BadField(name.decode(), f"{value[:40]!r} is not one of {', '.join(kind)}")
    return kind(value)


def _dialect(said: dict[bytes, str]) -> str | None:
    value = said.get(_DIALECT)
    if value is not None:
        dialects.load(value)
    return value
