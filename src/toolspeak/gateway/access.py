"""Which requests may enter: by their Host, their Origin and their key; and which models a key may use.

Three attackers are meant.

- A page in a browser. A gateway on loopback usually has no key, and every page that a person opens can send requests to
  it. A page of another origin is refused by its `Origin`. A page whose own name resolves to 127.0.0.1 (DNS rebinding)
  is of the same origin for the browser, so the `Host` must be one of the gateway's names too.
- A client without a key, or with several. Every protocol has its own place for a key, and an attacker tries all of
  them: one function reads all places, whatever the path is, so no path or header gets around it.
- A client with a key for one model that names another. A permission is matched against the identity of the route that
  the name leads to, never against the name that the client wrote: a key for the alias `fast` once permitted
  `other:fast` as well, which reached another upstream with the operator's key.

`admission.py` has the limits.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from hashlib import sha256
from hmac import compare_digest
from typing import Final, Protocol
from urllib.parse import parse_qsl

from toolspeak.config.shape import Config, Key
from toolspeak.errors import UnknownModel
from toolspeak.gateway.exchange import Exchange, Refused, header
from toolspeak.gateway.stored_keys import StoredKeys
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.directory import Directory, Route
from toolspeak.text.display import visible

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
ANONYMOUS: Final = Key("", b"")
"""The key of every client of a gateway without keys: no limits, all models, one tenant."""
# Strict: a router that rebuilds the URL from Host could be made to see an open path where a protected one is requested.
_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_SCHEMES: Final = ("http://", "https://")
_SHOWN: Final = 100
# Anthropic, Google and Azure have headers of their own. Since 2.8 the Anthropic SDK sends its key as a bearer token.
_KEY_HEADERS: Final = (b"x-api-key", b"x-goog-api-key", b"api-key")
_BEARER: Final = "bearer "


# ---------------------------------------------------------------- hosts and origins


class HostPolicy:
    """Checks the Host and the Origin of requests. The gateway's own address is always accepted."""

    def __init__(self, config: Config) -> None:
        """Read `server.host`, `server.hosts` and `server.origins`."""
        server = config.server
        own = f"[{server.host}]" if ":" in server.host else server.host
        self._hosts: Final = frozenset(name.lower() for name in (*LOOPBACK, own, *server.hosts))
        self._origins: Final = frozenset(origin.lower().rstrip("/") for origin in server.origins)
        # A public address may have many names that the operator has not listed, and rebinding gains nothing there: a
        # page in a browser has no key to send. So with keys and without `server.hosts` every Host is accepted.
        self._any_host: Final = config.needs_key and own not in LOOPBACK and not server.hosts

    def check(self, exchange: Exchange) -> str:
        """Return the origin that the response must allow, empty if the request has none.

        Raises `Refused`: 400 for a malformed Host, 403 for a Host or an Origin that is not accepted.
        """
        host = _HOST.fullmatch(header(exchange, b"host"))
        if host is None:
            raise _denied("the Host header is missing or is no host", 400)
        if not self._any_host and host[1].lower() not in self._hosts:
            raise _denied("this Host is not served here; server.hosts can name it", 403)
        origin = header(exchange, b"origin")
        if origin and not self._allows(origin.lower(), host[2] or ""):
            page = visible(origin[:_SHOWN])
            raise _denied(f"pages of {page} may not send requests to this gateway; server.origins can name it", 403)
        return origin

    def _allows(self, origin: str, port: str) -> bool:
        """Return whether pages of an origin may send requests: the gateway's own, and those in `server.origins`.

        An own origin has one of the gateway's names and the port that the request was sent to. Every other port of this
        machine is a stranger: any program that a person runs there, such as a development server with a page of an
        untrusted package, could otherwise read answers and spend the upstreams' keys.
        """
        if origin in self._origins:
            return True
        host = next((_HOST.fullmatch(origin[len(scheme) :]) for scheme in _SCHEMES if origin.startswith(scheme)), None)
        return host is not None and host[1] in self._hosts and (host[2] or "") == port


def _denied(message: str, status: int) -> Refused:
    return Refused(Failure(FailureKind.PERMISSION, message, status))


# ---------------------------------------------------------------- keys


