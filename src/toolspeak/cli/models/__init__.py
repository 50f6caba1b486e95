r"""`toolspeak models`: list the models, and how toolspeak handles their tools.

$ toolspeak models
  model               tools    what toolspeak does

ollama  http://127.0.0.1:11434
* qwen2.5-coder:0.5b  unknown  native, else emulated (hermes)
"""

from pathlib import Path
from typing import Final

import click

from toolspeak.cli.options import config_option, json_option, load_config, upstream_options
from toolspeak.cli.terminal import Paint, color_option

NONE_ANSWERS: Final = 1


@click.command()
@upstream_options
@config_option
@click.option("--why", is_flag=True, help="Also show where each fact comes from.")
@json_option
@color_option
def models(*, file: Path | None, why: bool, as_json: bool, **options: str | bool | None) -> None:
    r"""List the models, and how toolspeak handles their tools.

    For each model: its name, whether its upstream supports tools (native, none, leaks or unknown), and what toolspeak
    does with a request that has tools. The default model is marked with *. The exit status is 1 if no upstream
    answers.

    \b
    Examples:
      toolspeak models
      toolspeak models --preset groq --why
      toolspeak models --upstream http://127.0.0.1:8080/v1 --mode force --json
    """
    # The upstreams are loaded only here, so that `--help` stays fast.
    import asyncio  # noqa: PLC0415

    from toolspeak.cli.models.catalogue import CatalogueTable, catalogue, catalogue_object  # noqa: PLC0415
    from toolspeak.cli.output import safe_json  # noqa: PLC0415

    found = asyncio.run(catalogue(load_config(file, options)))
    if as_json:
        click.echo(safe_json(catalogue_object(found)))
    else:
        CatalogueTable(found, Paint.here(), why=why).echo()
    click.get_current_context().exit(0 if any(each.answered for each in found) else NONE_ANSWERS)
