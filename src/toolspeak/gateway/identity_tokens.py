"""Identifies tenants by tokens (JWT) of an identity provider, as keys do (SAFE-12).

A token is checked in this order, and nothing that it says is believed before its signature is right:

1. its form and its length;
2. its header: the type of the token, an algorithm of `access.jwt.algorithms`, the id of a key;
3. its signature, by that key of the provider (`jwks.py`). A key or an address of keys that the token brings along
   (`jwk`, `jku`, `x5u`, `x5c`) is never looked at;
4. its claims: `iss`, `aud`, `exp`, `nbf`, `iat`, the tenant, and the models.

A refusal tells the client the class of the reason, and the audit log the reason. Neither has the token or a part of it.
"""

import base64
import binascii
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from toolspeak.config.forms import FORMS
from toolspeak.config.shape import TOKEN_ID, Jwt, Key, TenantRule, digest_of
from toolspeak.gateway.audit_log import AuditLog
from toolspeak.gateway.exchange import Refused
from toolspeak.gateway.jwks import ProviderKeys, verify
from toolspeak.gateway.key_records import KeysUnavailable
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.clock import Clock

LONGEST: Final = 16 << 10
"""Characters of a token. Those with two hundred groups of Entra ID have about 11,000."""
# A provider also signs other things than tokens of access, such as logout tokens, often for the same audience.
_TYPES: Final = ("jwt", "at+jwt", "application/jwt", "application/at+jwt")
_RETRY: Final = 10.0
"""Seconds after which a client may try again if the keys cannot be fetched."""
_UNKNOWN: Final = "jwt"
"""The key of the audit log for tokens of which no tenant is known."""

_UNTRUSTED: Final = (
    "this token is not accepted: it is damaged, or not signed by the identity provider of this gateway. "
    "Log in there again, and send the new token"
)
_ELSEWHERE: Final = (
    "this token is for another service: ask the identity provider for one whose audience is this gateway"
)
_INCOMPLETE: Final = (
    "this token lacks a claim that this gateway needs, or has an unusable one: ask the operator of the gateway "
    "(its audit log names the claim)"
)
_MESSAGES: Final = {
    "too long": _UNTRUSTED,
    "malformed": _UNTRUSTED,
    "type": _UNTRUSTED,
    "algorithm": _UNTRUSTED,
    "unknown key": _UNTRUSTED,
    "signature": _UNTRUSTED,
    "issuer": _ELSEWHERE,
    "audience": _ELSEWHERE,
    "expired": "this token has expired: get a new one from the identity provider",
    "not valid yet": "this token is not valid yet: try again later, or have the gateway's clock checked",
    "no expiry": _INCOMPLETE,
    "tenant": _INCOMPLETE,
    "models": _INCOMPLETE,
}
"""What the client is told for each reason of the audit log."""


class _Header(msgspec.Struct):
    alg: str
    kid: str = ""
    typ: str = "JWT"
    crit: msgspec.Raw = msgspec.Raw(b"")


_decode_header = msgspec.json.Decoder(_Header).decode
_decode_claims = msgspec.json.Decoder(dict[str, object]).decode


