"""Who asks: one function for every header in which protocols carry a key."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from hmac import compare_digest
from typing import Final
from urllib.parse import parse_qsl

from toolspeak.config.shape import Key
from toolspeak.gateway.exchange import Exchange, Refused
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.directory import Route

EVERYBODY: Final = Key("", b"")
"""Who asks where no key is needed."""
_HEADERS: Final = (b"x-api-key", b"x-goog-api-key", b"api-key")
_BEARER: Final = "bearer "


class Keyring:
    """The keys that clients may show. Without any, everybody may ask."""

    def __init__(self, keys: Sequence[Key]) -> None:
        """Take the keys' digests."""
        self._keys: Final = tuple(keys)

    def tenant(self, exchange: Exchange) -> Key:
        """Return whose key the client shows; raises `Refused`, and never says more than that."""
        if not self._keys:
            return EVERYBODY
        found = {key.digest: key for shown in shown_keys(exchange) for key in self._fitting(shown)}
        if len(found) != 1:  # two keys at once: which of them would be asked, and by whom?
            raise Refused(Failure(FailureKind.AUTH, "a valid key is needed", 401))
        return next(iter(found.values()))

    def _fitting(self, shown: str) -> list[Key]:
        """Compare with every key, each in constant time."""
        digest = sha256(shown.encode("utf-8", "replace")).digest()
        return [key for key in self._keys if compare_digest(key.digest, digest)]


def shown_keys(exchange: Exchange) -> Iterator[str]:
    """Return every key that a client shows, wherever its protocol carries it."""
    for value in exchange.headers(b"authorization"):
        if value[: len(_BEARER)].lower() == _BEARER:
            yield value[len(_BEARER) :].strip()
    for name in _HEADERS:
        yield from exchange.headers(name)
    if "key=" in exchange.query:
        yield from (value for name, value in parse_qsl(exchange.query) if name == "key")


def is_permitted(key: Key, route: Route) -> bool:
    """Return whether a key may use a route, by the route's one identity."""
    return not key.models or any(fnmatchcase(route.identity, pattern) for pattern in key.models)


def permit(key: Key, route: Route) -> None:
    """Raise `Refused` for a model that this key may not use."""
    if not is_permitted(key, route):
        raise Refused(Failure(FailureKind.PERMISSION, "this key may not use that model", 403, "model"))
