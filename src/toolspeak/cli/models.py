r"""`toolspeak models`: which models can be asked for, and what becomes of their tools.

$ toolspeak models
  model               tools    what toolspeak does

ollama  http://127.0.0.1:11434
* qwen2.5-coder:0.5b  unknown  native, else emulated (hermes)
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.options import configured, upstream_options
from toolspeak.cli.terminal import Paint, color_option

if TYPE_CHECKING:  # the help must not pay for the configuration
    from toolspeak.cli._catalogue import Shelf

NONE_ANSWERS: Final = 1


@click.command()
@upstream_options
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--why", is_flag=True, help="Say how it is known, too.")
@click.option("--json", "as_json", is_flag=True, help="Say it all in one JSON object.")
@color_option
def models(*, file: Path | None, why: bool, as_json: bool, **said: str | bool | None) -> None:
    r"""List the models that can be asked for, and what becomes of tools.

    For each model: the name to ask for, what is known of its upstream's tools (native, none, leaks or unknown), and
    what toolspeak does with a request that has tools. The default is marked with *. An upstream that does not answer
    is no end: the status is 1 only if none answers.

    \b
    Examples:
      toolspeak models
      toolspeak models --preset groq --why
      toolspeak models --upstream http://127.0.0.1:8080/v1 --mode force --json
    """
    # The upstreams are loaded only here: `--help` must not pay for them.
    import asyncio  # noqa: PLC0415

    from toolspeak.cli._catalogue import catalogue  # noqa: PLC0415

    shelves = asyncio.run(catalogue(configured(file, said)))
    _echo(shelves, why=why, as_json=as_json)
    click.get_current_context().exit(0 if any(shelf.answered for shelf in shelves) else NONE_ANSWERS)


def _echo(shelves: "tuple[Shelf, ...]", *, why: bool, as_json: bool) -> None:
    from toolspeak.cli._catalogue_text import Table, as_object  # noqa: PLC0415
    from toolspeak.cli.json_output import safe_json  # noqa: PLC0415

    if as_json:
        click.echo(safe_json(as_object(shelves)))
        return
    table = Table(shelves, Paint.here(), why=why)
    for line in table.head():
        click.echo(line)
    for number, shelf in enumerate(shelves):
        click.echo("\n" * bool(number) + "\n".join(table.shelf(shelf)))
        for line in table.note(shelf):
            click.echo(line, err=True)
    for line in table.foot():
        click.echo(line)
