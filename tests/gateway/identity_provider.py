"""An identity provider on loopback: its keys, and the tokens that it signs."""

import base64
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from typing_extensions import override

ISSUER, AUDIENCE = "https://login.example.com/realms/main", "toolspeak"
CANARY = "canary-of-a-claim"
Private: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Make a key; the same one for the same name, for it takes long."""
    del name
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(curve: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key({"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1()}[curve])


def private(algorithm: str) -> Private:
    """Return the provider's key for an algorithm."""
    if algorithm.startswith("ES"):
        return ec_key({"ES256": "P-256", "ES384": "P-384"}[algorithm])
    return _ed_key() if algorithm == "EdDSA" else rsa_key("provider")


@cache
def _ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public(of: Private, kid: str, **more: object) -> dict[str, object]:
    """Return the public part as a JWK."""
    if isinstance(of, rsa.RSAPrivateKey):
        made = RSAAlgorithm.to_jwk(of.public_key(), as_dict=True)
    elif isinstance(of, ec.EllipticCurvePrivateKey):
        made = ECAlgorithm.to_jwk(of.public_key(), as_dict=True)
    else:
        made = OKPAlgorithm.to_jwk(of.public_key(), as_dict=True)
    made.pop("key_ops", None)
    return {**made, "kid": kid, **more}


def claims(**more: object) -> dict[str, object]:
    """Return claims that are accepted; a claim that is given as None is left out."""
    now = int(time.time())
    said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "iat": now, "exp": now + 300, "note": CANARY, **more}
    return {name: value for name, value in said.items() if value is not None}


def signed(algorithm: str = "RS256", kid: str = "", header: dict[str, Any] | None = None, **more: object) -> str:
    """Return a token of the provider."""
    headers = {"kid": kid or algorithm, **(header or {})}
    return jwt.encode(claims(**more), private(algorithm), algorithm, headers)


def encoded(part: object) -> str:
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def key_set(*algorithms: str) -> bytes:
    return json.dumps({"keys": [public(private(each), each) for each in algorithms or ("RS256", "ES256")]}).encode()


# ---------------------------------------------------------------- a provider on loopback


@dataclass
class Provider:
    """An identity provider that serves its keys."""

    port: int = 0
    body: bytes = b""
    status: int = 200
    fetched: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/certs"


@contextmanager
def providing(body: bytes = b"") -> Generator[Provider]:
    provider = Provider(body=body or key_set())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.fetched += 1
            time.sleep(provider.delay)
            self.send_response(provider.status)
            for name, value in provider.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(provider.body)))
            self.end_headers()
            self.wfile.write(provider.body)

        @override
        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listened:
        provider.port = listened.server_address[1]
        thread = threading.Thread(target=listened.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield provider
        finally:
            listened.shutdown()
            thread.join()
