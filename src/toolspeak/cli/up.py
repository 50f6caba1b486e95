r"""`toolspeak up`: run models on this machine, with the gateway in front of them.

$ toolspeak up qwen2.5-coder-1.5b.gguf
qwen2.5-coder-1.5b needs about 2.39 GB of memory with 32768 tokens of context; 12.1 GB are free
llama-server loads qwen2.5-coder-1.5b (1.12 GB): 2 s
toolspeak listens on http://127.0.0.1:4141

The servers are imported inside the functions that need them, so that `--help` stays fast.
"""

# click is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from toolspeak.cli.options import gateway_options, load_config, tool_options
from toolspeak.cli.terminal import visible
from toolspeak.errors import BadConfig, ServerLost

if TYPE_CHECKING:
    from toolspeak.config import Options
    from toolspeak.config.shape import Config, Up
    from toolspeak.local.memory import MemoryNeed
    from toolspeak.local.pool import PooledModel
    from toolspeak.local.program import ModelFile
    from toolspeak.local.supervisor import Supervisor

_STEP: Final = 0.5
_PRESET: Final = "llamacpp"
_IDLE: Final = 600.0
"""Seconds after which one of several models is unloaded."""
_FURTHER: Final = "toolspeak.further"
_LEAST_CONTEXT: Final = 4096
"""Tokens. A smaller context is not proposed: the prompts of agents do not fit."""
_MOST_LISTED: Final = 40


class _UpCommand(click.Command):
    """Keeps the arguments after `--` apart, which click would add to the models."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments before `--`."""
        mark = args.index("--") if "--" in args else len(args)
        ctx.meta[_FURTHER] = tuple(args[mark + 1 :])
        return super().parse_args(ctx, args[:mark])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the parts of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENT...]"]


@click.command(cls=_UpCommand)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@tool_options
@click.option("--context", type=click.IntRange(256), default=32_768, show_default=True, help="Context size in tokens.")
@click.option("--threads", type=click.IntRange(0), default=0, help="CPU threads.  [default: chosen by llama-server]")
@click.option("--llama-server", "binary", default="", metavar="PATH", help="The llama-server program to run.")
@click.option("--loaded", type=click.IntRange(1), help="Number of models that are loaded at one time.  [default: 1]")
@click.option(
    "--idle",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Unload a model after this time without a request; 0 means never.  [default: 600 with several models]",
)
@click.option("--force", is_flag=True, help="Load a model even if it seems to need more memory than is free.")
@gateway_options
@click.pass_context
def up(  # noqa: PLR0913 - one for each option
    ctx: click.Context,
    /,
    *,
    models: tuple[str, ...],
    context: int,
    threads: int,
    binary: str,
    loaded: int | None,
    idle: float | None,
    force: bool,
    file: Path | None,
    quiet: bool,
    **options: str | int | None,
) -> None:
    r"""Run models on this machine, with the gateway in front of them.

    MODEL is a GGUF file, the name of a model that Ollama or LM Studio has stored on this machine, or
    hf:ORG/REPO[:QUANT], which is downloaded first. Without MODEL, the command runs the models of [up.models] in the
    configuration; if there are none, it lists the models that it finds on this machine.

    With several models, each is loaded when a request needs it, at most --loaded at one time. llama-server of llama.cpp
    runs them: the program that --llama-server names, else the one on the PATH, else the one of `pip install
    'toolspeak[llama]'`. If it crashes or hangs, toolspeak restarts it, and requests wait. It stops when toolspeak
    stops. Arguments after -- are passed to llama-server.

    \b
    Examples:
      toolspeak up
      toolspeak up qwen2.5-coder-1.5b.gguf
      toolspeak up qwen2.5-coder:7b
      toolspeak up hf:Qwen/Qwen2.5-Coder-7B-Instruct-GGUF:Q4_K_M
      toolspeak up small.gguf large.gguf --idle 300
      toolspeak up model.gguf --context 16384 --threads 8 --port 8000
      toolspeak up model.gguf --llama-server ~/llama.cpp/llama-server -- --n-gpu-layers 99
    """
    from toolspeak.config import current, load  # noqa: PLC0415

    environ = current()
    said = load(file, environ, _as_options(options)).up
    said = replace(said, loaded=loaded or said.loaded, idle=said.idle if idle is None else idle)
    wanted = [_Wanted(model) for model in models] or [
        _Wanted(each.model, each.name, each.context, each.args) for each in said.models
    ]
    if not wanted:
        _list(environ)
        return
    common = ModelOptions(context, threads, binary, ctx.meta[_FURTHER], force)
    run_models(wanted, common, said, file, options, quiet=quiet)


def _as_options(given: Mapping[str, Any]) -> "Options":
    from toolspeak.config import Options  # noqa: PLC0415

    return Options(**given)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A model as the user names it; with a name of the configuration, it is served under that."""

    model: str
    name: str = ""
    context: int | None = None
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How llama-server runs all models."""

    context: int
    threads: int
    binary: str
    further: tuple[str, ...]
    force: bool


