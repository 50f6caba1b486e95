r"""`toolspeak serve`: the gateway.

$ toolspeak serve --upstream http://127.0.0.1:8080/v1
toolspeak listens on http://127.0.0.1:4141

The server is imported inside the functions that need it, so that `--help` stays fast.
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from toolspeak.cli.options import driver_option, gateway_options, load_config, upstream_options, workers_option
from toolspeak.errors import BadConfig, RunsUnavailable

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from toolspeak.config.shape import Config, Server
    from toolspeak.runtime.transport import UpstreamTransport


_LONGEST_PARENT: Final = 60
"""Characters of the folder for temporary files."""


@click.command()
@upstream_options
@gateway_options
@workers_option
@driver_option
def serve(*, file: Path | None, quiet: bool, **options: str | int | None) -> None:
    r"""Start the gateway: tool calling in five APIs on one port.

    Agents and SDKs connect through the API of OpenAI Chat, OpenAI Responses, Anthropic, Gemini or Ollama. The model
    does not need to support tools. Without --upstream and without a configuration, the command looks for a model server
    on this machine: Ollama, llama.cpp, LM Studio, vLLM or SGLang.

    \b
    Examples:
      toolspeak serve
      toolspeak serve --upstream http://127.0.0.1:8080/v1
      toolspeak serve --preset groq --model llama-3.3-70b-versatile
      ANTHROPIC_BASE_URL=http://127.0.0.1:4141 ANTHROPIC_AUTH_TOKEN=x claude
    """

    def read() -> "Config":
        from toolspeak.config import check_public  # noqa: PLC0415

        config = load_config(file, options)
        check_public(config)
        return config

    run_gateway(read(), quiet=quiet, read=read)


def run_gateway(
    config: "Config",
    *,
    quiet: bool,
    transport: "UpstreamTransport | None" = None,
    read: "Callable[[], Config] | None" = None,
) -> None:
    """Serve until a signal. An orderly end after a signal is a success. `read` reloads the configuration on SIGHUP.

    With a `transport`, which belongs to this process, there is one worker, whatever the configuration says.
    """
    import logging  # noqa: PLC0415
    import signal  # noqa: PLC0415

    from toolspeak.gateway.access_log import formatter  # noqa: PLC0415
    from toolspeak.gateway.server import build, run_server  # noqa: PLC0415

    check_config(config)
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(config.server.log))
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # uvicorn raises the signal that ended it again after its shutdown.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        if transport is None and read is not None and (count := _workers(config)) > 1:
            _run_workers(config, count, read, quiet=quiet)
            return
        app = build(config, transport=transport)
        run_server(app, config, lambda url: _welcome(url, config, quiet=quiet), read)


def _workers(config: "Config") -> int:
    """Return how many processes answer requests. Raises `BadConfig` if several cannot."""
    wanted = config.server.workers
    if wanted == 1:
        return 1
    if sys.platform == "win32":
        raise BadConfig(f"server.workers: {wanted}: Windows cannot fork processes. Set 1.")
    if config.offer.enabled and not config.runs.database:
        raise BadConfig(
            f"server.workers: {wanted}: runs in memory belong to one process. Set runs.database and start `toolspeak "
            "worker`, or set workers to 1."
        )
    from toolspeak.gateway.worker_pool import usable_cores  # noqa: PLC0415

    return wanted or usable_cores()


def _run_workers(config: "Config", count: int, read: "Callable[[], Config]", *, quiet: bool) -> None:
    import fcntl  # noqa: PLC0415 # not on Windows
    import os  # noqa: PLC0415
    from tempfile import TemporaryDirectory, gettempdir  # noqa: PLC0415

    from toolspeak.gateway.server import BACKLOG, url_of  # noqa: PLC0415
    from toolspeak.gateway.worker_pool import WorkerPool  # noqa: PLC0415

    sockets = _open_sockets(config.server)
    for each in sockets:
        each.listen(BACKLOG)
    urls = [url_of(each, is_tls=config.server.tls.is_on) for each in sockets]

    def welcome() -> None:
        for url in urls:
            _welcome(url, config, quiet=quiet)

    def read_checked() -> "Config":
        reloaded = read()
        _check_runs(reloaded)
        _workers(reloaded)
        return reloaded

    # Sessions and stored responses are in it, and sockets that give traces away: only the gateway's user may enter it.
    # The path of a socket has at most 108 bytes, and 104 on macOS.
    parent = gettempdir() if len(gettempdir()) <= _LONGEST_PARENT else "/tmp"  # noqa: S108 # the folder in it is private
    with TemporaryDirectory(prefix="toolspeak-", dir=parent) as folder:
        # systemd-tmpfiles deletes what was not used for ten days, but not in a folder that is locked.
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH)
        WorkerPool(config, count, sockets, Path(folder), read_checked).run(welcome)


def check_config(config: "Config") -> None:
    """Raise `BadConfig` if the gateway could not serve, before anything is started."""
    from toolspeak.config import check_public  # noqa: PLC0415

    check_public(config)
    _check_address(config.server)
    _check_runs(config)


def _check_runs(config: "Config") -> None:
    """Open the database of runs once: the running server could only log that it is unusable.

    A database that is unreachable now does not prevent the start: requests for runs get 503 until it is back.
    """
    if config.offer.enabled and config.runs.database:
        from toolspeak.extras import require_extra  # noqa: PLC0415

        require_extra("runs", "runs.database")
        from toolspeak.agent.durable.cells import at_cell, cell_names  # noqa: PLC0415 # it takes two seconds to load
        from toolspeak.agent.durable.database import Database  # noqa: PLC0415

        for cell in cell_names(config):
            with suppress(RunsUnavailable):
                Database(at_cell(config, cell).runs).close()


def _check_address(server: "Server") -> None:
    """Bind the address once: uvicorn would only log that it is taken."""
    for bound in _open_sockets(server):
        bound.close()


def _open_sockets(server: "Server") -> "list[socket.socket]":
    """Return a bound socket for each address of the host. Raises `BadConfig` if one of them is taken."""
    import socket  # noqa: PLC0415

    opened: list[socket.socket] = []
    try:
        for family, kind, _, _, address in socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM):
            if family != socket.AF_INET6 or socket.has_dualstack_ipv6():
                opened.append(socket.socket(family, kind))
                _bind(opened[-1], address)
    except OSError as error:
        for each in opened:
            each.close()
        raise BadConfig(
            f"cannot listen on {server.host}:{server.port}: {error.strerror or error}. "
            "Pass another --port (0 picks a free one) or --host."
        ) from None
    return opened


def _bind(tried: "socket.socket", address: object) -> None:
    import socket  # noqa: PLC0415

    if sys.platform != "win32":  # on Windows, SO_REUSEADDR would let us bind a port that another process has
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if tried.family == socket.AF_INET6:  # as asyncio does: the address of IPv4 has a socket of its own
        tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    tried.bind(cast("tuple[str, int]", address))


def _welcome(url: str, config: "Config", *, quiet: bool) -> None:
    """Print the address, the variables by which clients reach it, and where a person sees what it does."""
    click.echo(f"toolspeak listens on {url}", err=True)
    url = _reachable(url)
    if quiet:
        return
    for upstream in config.upstreams:
        click.echo(f"  upstream  {upstream.name}  {upstream.url}  ({upstream.wire})", err=True)
    click.echo(f"  OpenAI    OPENAI_BASE_URL={url}/v1", err=True)
    click.echo(f"  Anthropic ANTHROPIC_BASE_URL={url}", err=True)
    click.echo(f"  Gemini    GOOGLE_GEMINI_BASE_URL={url}", err=True)
    click.echo(f"  Ollama    OLLAMA_HOST={url}", err=True)
    if config.dashboard.enabled:
        click.echo(f"  dashboard {url}/ui", err=True)


def _reachable(url: str) -> str:
    """Return a URL that clients on this machine can use: 0.0.0.0 and :: mean all addresses, and are no destination."""
    for every, loopback in (("://0.0.0.0:", "://127.0.0.1:"), ("://[::]:", "://[::1]:")):
        if every in url:
            return url.replace(every, loopback)
    return url
