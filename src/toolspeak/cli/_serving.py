"""Run the gateway, and say in a few lines how to reach it."""

import logging

import click

from toolspeak.config import check_public
from toolspeak.config.shape import Config
from toolspeak.gateway.build import build
from toolspeak.gateway.server import serve

_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def run(config: Config, *, quiet: bool) -> None:
    """Serve until a signal."""
    check_public(config)
    logging.basicConfig(level=logging.WARNING if quiet else logging.INFO, format=_FORMAT)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    serve(build(config), config, lambda url: _welcome(url, config, quiet=quiet))


def _welcome(url: str, config: Config, *, quiet: bool) -> None:
    click.echo(f"toolspeak listens on {url}", err=True)
    if quiet:
        return
    for upstream in config.upstreams:
        click.echo(f"  upstream  {upstream.name}  {upstream.url}  ({upstream.wire})", err=True)
    click.echo(f"  OpenAI    OPENAI_BASE_URL={url}/v1", err=True)
    click.echo(f"  Anthropic ANTHROPIC_BASE_URL={url}", err=True)
    click.echo(f"  Gemini    GOOGLE_GEMINI_BASE_URL={url}", err=True)
    click.echo(f"  Ollama    OLLAMA_HOST={url}", err=True)