class _Rejected(Exception):
    """A token is not accepted; `reason` is one of `_MESSAGES`."""

    def __init__(self, reason: str, tenant: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.tenant = tenant


class IdentityTokens:
    """Checks tokens of one provider."""

    def __init__(self, settings: Jwt, keys: ProviderKeys, audit: AuditLog, clock: Clock) -> None:
        """Take the settings, and the keys, which `start` begins to fetch."""
        self._settings: Final = settings
        self._keys: Final = keys
        self._audit: Final = audit
        self._clock: Final = clock

    async def start(self) -> None:
        """Begin to fetch keys."""
        await self._keys.start()

    async def stop(self) -> None:
        """Stop fetching."""
        await self._keys.stop()

    async def check(self, token: str, client: str = "") -> Key:
        """Return what a token stands for: its tenant, with the tenant's models and limits.

        Raises `Refused`: 401 with the class of the reason, or 503 if there are no keys to check it with.
        """
        try:
            claims = await self._verified(token)
            return self._key(token, claims)
        except _Rejected as rejected:
            label = TOKEN_ID + rejected.tenant if rejected.tenant else _UNKNOWN
            self._audit.refused(label, rejected.tenant, f"token: {rejected.reason}", client)
            raise Refused(Failure(FailureKind.AUTH, _MESSAGES[rejected.reason], 401)) from None
        except KeysUnavailable:
            self._audit.refused(_UNKNOWN, "", "token: no keys to check it", client)
            # Not 401: clients throw a token away then, and a person would have to log in again, in vain.
            message = "tokens cannot be checked now: the keys of the identity provider cannot be fetched. Try again"
            raise Refused(Failure(FailureKind.TRANSIENT, message, 503, retry_after=_RETRY)) from None

    async def _verified(self, token: str) -> dict[str, object]:
        """Return the claims of a token whose signature is right."""
        if len(token) > LONGEST:
            raise _Rejected("too long")
        header = _header(token)
        # `crit` names extensions that must be understood, and none is understood here.
        if header.typ.lower() not in _TYPES or header.crit:
            raise _Rejected("type")
        # By the list of the configuration, which cannot have `none` or HS256 (RFC 8725, 3.1).
        if header.alg not in self._settings.algorithms:
            raise _Rejected("algorithm")
        key = await self._keys.find(header.kid, header.alg)
        if key is None:
            raise _Rejected("unknown key")
        payload = verify(token, key)
        if payload is None:
            raise _Rejected("signature")
        try:
            return _decode_claims(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise _Rejected("malformed") from None

    def _key(self, token: str, claims: dict[str, object]) -> Key:
        """Return the key of a token by its claims."""
        settings = self._settings
        if claims.get("iss") != settings.issuer:
            raise _Rejected("issuer")
        audience = claims.get("aud")
        if settings.audience not in (audience if isinstance(audience, list) else (audience,)):
            raise _Rejected("audience")
        tenant = claims.get(settings.tenant_claim)
        check = FORMS["tenant"].check
        if not isinstance(tenant, str) or (check is not None and check(tenant)):
            raise _Rejected("tenant")
        self._check_times(claims, tenant)
        rule = self._rule(tenant)
        models = self._models(claims, tenant) if settings.models_claim else rule.models
        return Key(tenant, digest_of(token), models, rule.limits, TOKEN_ID + tenant)

    def _rule(self, tenant: str) -> TenantRule:
        return next((each for each in self._settings.tenants if fnmatchcase(tenant, each.pattern)), TenantRule("*"))

    def _check_times(self, claims: dict[str, object], tenant: str) -> None:
        now, leeway = self._clock.seconds(), self._settings.leeway
        expires = _time(claims, "exp")
        if expires is None:
            raise _Rejected("no expiry", tenant)
        if now >= expires + leeway:
            raise _Rejected("expired", tenant)
        for name in ("nbf", "iat"):
            begins = _time(claims, name)
            if name in claims and (begins is None or now < begins - leeway):
                raise _Rejected("not valid yet", tenant)

    def _models(self, claims: dict[str, object], tenant: str) -> tuple[str, ...]:
        """Return the models that a token lists. An empty list must not become that of a key, which means all models."""
        said = claims.get(self._settings.models_claim)
        try:
            models = msgspec.convert(said.split() if isinstance(said, str) else said, tuple[str, ...])
        except msgspec.ValidationError:
            raise _Rejected("models", tenant) from None
        if not models or not all(models):
            raise _Rejected("models", tenant)
        return models


def _header(token: str) -> _Header:
    """Return the header of a token, which anyone may have written."""
    part = token.partition(".")[0]
    try:
        return _decode_header(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):  # msgspec's errors and UnicodeDecodeError are ValueErrors
        raise _Rejected("malformed") from None


def _time(claims: dict[str, object], name: str) -> float | None:
    """Return a time of the claims; None if it is missing or no number (`true` is none)."""
    value = claims.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
