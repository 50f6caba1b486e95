"""TLS of the gateway's own port: certificates that are replaced while it serves (OPS-2).

A new certificate is a new context, made and checked as a whole. The server's socket keeps its first context, whose
callback hands each new handshake over to the newest one. So a pair that does not fit is never half in use
(`load_cert_chain` on a context in use keeps the new certificate if its key does not fit), an authority that was removed
from `client_ca` is no longer trusted, and connections that are open go on.
"""

import asyncio
import logging
import ssl
from datetime import UTC, datetime, timedelta
from typing import Final

from toolspeak.config.server_tls import ServerTls
from toolspeak.errors import BadConfig
from toolspeak.gateway.file_watch import FileWatch
from toolspeak.runtime.clock import Clock

_LOG: Final = logging.getLogger(__name__)
_SOON: Final = timedelta(days=14)
_REMIND_EVERY: Final = 86_400.0
"""Seconds between two warnings that a certificate expires."""


class TlsCertificates:
    """The certificates of one server."""

    def __init__(self, tls: ServerTls, clock: Clock, *, warns: bool = True) -> None:
        """Read the files; raises `BadConfig`. `warns` is whether this process warns before the certificate expires."""
        self._tls = tls
        self._clock: Final = clock
        self._warns: Final = warns
        self.context: Final = tls.context()
        """For the listening socket."""
        self._newest = self.context
        self.context.sni_callback = self._choose
        self._watch = FileWatch(tls.files)
        self._next_warning = 0.0

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        # OpenSSL calls it in each full handshake, also where the client sends no name.
        del name
        if context is not self._newest:
            connection.context = self._newest

    def change(self, tls: ServerTls) -> None:
        """Use other files from the next handshake on. Raises `BadConfig`, and nothing changes then. It may block."""
        if not self._can_become(tls):
            return
        watch = FileWatch(tls.files)
        self._newest, self._tls, self._watch = tls.context(), tls, watch
        self._next_warning = 0.0

    def _can_become(self, tls: ServerTls) -> bool:
        if tls.is_on and bool(tls.client_ca) == bool(self._tls.client_ca):
            return True
        # Whether clients are asked for a certificate belongs to the socket's own context.
        name = "server.tls.client_ca" if tls.is_on else "[server.tls]"
        _LOG.warning("%s has changed: it takes effect after a restart", name)
        return False

    async def look(self) -> None:
        """Take the files if they have changed, and warn if the certificate expires soon. Raises nothing."""
        if await asyncio.to_thread(self._watch.look):
            try:
                await asyncio.to_thread(self.change, self._tls)
                _LOG.warning("the certificate was reloaded: %s", self._tls.certificate)
            except BadConfig as error:
                _LOG.error("%s. The gateway goes on with the certificate that it has", error)
        if self._warns and self._clock.monotonic() >= self._next_warning:
            self._next_warning = self._clock.monotonic() + _REMIND_EVERY
            await asyncio.to_thread(self._warn)

    def _warn(self) -> None:
        expires = self._tls.expires()
        if expires is None:
            return
        left = expires - datetime.fromtimestamp(self._clock.nanoseconds() / 1e9, UTC)
        said = self._tls.certificate, expires.strftime("%Y-%m-%d %H:%M UTC")
        if left <= timedelta(0):
            _LOG.error("the certificate %s has expired on %s: clients refuse it. Renew it", *said)
        elif left < _SOON:
            _LOG.warning("the certificate %s expires on %s, in %d days. Renew it", *said, left.days)
