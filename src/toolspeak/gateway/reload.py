"""Reads the configuration again on SIGHUP or when its file changes, without dropping a request (OBS-10).

Requests that are being answered end under the configuration that they began with. New ones get the new keys, limits,
models and upstreams. What was learned about an upstream is kept if its URL is the same. A file with mistakes changes
nothing: the log names each of them, and the gateway goes on with what it has.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Final

from toolspeak.config.assemble import assemble, confirming_depths, depths, outbound_of
from toolspeak.config.shape import Config
from toolspeak.errors import BadConfig, ToolspeakError
from toolspeak.gateway.access import HostPolicy
from toolspeak.gateway.admission import limits_of_models
from toolspeak.gateway.app import Gateway
from toolspeak.gateway.asgi import Asgi
from toolspeak.gateway.file_watch import FileWatch
from toolspeak.gateway.request_reader import RequestReader
from toolspeak.gateway.tls import TlsCertificates
from toolspeak.runtime.learned import SHARED
from toolspeak.runtime.transport import OutboundTransport

_LOG: Final = logging.getLogger(__name__)
_AT_START: Final[Mapping[str, Sequence[str] | None]] = {
    "server": ("host", "port", "workers", "driver", "log", "shutdown"),
    "limits": ("connections", "connections_per_address"),
    "responses": None,
    "traces": None,
    "otel": None,
    "redis": None,
    "access": None,
    "runs": None,
    "offer": None,
    "mcp": None,
}
"""Settings that are read at the start only: the whole value, or some of its fields. `offer` is part of `[runs]`."""


class Reloader:
    """Reloads one gateway."""

    def __init__(self, app: Asgi, read: Callable[[], Config], tls: TlsCertificates | None = None) -> None:
        """Take the application, and the function that reads the configuration; it may block, and runs in a thread.

        `tls` are the certificates of its server, if it speaks HTTPS.
        """
        self._app: Final = app
        self._read: Final = read
        self._tls: Final = tls
        self._lock: Final = asyncio.Lock()
        self._watch: Final = watch_config(app.gateway.config)

    async def look(self) -> None:
        """Reload if the file has changed and `server.reload_on_change` is set."""
        if self._watch is None or not self._app.gateway.config.server.reload_on_change:
            return
        if await asyncio.to_thread(self._watch.look):
            await self.reload()

    async def reload(self) -> None:
        """Read the configuration and use it. Mistakes in it are logged; nothing is raised."""
        async with self._lock:  # two signals in a row read it twice, one after the other
            with reload_problems():
                if self._watch is not None:  # before it is read: a change while it is read counts as one
                    await asyncio.to_thread(self._watch.take)
                config = await asyncio.to_thread(self._read)
                if self._tls is not None:
                    await asyncio.to_thread(self._tls.change, config.server.tls)
                elif config.server.tls.is_on:
                    _LOG.warning("[server.tls] has changed: it takes effect after a restart")
                self._app.gateway = _reloaded(self._app.gateway, config)
                log_reload(config)


def watch_config(config: Config) -> FileWatch | None:
    """Return the watch of the file that a configuration was read from; None without a file."""
    return None if config.file is None else FileWatch([config.file])


@contextmanager
def reload_problems() -> Generator[None]:
    """Log why a configuration could not be reloaded; the block ends, and nothing is raised."""
    try:
        yield
    except BadConfig as error:
        for problem in error.problems:
            _LOG.error("%s", problem)
        _LOG.error("the configuration was not reloaded: the gateway goes on with the one that it has")
    except (ToolspeakError, OSError) as error:
        _LOG.error("the configuration was not reloaded: %s", error)
    except Exception:  # noqa: BLE001 # no request awaits this, so its error would be lost
        _LOG.exception("a fault while the configuration was reloaded: the gateway goes on with the old one")


def log_reload(config: Config) -> None:
    """Log that a configuration is in use."""
    said = len(config.upstreams), len(config.models), len(config.keys)
    _LOG.warning("the configuration was reloaded: %d upstreams, %d models, %d keys", *said)


def log_changes_at_start(old: Config, new: Config, settings: Mapping[str, Sequence[str] | None]) -> None:
    """Log which of the settings that are read at the start only have changed."""
    for name in _changed_at_start(old, new, settings):
        _LOG.warning("%s has changed: it takes effect after a restart", name)


def _reloaded(gateway: Gateway, config: Config) -> Gateway:
    """Return the gateway with a new configuration. Its parts with counters, tasks and connections stay the same."""
    log_changes_at_start(gateway.config, config, _AT_START)
    directory, clock = gateway.directory, gateway.clock
    if isinstance(gateway.transport, OutboundTransport):
        gateway.transport.outbound = outbound_of(config)
    directory.adopt(assemble(config, gateway.transport, SHARED, clock, directory))
    gateway.admission.limits = gateway.overload.limits = config.limits
    gateway.admission.models = limits_of_models(config)
    gateway.prober.change(depths(config), confirming_depths(config), config.server.probe_requests)
    gateway.readiness.change(config)
    gateway.idle_doctor.change(config)
    gateway.traces.change(config)
    gateway.viewers.restart()
    return Gateway(
        config,
        gateway.routes,
        directory,
        gateway.transport,
        gateway.keyring.changed(config.keys),
        HostPolicy(config),
        gateway.admission,
        gateway.overload,
        gateway.readiness,
        RequestReader(config.limits.request, gateway.reader.offload),
        gateway.prober,
        gateway.runs,
        gateway.responses,
        gateway.traces,
        gateway.metrics,
        gateway.sessions,
        gateway.viewers,
        gateway.checkups,
        gateway.idle_doctor,
        clock,
    )


def _changed_at_start(old: Config, new: Config, settings: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return the settings that differ and are only read at the start."""
    found: list[str] = []
    for table, only in settings.items():
        was, now = getattr(old, table), getattr(new, table)
        if only is None:
            found += [f"[{'runs' if table == 'offer' else table}]"] if was != now else []
        else:
            names = (each.name for each in fields(was) if each.name in only)
            found += [f"{table}.{name}" for name in names if getattr(was, name) != getattr(now, name)]
    return list(dict.fromkeys(found))
