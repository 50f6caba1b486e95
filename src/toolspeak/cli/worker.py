r"""`toolspeak worker`: a process that works on durable runs.

$ toolspeak worker --upstream http://127.0.0.1:8080/v1
toolspeak works on runs of postgresql://runs@db/toolspeak

The engine is imported inside the functions that need it, so that `--help` stays fast.
"""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.options import config_option, load_config, upstream_options

if TYPE_CHECKING:
    import asyncio

    from toolspeak.config.shape import Config

LEASE_LOST: Final = 3
_FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


@click.command()
@upstream_options
@config_option
@click.option(
    "--grace",
    type=float,
    default=30.0,
    metavar="S",
    help="Seconds to finish running steps after a signal.  [default: 30]",
)
@click.option("--cell", metavar="NAME", help="The cell of [runs.cells] to work for.  [default: runs.database]")
@click.option(
    "--health",
    metavar="HOST:PORT",
    help="Serve /live, /ready and /metrics at this address, without keys.  [default: not served]",
)
@click.option("--quiet", is_flag=True, help="Log warnings and errors only.")
def worker(  # one for each option
    *,
    file: Path | None,
    grace: float,
    cell: str | None,
    health: str | None,
    quiet: bool,
    **options: str | bool | None,
) -> None:
    r"""Work on durable runs, and take over those of dead workers.

    Any number of workers can share one database; with several cells, each worker serves one. On SIGTERM or Ctrl-C, the
    worker starts no new step, waits for running steps, and puts its runs back into the queue. The exit status is 3 if
    the worker lost its lease and other workers have its runs.

    \b
    Examples:
      toolspeak worker
      toolspeak worker --config /etc/toolspeak.toml --cell eu
      TOOLSPEAK_RUNS_DATABASE=postgresql://runs@db/toolspeak toolspeak worker --preset groq
    """
    import asyncio  # noqa: PLC0415
    import logging  # noqa: PLC0415

    from toolspeak.extras import require_extra  # noqa: PLC0415

    require_extra("runs", "toolspeak worker")
    from toolspeak.agent.durable.cells import at_cell  # noqa: PLC0415
    from toolspeak.config.shape import DEFAULT_CELL  # noqa: PLC0415

    config = at_cell(load_config(file, options), cell or DEFAULT_CELL)
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format=_FORMAT)
    status = asyncio.run(_work(config, grace, health))
    exit_with_threads(status)
    click.get_current_context().exit(status)


async def _work(config: "Config", grace: float, health: str | None) -> int:
    """Work until a signal or until the lease is lost; return the exit status."""
    import asyncio  # noqa: PLC0415
    import signal  # noqa: PLC0415
    from contextlib import AsyncExitStack  # noqa: PLC0415

    from toolspeak.agent.durable.runs import open_worker  # noqa: PLC0415
    from toolspeak.agent.durable.worker_health import health_server  # noqa: PLC0415
    from toolspeak.config.assemble import assemble, outbound_of  # noqa: PLC0415
    from toolspeak.runtime.http_transport import HttpTransport  # noqa: PLC0415
    from toolspeak.runtime.learned import SHARED  # noqa: PLC0415

    ended = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, ended.set)
    transport = HttpTransport(outbound_of(config))
    try:
        # The probes are answered until the worker has drained.
        async with (
            AsyncExitStack() as probes,
            open_worker(config, assemble(config, transport, SHARED), grace) as opened,
        ):
            if health is not None:
                port = await probes.enter_async_context(health_server(opened, health))
                click.echo(f"toolspeak answers probes on port {port}", err=True)
            click.echo(f"toolspeak works on runs of {opened.place}", err=True)
            await wait_for_first(ended, opened.lost)
            return LEASE_LOST if opened.lost.is_set() else 0
    finally:
        await transport.close()


async def wait_for_first(*events: "asyncio.Event") -> None:
    """Wait until one of the events is set."""
    import asyncio  # noqa: PLC0415

    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(event.wait()) for event in events]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def exit_with_threads(status: int) -> None:
    """Exit at once if a thread would keep the process alive, else return.

    DBOS has threads that wait for a lost database forever, and Python waits for all threads at its exit.
    """
    import logging  # noqa: PLC0415

    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        logging.shutdown()
        os._exit(status)
