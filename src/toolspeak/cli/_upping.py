"""Run a model server and the gateway before it, and say how far it is."""

import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from toolspeak.cli import _serving
from toolspeak.cli.options import configured
from toolspeak.cli.terminal import visible
from toolspeak.config import current
from toolspeak.config.shape import PORT, Config
from toolspeak.errors import ServerLost
from toolspeak.runtime.llama.keeper import Keeper, State
from toolspeak.runtime.llama.model import ModelFile, model_file
from toolspeak.runtime.llama.patient import Patient
from toolspeak.runtime.llama.program import HOST, Program, Wish, find_program
from toolspeak.runtime.transport import HttpTransport

_STEP: Final = 0.5
_PRESET: Final = "llamacpp"


@dataclass(frozen=True, slots=True)
class Model:
    """What is to be run, and how."""

    path: Path
    context: int
    threads: int
    binary: str
    further: tuple[str, ...]


def run(model: Model, file: Path | None, said: Mapping[str, Any], *, quiet: bool) -> None:
    """Serve until a signal, or until the model's server is lost."""
    found = model_file(model.path)
    program = find_program(model.binary, current().get("PATH", ""), model.further)
    port = _free_port(said.get("port"))
    config = configured(file, {**said, "upstream": f"http://{HOST}:{port}/v1", "preset": _PRESET})
    _serving.check(config)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command = program.command(found, Wish(port, model.context, model.threads, model.further))
    with Keeper(command, port, _end) as keeper:
        _wait(keeper, program, found)
        _serve(keeper, config, quiet=quiet)


def _serve(keeper: Keeper, config: Config, *, quiet: bool) -> None:
    try:
        _serving.run(config, quiet=quiet, transport=Patient(HttpTransport(), keeper))
    finally:
        if keeper.state is State.LOST:  # it may have been lost before the gateway was there to be ended in order
            raise _lost(keeper)


def _wait(keeper: Keeper, program: Program, model: ModelFile) -> None:
    """Wait for a model to be loaded; on a terminal the seconds are counted."""
    loads, on_terminal = f"{program.name} loads {visible(model.name)} ({model.bulk})", sys.stderr.isatty()
    click.echo(loads, err=True, nl=not on_terminal)
    seconds = 0.0
    while keeper.wait(_STEP) is State.LOADING:
        seconds += _STEP
        if on_terminal:
            click.echo(f"\r{loads}: {seconds:.0f} s", err=True, nl=False)
    if on_terminal:
        click.echo(err=True)
    if keeper.state is not State.UP:
        raise _lost(keeper)


def _lost(keeper: Keeper) -> ServerLost:
    """Show the server's last words; why it is lost is the line behind them."""
    for line in keeper.last_lines:
        click.echo(f"  {visible(line)}", err=True)
    return ServerLost(keeper.why)


def _end(why: str) -> None:
    """End the gateway in order, as a signal would: nobody is behind it any more."""
    del why
    os.kill(os.getpid(), signal.SIGTERM)


def _free_port(gateway: object) -> int:
    """Return the port behind the gateway's if it is free, so that what the doctor measures there is found again."""
    wanted = (gateway if isinstance(gateway, int) else PORT) + 1
    for port in (wanted, 0) if wanted > 1 else (0,):
        with closing(socket.socket()) as probe:
            try:
                probe.bind((HOST, port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise AssertionError  # port 0 is always free
