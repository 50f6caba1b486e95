"""Keys that are made while gateways run: what is stored of each, and how it is made, rotated and revoked (SAFE-10).

A key is 256 random bits, shown once. Only its SHA-256 is stored: a random key cannot be guessed from it, so no slow
hash is needed, and a gateway looks it up in microseconds.
"""

import re
import secrets  # noqa: TID251 # other keys come from the configuration; these are made here
from dataclasses import dataclass, fields
from typing import Final

import msgspec

from toolspeak.config.declared import value_problem
from toolspeak.config.forms import FORMS
from toolspeak.config.options import settings_by_path
from toolspeak.config.shape import NO_RATE_LIMITS, Key, RateLimits, digest_of
from toolspeak.errors import BadField, ToolspeakError, UnknownName
from toolspeak.ir.json import JsonObject

PREFIX: Final = "sk-toolspeak-"
"""Begins each key, so that scanners for leaked secrets can find it."""
_RANDOM: Final = 32
"""Bytes of a key."""
_ID: Final = re.compile(r"k_[0-9a-f]{12}")
FORGET: Final = 30 * 86_400
"""Seconds for which an expired or revoked key stays in the list."""
DAY: Final = 86_400
_LONGEST: Final = 100 * 365 * DAY


class UnknownKey(UnknownName):
    """No stored key has this id."""

    status = 404


class KeysUnavailable(ToolspeakError):
    """The store of keys cannot be read or written."""

    status = 503
    retryable = True


class KeyRecord(msgspec.Struct, frozen=True):
    """What is stored of a key. Times are seconds since 1970."""

    id: str
    tenant: str
    sha256: str
    made: int
    models: tuple[str, ...] = ()
    requests_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    output_tokens_per_minute: int | None = None
    concurrent: int | None = None
    expires: int | None = None
    revoked: int | None = None
    replaces: str = ""
    """The id of the key that was rotated."""

    def key(self) -> Key:
        """Return it as gateways use it; raises `ValueError` if it is damaged."""
        digest = bytes.fromhex(self.sha256)
        if not _ID.fullmatch(self.id) or len(digest) != _RANDOM or not self.tenant:
            raise ValueError("no key of toolspeak")
        limits = RateLimits(**{each.name: getattr(self, each.name) for each in fields(RateLimits)})
        return Key(self.tenant, digest, self.models, limits, self.id)

    def state(self, now: int) -> str:
        """Return `valid`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "valid"

    def is_forgotten(self, now: int) -> bool:
        """Return whether it ended so long ago that it need not be stored."""
        ended = self.revoked if self.revoked is not None else self.expires
        return ended is not None and ended + FORGET < now

    def public(self, now: int) -> JsonObject:
        """Return what may be shown: everything but the digest."""
        shown = msgspec.to_builtins(self)
        del shown["sha256"]
        return {**shown, "models": list(self.models), "state": self.state(now)}


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """What a new key shall be."""

    tenant: str
    models: tuple[str, ...] = ()
    limits: RateLimits = NO_RATE_LIMITS
    lasts: int | None = None
    """Seconds until it expires; None for never."""

    def check(self) -> None:
        """Raise `BadField` for a value that the configuration file would refuse."""
        check = FORMS["tenant"].check
        if check is not None and (problem := check(self.tenant)):
            raise BadField("tenant", problem)
        for each in fields(RateLimits):
            value = getattr(self.limits, each.name)
            if value is not None and (problem := value_problem(settings_by_path()[f"keys[].{each.name}"], value)):
                raise BadField(each.name, problem)
        if not all(self.models):
            raise BadField("models", "has an empty name")
        check_duration("expires", self.lasts)


def check_duration(name: str, seconds: int | None) -> None:
    """Raise `BadField` for a time that is not from 0 to a hundred years."""
    if seconds is not None and not 0 <= seconds <= _LONGEST:
        raise BadField(name, f"{seconds} seconds is not from 0 to 100 years")


def make_key(order: KeyOrder, now: int, replaces: str = "") -> tuple[KeyRecord, str]:
    """Return the record of a new key, and the key itself, which is stored nowhere."""
    secret = PREFIX + secrets.token_urlsafe(_RANDOM)
    limits = {each.name: getattr(order.limits, each.name) for each in fields(RateLimits)}
    record = KeyRecord(
        f"k_{secrets.token_hex(6)}",
        order.tenant,
        digest_of(secret).hex(),
        now,
        order.models,
        **limits,
        expires=None if order.lasts is None else now + order.lasts,
        replaces=replaces,
    )
    return record, secret


def rotate_key(record: KeyRecord, now: int, overlap: int) -> tuple[KeyRecord, KeyRecord, str]:
    """Return the old record, which expires after `overlap` seconds, a new one with the same rights, and its key.

    A key that would expire is renewed for as long as it was made for.
    """
    lasts = None if record.expires is None else record.expires - record.made
    order = KeyOrder(record.tenant, record.models, record.key().limits, lasts)
    new, secret = make_key(order, now, record.id)
    ends = now + overlap if record.expires is None else min(now + overlap, record.expires)
    return msgspec.structs.replace(record, expires=ends), new, secret
