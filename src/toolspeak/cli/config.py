"""`toolspeak config`: what can be written in the configuration file."""

import json

import click


@click.group()
def config() -> None:
    r"""Print the JSON Schema of the configuration file.

    \b
    Example:
      toolspeak config schema > toolspeak.schema.json
    """


@config.command()
def schema() -> None:
    r"""Print the JSON Schema of toolspeak.toml, by which editors complete and check the file.

    \b
    Example:
      toolspeak config schema > toolspeak.schema.json
    """
    from toolspeak.config.schema import config_schema  # noqa: PLC0415 # `--help` must not load it

    click.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))
