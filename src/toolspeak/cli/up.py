r"""`toolspeak up`: a model of this machine, served, with the gateway before it.

$ toolspeak up qwen2.5-coder-1.5b.gguf
llama-server loads qwen2.5-coder-1.5b (1.12 GB): 2 s
toolspeak listens on http://127.0.0.1:4141
"""

from pathlib import Path

import click

from toolspeak.cli.options import tool_options


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.gguf")
@click.argument("further", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENT...]")
@tool_options
@click.option("--context", type=click.IntRange(256), default=32_768, show_default=True, help="Tokens of context.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads for the model.  [default: the server's]")
@click.option("--llama-server", "binary", default="", metavar="PATH", help="The llama-server to run.")
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=int, metavar="N", help="On which port; 0 takes a free one.  [default: 4141]")
@click.option("--key", metavar="KEY", help="A key that clients must show; better in TOOLSPEAK_KEY.")
@click.option("--probe", metavar="DEPTH", help="How far the model is probed: off, look, tokens or full.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--quiet", is_flag=True, help="Log only what goes wrong.")
def up(  # noqa: PLR0913 # what can be said
    *,
    model: Path,
    further: tuple[str, ...],
    context: int,
    threads: int,
    binary: str,
    file: Path | None,
    quiet: bool,
    **said: str | int | None,
) -> None:
    r"""Run a model of this machine, and put the gateway before it.

    The model is a GGUF file. It is run by llama.cpp: the llama-server that is named, else one on the PATH, else the
    package of `pip install 'toolspeak[llama]'`. If that server dies or hangs it is started again, and requests wait;
    when toolspeak ends, it ends. Arguments after -- go to llama-server.

    \b
    Examples:
      toolspeak up qwen2.5-coder-1.5b.gguf
      toolspeak up model.gguf --context 16384 --threads 8 --port 8000
      toolspeak up model.gguf --llama-server ~/llama.cpp/llama-server -- --n-gpu-layers 99
    """
    # The server is loaded only here: `--help` must not pay for it.
    from toolspeak.cli._upping import Model, run  # noqa: PLC0415

    run(Model(model, context, threads, binary, further), file, said, quiet=quiet)