@dataclass(frozen=True, slots=True)
class _Runnable:
    """A model that is on this machine, and how llama-server runs it."""

    file: "ModelFile"
    context: int
    further: tuple[str, ...]

    @property
    def need(self) -> "MemoryNeed":
        from toolspeak.local.memory import memory_need  # noqa: PLC0415

        return memory_need(self.file.header, self.file.size, self.context)


def run_models(  # noqa: PLR0913 - what the command line says
    wanted: Sequence[_Wanted],
    common: ModelOptions,
    up: "Up",
    file: Path | None,
    options: Mapping[str, Any],
    *,
    quiet: bool,
) -> None:
    """Serve until a signal. Raises `ServerLost` if the only model cannot be loaded or kept."""
    import signal  # noqa: PLC0415

    from toolspeak.cli.serve import check_config  # noqa: PLC0415
    from toolspeak.config import current  # noqa: PLC0415
    from toolspeak.local.pool import PooledModel  # noqa: PLC0415
    from toolspeak.local.program import HOST, ServerOptions, find_server_program  # noqa: PLC0415

    import_module("toolspeak.gateway.server")  # before the model is loaded, so that the gateway serves as soon as it is
    environ = current()
    # While a model is fetched or loaded, SIGTERM must unwind the stack, so that files are closed and servers ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    models = _opened(wanted, common, environ)
    program = find_server_program(
        common.binary, environ.get("PATH", ""), [word for model in models for word in model.further]
    )
    ports = _free_ports(options.get("port"), len(models))
    config = load_config(file, {**options, "upstream": f"http://{HOST}:{ports[0]}/v1", "preset": _PRESET})
    check_config(config)
    _check_memory(models, up.loaded, force=common.force)
    pooled = [
        PooledModel(
            model.file.name,
            program.command(model.file, ServerOptions(port, model.context, common.threads, model.further)),
            port,
        )
        for model, port in zip(models, ports, strict=True)
    ]
    if len(models) == 1 and not up.idle:
        _run_one(
            pooled[0],
            f"{program.name} loads {visible(models[0].file.name)} ({models[0].file.bulk})",
            config,
            quiet=quiet,
        )
    else:
        click.echo(f"{program.name} loads each model when a request needs it, {up.loaded} at one time", err=True)
        _run_several(pooled, config, up, quiet=quiet)


# ---------------------------------------------------------------- finding models


def _list(environ: Mapping[str, str]) -> None:
    """Print the models of this machine, and what to type."""
    from toolspeak.local.memory import bytes_text  # noqa: PLC0415
    from toolspeak.local.stores import stored_models  # noqa: PLC0415

    found = stored_models(environ)
    if not found:
        click.echo("No model was found in the stores of Ollama, LM Studio, Hugging Face and toolspeak.")
        click.echo("Fetch one:        toolspeak up hf:Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF")
        click.echo("Or name a file:   toolspeak up model.gguf")
        return
    width = max(len(visible(model.name)) for model in found)
    for model in found[:_MOST_LISTED]:
        click.echo(f"{visible(model.name):<{width}}  {bytes_text(model.size):>8}  {model.store}")
    if len(found) > _MOST_LISTED:
        click.echo(f"and {len(found) - _MOST_LISTED} more")
    click.echo(f"Run one:          toolspeak up {visible(found[0].name)}")
    click.echo("Or fetch one:     toolspeak up hf:ORG/REPO")


def _opened(wanted: Sequence[_Wanted], common: ModelOptions, environ: Mapping[str, str]) -> list[_Runnable]:
    """Return the files of the models, fetched if need be. Raises `BadConfig`, also for two models of one name."""
    from toolspeak.local.models import open_model  # noqa: PLC0415

    progress = _Progress()
    models: dict[str, _Runnable] = {}
    for each in wanted:
        file = open_model(each.model, environ, progress, each.name)
        progress.end()
        if file.name in models:
            raise BadConfig(
                f"{each.model}: another model is called {file.name!r} too. Give each of them its own name: "
                "[up.models.NAME] in toolspeak.toml, see docs/up.md"
            )
        models[file.name] = _Runnable(file, each.context or common.context, (*common.further, *each.further))
    return list(models.values())


