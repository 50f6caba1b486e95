"""Run a worker until a signal."""

import asyncio
import logging
import os
import signal
import threading
from typing import Final

import click

from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config
from toolspeak.runs.durable.runs import open_worker
from toolspeak.runtime.learned import SHARED
from toolspeak.runtime.transport import HttpTransport

LEASE_LOST: Final = 3
_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def run(config: Config, grace: float, *, quiet: bool) -> int:
    """Work until a signal, or until others have taken over; return the status."""
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format=_FORMAT)
    status = asyncio.run(_work(config, grace))
    leave(status)
    return status


def leave(status: int) -> None:
    """End the process if threads would keep it: those of DBOS wait for ever for a database that is gone."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        logging.shutdown()
        os._exit(status)


async def _work(config: Config, grace: float) -> int:
    ended = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, ended.set)
    transport = HttpTransport()
    try:
        async with open_worker(config, assemble(config, transport, SHARED), grace) as worker:
            click.echo(f"toolspeak works on runs of {worker.place}", err=True)
            await first(ended, worker.lost)
            return LEASE_LOST if worker.lost.is_set() else 0
    finally:
        await transport.close()


async def first(*events: asyncio.Event) -> None:
    """Wait for one of these."""
    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(event.wait()) for event in events]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
