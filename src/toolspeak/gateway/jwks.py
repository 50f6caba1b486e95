"""The public keys of an identity provider (JWKS), and the check of a signature with one of them (SAFE-12).

    keys = ProviderKeys(settings, clock)
    await keys.start()
    key = await keys.find("key-7", "RS256")      -> None if the provider has no such key
    payload = verify(token, key)

The keys are fetched at the start and every `access.jwt.refresh` seconds. A token with an unknown key id fetches them
again at once, for providers publish a new key shortly before they sign with it; at most every ten seconds, or a client
that invents ids would make the gateway flood the provider. While the provider is away the known keys are used for
`access.jwt.max_stale` seconds.

The only user of PyJWT, which is in the extra `toolspeak[jwt]`.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from jwt import PyJWK, PyJWS, PyJWTError

from toolspeak.config.shape import Jwt
from toolspeak.gateway.key_records import KeysUnavailable
from toolspeak.runtime.clock import Clock
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.runtime.outbound import origin_of
from toolspeak.runtime.transport import Timeouts, TransportError

_LOG: Final = logging.getLogger(__name__)
PAUSE: Final = 10.0
"""Seconds between two requests for the keys, however many tokens have unknown ids."""
_LARGEST: Final = 512 << 10
"""Bytes of a key set. Large providers publish a dozen keys, 20 KB."""
_TIMEOUTS: Final = Timeouts(connect=5.0, first_byte=5.0, idle=5.0, total=10.0)
_FEWEST_BITS, _MOST_BITS = 2048, 8192
"""Of RSA keys. NIST allows no shorter ones; a longer one makes each check slow."""
_OK: Final = 200
_KINDS: Final = {
    "RS": ("RSA", None),
    "PS": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The type and the curve of the keys of each algorithm."""
_PUBLIC: Final = ("kty", "n", "e", "crv", "x", "y")
"""Members of a key that are read: of a private key that was put there by mistake, only the public part is kept."""


class _KeySet(msgspec.Struct):
    keys: list[msgspec.Raw]


_decode_set = msgspec.json.Decoder(_KeySet).decode
_decode_key = msgspec.json.Decoder(dict[str, object]).decode


def read_key_set(data: bytes, algorithms: tuple[str, ...]) -> dict[tuple[str, str], PyJWK]:
    """Return the usable keys of a JWKS, by key id and algorithm. Raises `KeysUnavailable` if it is none.

    A key is bound to its algorithms here, by its type: a token can choose among keys, but never how one is used. Keys
    of other types, for encryption, or without an id are left out.
    """
    try:
        found = _decode_set(data).keys
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise KeysUnavailable("the answer is no key set (JWKS)") from None
    keys: dict[tuple[str, str], PyJWK] = {}
    for each in found:
        try:
            jwk = _decode_key(each)
        except (msgspec.MsgspecError, UnicodeDecodeError):  # no object; the others may be good
            continue
        for name in algorithms:
            if (key := _key(jwk, name)) is not None:
                keys.setdefault((str(jwk["kid"]), name), key)
    return keys


def _key(jwk: Mapping[str, object], algorithm: str) -> PyJWK | None:
    """Return a key for one algorithm; None if the key is not for it or cannot be used."""
    kind, curve = _KINDS.get(algorithm) or _KINDS[algorithm[:2]]
    is_meant = (
        isinstance(jwk.get("kid"), str)
        and (jwk.get("kty"), jwk.get("crv")) == (kind, curve)
        and jwk.get("alg") in (None, algorithm)
        and jwk.get("use") in (None, "sig")
    )
    if not is_meant:
        return None
    try:
        key = PyJWK(
            {name: value for name, value in jwk.items() if name in _PUBLIC and isinstance(value, str)}, algorithm
        )
    except (PyJWTError, ValueError, UnsupportedAlgorithm):
        return None
    bits = getattr(key.key, "key_size", _FEWEST_BITS) if kind == "RSA" else _FEWEST_BITS
    return key if _FEWEST_BITS <= bits <= _MOST_BITS else None


def verify(token: str, key: PyJWK) -> bytes | None:
    """Return what a token says, if the key has signed it by its algorithm; else None."""
    try:
        payload: bytes = PyJWS().decode(token, key, algorithms=[key.algorithm_name])
    except (PyJWTError, ValueError, RecursionError):
        return None
    return payload