class _Progress:
    """Shows how much of a file is fetched or checked: on a terminal in one line, else in a line for each tenth."""

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._shown = ("", -1)

    def __call__(self, activity: str, done: int, total: int) -> None:
        from toolspeak.local.memory import bytes_text  # noqa: PLC0415

        percent = 100 * done // total if total else 100
        step = (activity, percent if self._on_terminal else percent // 10 * 10)
        if step == self._shown:
            return
        if self._on_terminal and self._shown[0] not in ("", activity):
            click.echo(err=True)
        self._shown = step
        text = f"{visible(activity)}: {step[1]} % of {bytes_text(total)}"
        click.echo(f"\r{text}" if self._on_terminal else text, err=True, nl=not self._on_terminal)

    def end(self) -> None:
        """Leave the line."""
        if self._on_terminal and self._shown[0]:
            click.echo(err=True)
        self._shown = ("", -1)


# ---------------------------------------------------------------- memory


def _check_memory(models: Sequence[_Runnable], loaded: int, *, force: bool) -> None:
    """Print what each model needs. Raises `BadConfig` if those that are loaded at one time do not fit."""
    from toolspeak.local.memory import bytes_text, free_memory, has_gpu  # noqa: PLC0415

    free = free_memory()
    for each in models:
        there = f"; {bytes_text(free)} are free" if free is not None else ""
        click.echo(
            f"{visible(each.file.name)} needs about {bytes_text(each.need.total)} of memory "
            f"with {each.context} tokens of context{there}",
            err=True,
        )
    largest = sorted(models, key=lambda each: -each.need.total)[:loaded]
    need = sum(each.need.total for each in largest)
    if free is None or need <= free:
        return
    message = (
        f"{' and '.join(each.file.name for each in largest)}: about {bytes_text(need)} of memory are needed, "
        f"and {bytes_text(free)} are free. {_way_out(largest, free)}"
    )
    if force or any(has_gpu(each.further) for each in largest):
        click.echo(f"toolspeak: warning: {visible(message)}", err=True)
    else:
        raise BadConfig(f"{message} --force loads it anyway.")


def _way_out(models: Sequence[_Runnable], free: int) -> str:
    if len(models) > 1:
        return f"Pass --loaded {len(models) - 1}, a smaller --context, or smaller models."
    if (fits := models[0].need.largest_context(free)) >= _LEAST_CONTEXT:
        return f"--context {fits} would fit."
    return "Take a smaller quantisation of it (such as Q4_K_M), or a smaller model."


# ---------------------------------------------------------------- running one


def _run_one(model: "PooledModel", activity: str, config: "Config", *, quiet: bool) -> None:
    from toolspeak.local.supervisor import Supervisor  # noqa: PLC0415

    with Supervisor(model.command, model.port, _end_gateway) as keeper:
        _wait(keeper, activity)
        _serve(keeper, config, quiet=quiet)


def _serve(keeper: "Supervisor", config: "Config", *, quiet: bool) -> None:
    from toolspeak.cli.serve import run_gateway  # noqa: PLC0415
    from toolspeak.local.supervisor import RestartAwareTransport, ServerState  # noqa: PLC0415
    from toolspeak.runtime.http_transport import HttpTransport  # noqa: PLC0415

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


# ---------------------------------------------------------------- running several


def _run_several(models: "Sequence[PooledModel]", config: "Config", up: "Up", *, quiet: bool) -> None:
    from toolspeak.cli.serve import run_gateway  # noqa: PLC0415
    from toolspeak.local.pool import ModelPool, SwitchingTransport  # noqa: PLC0415
    from toolspeak.runtime.http_transport import HttpTransport  # noqa: PLC0415

    with ModelPool(models, up.loaded, _IDLE if up.idle is None else up.idle) as pool:
        transport = SwitchingTransport(HttpTransport(), pool)
        run_gateway(_with_models(config, models), quiet=quiet, transport=transport)


def _with_models(config: "Config", models: "Sequence[PooledModel]") -> "Config":
    """Return the configuration with an upstream for each model, like the one that it has.

    Each model is an alias too. Aliases are looked up first: otherwise `qwen:7b` would be the model `7b` of the upstream
    `qwen`, if there is one.
    """
    from toolspeak.config.shape import Model  # noqa: PLC0415
    from toolspeak.local.program import HOST  # noqa: PLC0415

    [like] = config.upstreams
    upstreams = tuple(replace(like, name=each.name, url=f"http://{HOST}:{each.port}/v1") for each in models)
    aliases = tuple(Model(each.name, each.name, settings=like.settings) for each in models)
    return replace(config, upstreams=upstreams, models=aliases)


def _free_ports(gateway: object, count: int) -> list[int]:
    """Return the ports after the gateway's, or any that are free where those are taken.

    A stable port lets toolspeak find the profile again that the doctor has saved for this address.
    """
    import socket  # noqa: PLC0415

    from toolspeak.config.shape import PORT  # noqa: PLC0415
    from toolspeak.local.program import HOST  # noqa: PLC0415

    first = (gateway if isinstance(gateway, int) else PORT) + 1
    found: list[int] = []
    probes: list[socket.socket] = []
    try:
        for wanted in range(first, first + count):
            for port in (wanted, 0) if first > 1 else (0,):
                probes.append(probe := socket.socket())
                try:
                    probe.bind((HOST, port))  # bound until all are found, so that none is found twice
                except (OSError, OverflowError):
                    continue
                found.append(int(probe.getsockname()[1]))
                break
    finally:
        for probe in probes:
            probe.close()
    return found