class Keyring:
    """The keys that clients may send: those of the configuration, and stored ones. Without either, none is needed."""

    def __init__(self, keys: Sequence[Key], stored: StoredKeys | None = None) -> None:
        """Take the keys, of which only digests are known."""
        self._keys: Final = tuple(keys)
        self._stored: Final = stored

    def changed(self, keys: Sequence[Key]) -> "Keyring":
        """Return the keyring with the keys of another configuration, and the same stored ones."""
        return Keyring(keys, self._stored)

    async def start(self) -> None:
        """Read the stored keys, and go on looking for changes."""
        if self._stored is not None:
            await self._stored.start()

    async def stop(self) -> None:
        """Stop looking."""
        if self._stored is not None:
            await self._stored.stop()

    def knows(self, exchange: Exchange) -> bool:
        """Return whether the client sends a valid key, or needs none."""
        try:
            self.identify(exchange)
        except Refused:
            return False
        return True

    def identify(self, exchange: Exchange) -> Key:
        """Return the client's key; raises `Refused` (401).

        The message is always the same: why a key is refused helps only an attacker. A request with the keys of two
        tenants is refused too, because it is not clear whose limits and permissions apply.
        """
        if not self.needs_key:
            return ANONYMOUS
        # A client may send one key in several places: by its digest it counts once.
        found = {key.digest: key for sent in sent_keys(exchange) for key in self._matching(sent, exchange.client)}
        if len(found) != 1:
            raise Refused(Failure(FailureKind.AUTH, "a valid key is needed", 401))
        return next(iter(found.values()))

    @property
    def needs_key(self) -> bool:
        """Whether clients need a key."""
        return bool(self._keys) or self._stored is not None

    def match(self, sent: str, client: str = "") -> Key | None:
        """Return the key that equals the sent one; None if there is none."""
        return next(iter(self._matching(sent, client)), None)

    def find(self, digest: bytes) -> Key | None:
        """Return the key with this digest; None once it is removed, expired or revoked."""
        found = next((key for key in self._keys if compare_digest(key.digest, digest)), None)
        return found if found is not None or self._stored is None else self._stored.find(digest)

    def _matching(self, sent: str, client: str = "") -> list[Key]:
        """Return the keys that equal the sent one.

        It is compared with every configured key, each time in constant time, so that the duration does not show how
        much of it is right. Digests are compared, not keys: the configuration need not contain the key, and all have
        one length. Stored keys are looked up by their digest, for there may be thousands: the time of that could tell
        only about digests, from which no key can be found.
        """
        digest = sha256(sent.encode("utf-8", "replace")).digest()
        found = [key for key in self._keys if compare_digest(key.digest, digest)]
        if found or self._stored is None:
            return found
        stored = self._stored.find(digest, client)
        return [] if stored is None else [stored]


class KeyCarrier(Protocol):
    """The parts of a request in which its protocol may carry a key: an `Exchange`, for example."""

    @property
    def query(self) -> str:
        """The query string, without its question mark."""
        ...

    def headers(self, name: bytes) -> list[str]:
        """Return all values of a header."""
        ...


def sent_keys(exchange: KeyCarrier) -> Iterator[str]:
    """Yield every key that a client sends, wherever its protocol carries it."""
    for value in exchange.headers(b"authorization"):
        if value[: len(_BEARER)].lower() == _BEARER:
            yield value[len(_BEARER) :].strip()
    for name in _KEY_HEADERS:
        yield from exchange.headers(name)
    if "key=" in exchange.query:  # Google's REST clients send `?key=`
        yield from (value for name, value in parse_qsl(exchange.query) if name == "key")


def is_permitted(key: Key, route: Route) -> bool:
    """Return whether a key may use a route, by the route's one identity: its alias, else `upstream:model`."""
    return not key.models or any(fnmatchcase(route.identity, pattern) for pattern in key.models)


def permit(key: Key, route: Route) -> None:
    """Raise `Refused` (403) for a model that this key may not use."""
    if not is_permitted(key, route):
        raise Refused(Failure(FailureKind.PERMISSION, "this key may not use that model", 403, "model"))


async def find_route(directory: Directory, name: str, key: Key) -> Route:
    """Return the route of a model that this key may use; raises `Refused`.

    Under `unknown_models = "strict"` an unknown name is a 404 with the nearest name that the key may use, or a 503 if
    an upstream that may have the model does not answer.
    """
    try:
        route = await directory.find(name)
    except UnknownModel as error:
        if problem := directory.silence(partial=True):
            message = f"{error}, and {problem}"
            raise Refused(Failure(FailureKind.TRANSIENT, message, 503, "model")) from None
        known = [one.name for one in await directory.listing() if is_permitted(key, one.route)]
        near = get_close_matches(name, known, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "the list of models has the names"
        raise Refused(Failure(FailureKind.NOT_FOUND, f"{error}: {hint}", 404, "model")) from None
    permit(key, route)  # on the route, not on the name that the client wrote
    return route
