"""`toolspeak config`: checks the configuration, and prints what can be written in its file."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.terminal import visible

if TYPE_CHECKING:
    from toolspeak.config.shape import Config

SILENT: Final = 1
"""Exit status if an upstream does not answer."""


@click.group()
def config() -> None:
    r"""Check the configuration, or print the JSON Schema of its file.

    \b
    Examples:
      toolspeak config check
      toolspeak config schema > toolspeak.schema.json
    """


@config.command()
def schema() -> None:
    r"""Print the JSON Schema of toolspeak.toml, which lets editors complete and check it.

    \b
    Example:
      toolspeak config schema > toolspeak.schema.json
    """
    from toolspeak.config.schema import config_schema  # noqa: PLC0415 # `--help` must not load it

    click.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))


@config.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--upstreams", "asks", is_flag=True, help="Also ask each upstream for its models.")
def check_file(*, file: Path | None, asks: bool) -> int:
    r"""Check a configuration file and the environment, and show what a gateway would use.

    Without FILE, the command checks the file that `toolspeak serve` would read. It prints each mistake on one line,
    with the file and the line number, and exits with status 2. With --upstreams, it exits with status 1 if an upstream
    does not answer.

    \b
    Examples:
      toolspeak config check
      toolspeak config check toolspeak.toml --upstreams
    """
    from toolspeak.config import check_public, current, doubts, load  # noqa: PLC0415
    from toolspeak.config.environment import config_file, used_variables  # noqa: PLC0415

    environ = current()
    found = load(file, environ)
    check_public(found)
    used = config_file(file, environ)
    for name, value in _summary(found, used, used_variables(environ)):
        click.echo(f"{name:<12} {visible(value)}")
    for doubt in (*doubts(found), *_unknown_variables(environ)):
        click.echo(f"toolspeak: warning: {visible(doubt)}", err=True)
    return _asked(found) if asks else 0


def _summary(config: "Config", file: Path | None, variables: list[str]) -> Iterator[tuple[str, str]]:
    """Yield what a gateway would use, without any secret."""
    from toolspeak.config.shape import KeyPlace  # noqa: PLC0415

    yield "file", str(file) if file is not None else "none"
    yield "environment", ", ".join(variables) or "none"
    yield "address", f"{config.server.host}:{config.server.port}"
    if (tls := config.server.tls).is_on:
        expires = tls.expires()
        until = f", expires {expires:%Y-%m-%d}" if expires is not None else ""
        asks = "; clients need one too" if tls.client_ca else ""
        yield "certificate", f"{tls.certificate}{until}{asks}"
    for upstream in config.upstreams:
        key = "with a key" if upstream.key else "without a key"
        urls = "  ".join(upstream.urls)
        yield "upstream", f"{upstream.name}  {urls}  ({upstream.wire}, {key})"
    if not config.upstreams:
        yield "upstream", "none: toolspeak serve looks for a model server on this machine"
    for model in config.models:
        yield "model", f"{model.name} = {model.upstream}:{model.model or model.name}"
    yield "default", config.default or "the first model of the first upstream"
    yield "unknown", f"models that no upstream has: {config.unknown_models}"
    tenants = list(dict.fromkeys(key.tenant for key in config.keys))
    stored = (
        [] if config.access.store is KeyPlace.NONE else [f"those of the {config.access.store} (toolspeak keys list)"]
    )
    tokens = [f"tokens of {config.access.jwt.issuer}"] if config.access.jwt.is_configured else []
    yield "keys", ", ".join((*tenants, *stored, *tokens)) or "none: every client that reaches the address is served"


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return a warning for each variable that looks like one of ours and has no effect."""
    from toolspeak.config.environment import RENAMED, known_variables  # noqa: PLC0415
    from toolspeak.config.options import PREFIX  # noqa: PLC0415
    from toolspeak.config.problems import did_you_mean  # noqa: PLC0415

    known = known_variables()
    odd = [name for name in environ if name.startswith(PREFIX) and name not in known and name not in RENAMED]
    return [f"{name} has no effect: there is no such variable{did_you_mean(name, known)}" for name in sorted(odd)]


def _asked(config: "Config") -> int:
    """Print which upstreams answer; return the exit status."""
    import asyncio  # noqa: PLC0415

    from toolspeak.config.assemble import assemble, outbound_of  # noqa: PLC0415
    from toolspeak.gateway.readiness import start_hint  # noqa: PLC0415
    from toolspeak.runtime.directory import UpstreamState  # noqa: PLC0415
    from toolspeak.runtime.http_transport import HttpTransport  # noqa: PLC0415

    async def look() -> list[UpstreamState]:
        transport = HttpTransport(outbound_of(config))
        try:
            return await assemble(config, transport).look()
        finally:
            await transport.close()

    upstreams = {each.name: each for each in config.upstreams}
    states = asyncio.run(look())
    for state in states:
        if state.failure is None:
            said = "answers"
        elif state.answers:
            said = f"answers, but does not list its models: {state.failure.message}"
        else:
            said = f"does not answer: {state.failure.message}. {start_hint(upstreams[state.name])}"
        click.echo(f"{'asked':<12} {visible(f'{state.name} {said}')}")
    return 0 if all(state.answers for state in states) else SILENT
