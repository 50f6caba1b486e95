"""How requests leave this machine: through a proxy, with which certificates (SAFE-8).

The configuration resolves it for each upstream, so the transport only looks up the upstream's origin.
"""

import ssl
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from toolspeak.declaration import setting

DIRECT: Final = "none"
"""The value of `proxy` for requests that go to the upstream directly."""


@dataclass(frozen=True, slots=True)
class Outbound:
    """`[network]`, and the same settings of an upstream: the proxy and the certificates of requests to upstreams."""

    proxy: str = setting(
        "",
        "Proxy for requests: `http://HOST:PORT`, or `none`. It may contain a user name and a password. Requests to "
        "this machine never use a proxy.",
        otherwise="that of `[network]`, else of `HTTPS_PROXY` or `HTTP_PROXY`, unless `NO_PROXY` names the host",
        form="proxy",
        is_secret=True,
    )
    ca_file: str = setting(
        "",
        "PEM file with certificates of authorities to trust, in addition to those of the system (or of "
        "`SSL_CERT_FILE`).",
        otherwise="that of `[network]`, else none",
        form="ca_file",
    )
    client_cert: str = setting(
        "",
        "PEM file with the certificate for servers that request one, and with its key unless `client_key` is set.",
        otherwise="that of `[network]`, else none",
        form="file",
    )
    client_key: str = setting(
        "",
        "PEM file with the key of `client_cert`, without a password.",
        otherwise="in the file of `client_cert`",
        form="file",
    )

    @property
    def proxy_url(self) -> str | None:
        """The proxy; None for a direct connection."""
        return None if self.proxy in ("", DIRECT) else self.proxy

    @property
    def tls(self) -> ssl.SSLContext | bool:
        """The context of TLS connections; True for the default one. Raises OSError or ssl.SSLError for bad files."""
        if not (self.ca_file or self.client_cert):
            return True
        return _context(self.ca_file, self.client_cert, self.client_key)


NO_OUTBOUND: Final = Outbound()


@lru_cache(maxsize=64)
def _context(ca_file: str, client_cert: str, client_key: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(_path(ca_file))
    if client_cert:
        context.load_cert_chain(_path(client_cert), _path(client_key) if client_key else None)
    return context


def _path(file: str) -> Path:
    return Path(file).expanduser()


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL that the configuration has checked."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}".lower()
