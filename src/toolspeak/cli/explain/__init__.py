"""`toolspeak explain`: show how toolspeak reads the output of a model, part by part.

  [text] | On it.
[call 1] | <tool_call>{"name": "now", "arguments": {}}
[debris] | </tool_call>
"""

from typing import IO, Final

import click

from toolspeak.cli.options import TOOLS_HELP, json_option
from toolspeak.cli.terminal import Paint, color_option
from toolspeak.errors import BadRequest

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of one text."""
BUG: Final = 1
"""Exit status if a reader broke its promise: lost text, or another result in chunks."""

_CHUNK: Final = "Also read the text N characters at a time, as from a stream, and check that the result is the same."


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--dialect", default="any", show_default=True, metavar="NAME", help="Format in which the model calls.")
@click.option("--tools", type=click.File("rb"), metavar="FILE", help=TOOLS_HELP)
@click.option("--tool", "names", multiple=True, metavar="NAME", help="Name of a tool; can be repeated.")
@click.option("--chunk", type=click.IntRange(min=1), metavar="N", help=_CHUNK)
@json_option
@color_option
@click.pass_context
def explain(  # noqa: PLR0913 - one for each option
    ctx: click.Context,
    *,
    file: IO[bytes],
    dialect: str,
    tools: IO[bytes] | None,
    names: tuple[str, ...],
    chunk: int | None,
    as_json: bool,
) -> None:
    r"""Show how toolspeak reads a model's output, part by part.

    FILE is the raw output of a model; without it (or with -) the text is read from standard input. The command prints
    the text with a label for each part, then each call with its arguments and repairs, then each rejected call with
    the reason and what would be accepted.

    Without --tools and --tool, the names of the tools are guessed from the text and arguments are not checked.

    \b
    Examples:
      toolspeak explain answer.txt
      pbpaste | toolspeak explain --dialect react --tool search --tool read_file
      toolspeak explain answer.txt --tools request.json --json
    """
    # The readers are loaded only here, so that `--help` stays fast.
    from toolspeak.cli.explain.explanation import as_json_text, as_lines, explain_text  # noqa: PLC0415
    from toolspeak.cli.tool_file import read_tool_file, tools_by_name  # noqa: PLC0415

    given = read_tool_file(tools.read(), tools.name) if tools is not None else ()
    found = explain_text(_text(file), (*given, *tools_by_name(names)), dialect, chunk)
    click.echo(as_json_text(found) if as_json else "\n".join(as_lines(found, Paint.here())))
    ctx.exit(0 if found.sound else BUG)


def _text(file: IO[bytes]) -> str:
    """Read the text. Bytes that are not UTF-8 become surrogates, so that none is lost."""
    if file.isatty():
        click.echo("Paste the output of the model, then press Ctrl-D on an empty line.", err=True)
    body = file.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise BadRequest(f"the text is longer than {LARGEST} bytes, which is the limit; explain a part of it")
    return body.decode("utf-8", "surrogateescape")
