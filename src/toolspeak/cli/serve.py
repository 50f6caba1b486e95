r"""`toolspeak serve`: the gateway.

$ toolspeak serve --upstream http://127.0.0.1:8080/v1
toolspeak listens on http://127.0.0.1:4141
"""

from pathlib import Path

import click

from toolspeak.cli.options import configured, upstream_options


@click.command()
@upstream_options
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="N", help="On which port; 0 takes a free one.  [default: 4141]")
@click.option("--key", metavar="KEY", help="A key that clients must show; better in TOOLSPEAK_KEY.")
@click.option("--probe", metavar="DEPTH", help="How far models are probed: off, look, tokens or full.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--quiet", is_flag=True, help="Log only what goes wrong.")
def serve(*, file: Path | None, quiet: bool, **said: str | int | None) -> None:
    r"""Put the gateway before a model: five protocols on one port.

    Agents and SDKs speak OpenAI Chat, OpenAI Responses, Anthropic, Gemini or Ollama with it; the model behind it needs
    no tool calling. Without --upstream and without a configuration, a server on this machine is looked for: Ollama,
    llama.cpp, LM Studio, vLLM, SGLang.

    \b
    Examples:
      toolspeak serve
      toolspeak serve --upstream http://127.0.0.1:8080/v1
      toolspeak serve --preset groq --model llama-3.3-70b-versatile
      ANTHROPIC_BASE_URL=http://127.0.0.1:4141 ANTHROPIC_AUTH_TOKEN=x claude
    """
    # The server is loaded only here: `--help` must not pay for it.
    from toolspeak.cli._serving import run  # noqa: PLC0415

    run(configured(file, said), quiet=quiet)