class ProviderKeys:
    """The keys of one provider, fetched over HTTP or read from a file."""

    def __init__(self, settings: Jwt, clock: Clock, pause: float = PAUSE) -> None:
        """Begin without keys; `start` fetches them."""
        self._settings: Final = settings
        self._clock: Final = clock
        self._pause: Final = pause
        # A transport of its own: that of upstreams may belong to a model server of this machine, which may be down.
        self._transport: Final = HttpTransport({origin_of(settings.jwks_url): settings.outbound})
        self._keys: dict[tuple[str, str], PyJWK] = {}
        self._fetched: float | None = None
        """When the keys were last fetched; monotonic, as all times here."""
        self._tried: float | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_failing = False

    async def start(self) -> None:
        """Fetch the keys in the background, and again and again: a gateway starts while the provider is away."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Stop fetching."""
        tasks = [each for each in (self._watching, self._refreshing) if each is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._transport.close()

    async def find(self, kid: str, algorithm: str) -> PyJWK | None:
        """Return the key with this id for this algorithm; None if the provider has none.

        Raises `KeysUnavailable` if no keys were ever fetched, or too long ago.
        """
        found = self._keys.get((kid, algorithm)) if self._is_fresh() else None
        if found is not None:
            return found
        await self._refresh()
        if not self._is_fresh():
            raise KeysUnavailable("the keys of the identity provider cannot be fetched")
        return self._keys.get((kid, algorithm))

    def _is_fresh(self) -> bool:
        return self._fetched is not None and self._clock.monotonic() <= self._fetched + self._settings.max_stale

    async def _watch(self) -> None:
        while True:
            await self._refresh()
            await self._clock.sleep(
                min(self._pause, self._settings.refresh) if self._is_failing else self._settings.refresh
            )

    async def _refresh(self) -> None:
        """Fetch the keys, unless that was tried a moment ago. Callers at the same time wait for one request."""
        if self._refreshing is None or self._refreshing.done():
            now = self._clock.monotonic()
            if self._tried is not None and now < self._tried + min(self._pause, self._settings.refresh):
                return
            self._tried = now
            self._refreshing = asyncio.get_running_loop().create_task(self._fetch())
        await asyncio.shield(self._refreshing)  # a client that hangs up does not end the request of the others

    async def _fetch(self) -> None:
        """Fetch the keys; a failure keeps the known ones, and is logged once."""
        place = self._settings.jwks_url or self._settings.jwks_file
        try:
            data = await (self._download() if self._settings.jwks_url else asyncio.to_thread(self._read))
            keys = await asyncio.to_thread(read_key_set, data, self._settings.algorithms)
        except (KeysUnavailable, TransportError, OSError) as error:
            self._log_failure(place, error)
            return
        if self._is_failing:
            _LOG.warning("the keys of %s can be fetched again", place)
        if not keys:
            _LOG.warning("%s has no key for access.jwt.algorithms: no token is accepted", place)
        self._is_failing, self._keys, self._fetched = False, keys, self._clock.monotonic()

    def _log_failure(self, place: str, error: Exception) -> None:
        if not self._is_failing:
            _LOG.error("the keys of %s cannot be fetched (%s): %s", place, error, self._consequence())
        self._is_failing = True

    def _consequence(self) -> str:
        if self._fetched is None:
            return "tokens get 503 until they can"
        left = self._fetched + self._settings.max_stale - self._clock.monotonic()
        return f"the {len(self._keys)} known ones are used for {max(0, round(left))} s more, then tokens get 503"

    async def _download(self) -> bytes:
        headers = (("accept", "application/json"),)
        response = await self._transport.send("GET", self._settings.jwks_url, headers, b"", _TIMEOUTS)
        try:
            if response.status != _OK:
                raise KeysUnavailable(f"status {response.status}")
            data = bytearray()
            while chunk := await response.read():
                data += chunk
                if len(data) > _LARGEST:
                    raise KeysUnavailable(f"more than {_LARGEST} bytes")
            return bytes(data)
        finally:
            response.close()

    def _read(self) -> bytes:
        with Path(self._settings.jwks_file).expanduser().open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise KeysUnavailable(f"more than {_LARGEST} bytes")
        return data
