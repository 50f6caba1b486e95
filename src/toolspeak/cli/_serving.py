"""Run the gateway, and say in a few lines how to reach it."""

import logging
import signal
import socket
import sys
from contextlib import closing, suppress
from typing import cast

import click

from toolspeak.config import check_public
from toolspeak.config.shape import Config, Server
from toolspeak.errors import BadConfig, RunsUnavailable
from toolspeak.gateway.build import build
from toolspeak.gateway.server import serve
from toolspeak.runtime.transport import Transport

_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def check(config: Config) -> None:
    """Say why it cannot be served, if it cannot, before anything is started."""
    check_public(config)
    _check_free(config.server)
    _check_runs(config)


def run(config: Config, *, quiet: bool, transport: Transport | None = None) -> None:
    """Serve until a signal; who is told to end, and does so in order, has done nothing wrong."""
    check(config)
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format=_FORMAT)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server passes on the signal that ended it
    with suppress(KeyboardInterrupt):
        serve(build(config, transport=transport), config, lambda url: _welcome(url, config, quiet=quiet))


def _check_runs(config: Config) -> None:
    """Open the database of runs once: a server that starts could only log that it cannot be used.

    One that is away now is no reason not to start: requests for runs get 503 until it is back.
    """
    if config.offer.enabled and config.runs.database:
        from toolspeak.runs.durable.database import Database  # noqa: PLC0415 # it takes two seconds to load

        with suppress(RunsUnavailable):
            Database(config.runs).close()


def _check_free(server: Server) -> None:
    """Try the address first: the server would only log that it cannot have it."""
    try:
        for family, kind, _, _, address in socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM):
            if family != socket.AF_INET6 or socket.has_dualstack_ipv6():
                _bind(socket.socket(family, kind), address)
    except OSError as error:
        raise BadConfig(
            f"cannot listen on {server.host}:{server.port}: {error.strerror or error}; "
            "say another --port (0 takes a free one) or --host"
        ) from None


def _bind(tried: socket.socket, address: object) -> None:
    with closing(tried):
        if sys.platform != "win32":  # there it would allow to take what somebody has
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tried.bind(cast("tuple[str, int]", address))


def _welcome(url: str, config: Config, *, quiet: bool) -> None:
    click.echo(f"toolspeak listens on {url}", err=True)
    if quiet:
        return
    for upstream in config.upstreams:
        click.echo(f"  upstream  {upstream.name}  {upstream.url}  ({upstream.wire})", err=True)
    click.echo(f"  OpenAI    OPENAI_BASE_URL={url}/v1", err=True)
    click.echo(f"  Anthropic ANTHROPIC_BASE_URL={url}", err=True)
    click.echo(f"  Gemini    GOOGLE_GEMINI_BASE_URL={url}", err=True)
    click.echo(f"  Ollama    OLLAMA_HOST={url}", err=True)
