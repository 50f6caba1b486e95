"""Which requests may enter: by their Host, their Origin and their key or token; and which models a key may use.

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
# A signed token (JWT): a JSON object, so it begins with `{"`, its claims and its signature, each in base64url. The
# signature may be empty, so that tokens of `alg: none` are refused as tokens, with a line in the audit log.
_TOKEN: Final = re.compile(r"eyJ[A-Za-z0-9_=-]*+\.[A-Za-z0-9_=-]*+\.[A-Za-z0-9_=-]*+")
_MOST_TOKENS: Final = 4
"""Tokens that are checked in one request. Each check takes up to a millisecond, and a head has room for hundreds."""


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


class TokenCheck(Protocol):
    """Checks tokens of an identity provider: `identity_tokens.IdentityTokens`, which needs an extra."""

    async def start(self) -> None:
        """Begin to fetch the provider's keys."""
        ...

    async def stop(self) -> None:
        """Stop that."""
        ...

    async def check(self, token: str, client: str = "") -> Key:
        """Return what a token stands for; raises `Refused` with the class of the reason."""
        ...


class Keyring:
    """The keys that clients may send: of the configuration, stored ones, and tokens. Without any, none is needed."""

    def __init__(self, keys: Sequence[Key], stored: StoredKeys | None = None, tokens: TokenCheck | None = None) -> None:
        """Take the keys, of which only digests are known."""
        self._keys: Final = tuple(keys)
        self._stored: Final = stored
        self._tokens: Final = tokens

    def changed(self, keys: Sequence[Key]) -> "Keyring":
        """Return the keyring with the keys of another configuration, and the same stored ones and tokens."""
        return Keyring(keys, self._stored, self._tokens)

    async def start(self) -> None:
        """Read the stored keys, and go on looking for changes; fetch the keys of tokens."""
        if self._stored is not None:
            await self._stored.start()
        if self._tokens is not None:
            await self._tokens.start()

    async def stop(self) -> None:
        """Stop looking."""
        if self._stored is not None:
            await self._stored.stop()
        if self._tokens is not None:
            await self._tokens.stop()

    async def knows(self, exchange: Exchange) -> bool:
        """Return whether the client sends a valid key or token, or needs none."""
        try:
            await self.identify(exchange)
        except Refused:
            return False
        return True

    async def identify(self, exchange: Exchange) -> Key:
        """Return the client's key, or that of its token; raises `Refused` (401, or 503 if no token can be checked).

        The message for a key is always the same: why a key is refused helps only an attacker. A request with the keys
        of two tenants is refused too, because it is not clear whose limits and permissions apply.
        """
        if not self.needs_key:
            return ANONYMOUS
        # A client may send one key in several places: by its digest it counts once.
        found: dict[bytes, Key] = {}
        tokens: list[str] = []
        for sent in dict.fromkeys(sent_keys(exchange)):
            matching = self._matching(sent, exchange.client)
            found |= {key.digest: key for key in matching}
            if not matching and _TOKEN.fullmatch(sent):
                tokens.append(sent)
        if tokens and self._tokens is not None:
            found |= await self._checked(self._tokens, tokens, exchange.client, is_needed=not found)
        if len(found) != 1:
            raise self._nobody()
        return next(iter(found.values()))

    async def _checked(
        self, check: TokenCheck, tokens: Sequence[str], client: str, *, is_needed: bool
    ) -> dict[bytes, Key]:
        """Return what valid tokens stand for. If a token is needed and none is valid, raise why the first is not."""
        if len(tokens) > _MOST_TOKENS:
            raise self._nobody()
        found: dict[bytes, Key] = {}
        refusals: list[Refused] = []
        for token in tokens:
            try:
                key = await check.check(token, client)
            except Refused as refused:
                refusals.append(refused)
            else:
                found[key.digest] = key
        if is_needed and not found:
            raise refusals[0]
        return found

    def _nobody(self) -> Refused:
        needed = "key" if self._tokens is None else "key or token"
        return Refused(Failure(FailureKind.AUTH, f"a valid {needed} is needed", 401))

    @property
    def needs_key(self) -> bool:
        """Whether clients need a key or a token."""
        return bool(self._keys) or self._stored is not None or self._tokens is not None

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
        sent = "token" if key.is_token else "key"
        raise Refused(Failure(FailureKind.PERMISSION, f"this {sent} may not use that model", 403, "model"))


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
