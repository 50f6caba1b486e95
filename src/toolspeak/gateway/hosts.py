"""Which Host and Origin a request may have: a page in a browser must not reach a gateway on loopback."""

import re
from typing import Final

from toolspeak.config.shape import Config
from toolspeak.gateway.exchange import Exchange, Refused, header
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.text.visible import visible

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_SCHEMES: Final = ("http://", "https://")
_SHOWN: Final = 100


class Doors:
    """What is accepted beside the own address."""

    def __init__(self, config: Config) -> None:
        """Take where the gateway listens, and what the configuration adds."""
        server = config.server
        own = f"[{server.host}]" if ":" in server.host else server.host
        self._hosts: Final = frozenset(name.lower() for name in (*LOOPBACK, own, *server.hosts))
        self._origins: Final = frozenset(origin.lower().rstrip("/") for origin in server.origins)
        # Behind a public address the names are many, and a page in a browser has no key to show.
        self._any_host: Final = bool(config.keys) and own not in LOOPBACK and not server.hosts

    def check(self, exchange: Exchange) -> str:
        """Refuse strangers; return the origin that must be allowed in the answer, if there is one."""
        host = _HOST.fullmatch(header(exchange, b"host"))
        if host is None:
            raise _refused("the Host header is missing or is no host", 400)
        if not self._any_host and host[1].lower() not in self._hosts:
            raise _refused("this Host is not served here; server.hosts can name it", 403)
        origin = header(exchange, b"origin")
        if origin and not self._allows(origin.lower(), host[2] or ""):
            page = visible(origin[:_SHOWN])
            raise _refused(f"pages of {page} may not send requests to this gateway; server.origins can name it", 403)
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


def _refused(message: str, status: int) -> Refused:
    return Refused(Failure(FailureKind.PERMISSION, message, status))
