"""Sessions of the dashboard: a person sends a key once, and the browser then sends a cookie instead.

The cookie is a random token. Only its digest is kept here, with the digest of the key that it stands for, so nothing in
memory can be used to log in elsewhere. A session ends by logging out, after 12 idle hours, when its key is removed from
the configuration, or when many newer sessions begin.
"""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from typing_extensions import override

from toolspeak.config.shape import Key
from toolspeak.gateway.access import ANONYMOUS, Keyring
from toolspeak.gateway.exchange import Exchange
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.local_store import Bounds, LocalStore

_COOKIE: Final = "toolspeak_session"
_IDLE: Final = 12 * 3600.0
"""Seconds without a request after which a session ends."""
_MOST: Final = 1000
"""Sessions at one time. Only a valid key begins one, so a stranger cannot push others out."""
_TOKENS: Final = 2
"""Ids of the clock that make up a token: 192 random bits."""


@dataclass(slots=True)
class _Session:
    key: bytes
    """The digest of the key."""
    used: float
    """Monotonic seconds of the last request."""


class Sessions:
    """The sessions of one process. Another gateway of a fleet does not know them."""

    def __init__(self, clock: Clock) -> None:
        """Start without sessions."""
        self._clock: Final = clock
        self._sessions: Final[OrderedDict[bytes, _Session]] = OrderedDict()

    def begin(self, key: Key, *, is_secure: bool) -> bytes:
        """Begin a session; return the `Set-Cookie` header for it. `is_secure` if the browser came over TLS."""
        token = "".join(self._clock.fresh_id() for _ in range(_TOKENS))
        self._keep(_digest(token), key.digest)
        return _cookie(token, int(_IDLE), is_secure=is_secure)

    def end(self, exchange: Exchange) -> bytes:
        """End the session of a request; return the `Set-Cookie` header that removes its cookie."""
        for token in _tokens(exchange):
            self._drop(_digest(token))
        return _cookie("", 0, is_secure=False)

    def find(self, exchange: Exchange, keyring: Keyring) -> Key | None:
        """Return the key of the session that a request belongs to; without keys, no session is needed."""
        if not keyring.needs_key:
            return ANONYMOUS
        for token in _tokens(exchange):
            digest = _digest(token)
            key_digest = self._key_of(digest)
            key = keyring.find(key_digest) if key_digest is not None else None
            if key is None:
                self._drop(digest)
                continue
            self._keep(digest, key.digest)
            return key
        return None

    def _key_of(self, digest: bytes) -> bytes | None:
        """Return the digest of the key of a session; None if the session has ended."""
        session = self._sessions.get(digest)
        is_over = session is None or self._clock.monotonic() - session.used > _IDLE
        return None if session is None or is_over else session.key

    def _keep(self, digest: bytes, key: bytes) -> None:
        """Begin a session, or note that it was used now. The one that is unused for longest makes room."""
        self._sessions[digest] = _Session(key, self._clock.monotonic())
        self._sessions.move_to_end(digest)
        while len(self._sessions) > _MOST:
            self._sessions.popitem(last=False)

    def _drop(self, digest: bytes) -> None:
        self._sessions.pop(digest, None)


_SPACE: Final = "session"


class SharedSessions(Sessions):
    """The sessions of all workers of a gateway: the next page of a browser may come to any of them."""

    def __init__(self, clock: Clock, store: LocalStore) -> None:
        """Take the store that the workers share."""
        super().__init__(clock)
        self._store: Final = store

    @override
    def _key_of(self, digest: bytes) -> bytes | None:
        return self._store.get(_SPACE, digest.hex())

    @override
    def _keep(self, digest: bytes, key: bytes) -> None:
        self._store.put(_SPACE, digest.hex(), key, Bounds(_IDLE, _MOST))

    @override
    def _drop(self, digest: bytes) -> None:
        self._store.delete(_SPACE, digest.hex())


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "replace")).digest()


def _cookie(token: str, seconds: int, *, is_secure: bool) -> bytes:
    secure = "; Secure" if is_secure else ""
    return f"{_COOKIE}={token}; Path=/ui; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}".encode()


def _tokens(exchange: Exchange) -> list[str]:
    """Return the tokens in the cookies of a request. Cookies of other programs on this host come along."""
    pairs = (pair.strip().partition("=") for value in exchange.headers(b"cookie") for pair in value.split(";"))
    return [value for name, _, value in pairs if name == _COOKIE and value]
