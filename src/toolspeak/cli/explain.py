"""`toolspeak explain`: paste what a model wrote, see what every part of it is taken for.

  [text] | On it.
[call 1] | <tool_call>{"name": "now", "arguments": {}}
[debris] | </tool_call>
"""

from typing import IO, Final

import click

from toolspeak.cli.terminal import Paint, color_option
from toolspeak.errors import BadRequest

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of one text."""
BUG: Final = 1

_TOOLS: Final = (
    "The tools, as JSON: an array of them or a request that has `tools`, in any vendor's form, or an array of names."
)
_CHUNK: Final = "Read N characters at a time, as from a stream, and check that the result is the same."


@click.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--dialect", default="any", show_default=True, metavar="NAME", help="How the model writes calls.")
@click.option("--tools", type=click.File("rb"), metavar="FILE", help=_TOOLS)
@click.option("--tool", "names", multiple=True, metavar="NAME", help="A tool that takes anything; may be repeated.")
@click.option("--chunk", type=click.IntRange(min=1), metavar="N", help=_CHUNK)
@click.option("--json", "as_json", is_flag=True, help="Say it all in one JSON object.")
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
    r"""Show what every part of a model's output is taken for.

    FILE is what the model wrote, raw; without it (or with -) it is read from standard input. You see the text again,
    labelled; each call with its arguments and what was fixed; why an attempt is no call, and what would be accepted.

    Without --tools and --tool the names of the tools are guessed from the text, and arguments cannot be checked.

    \b
    Examples:
      toolspeak explain answer.txt
      pbpaste | toolspeak explain --dialect react --tool search --tool read_file
      toolspeak explain answer.txt --tools request.json --json
    """
    # The readers are loaded only here: `--help` must not pay for them.
    from toolspeak.cli._explanation import explained  # noqa: PLC0415
    from toolspeak.cli._explanation_json import json_text  # noqa: PLC0415
    from toolspeak.cli._explanation_text import as_lines  # noqa: PLC0415
    from toolspeak.cli.tool_file import tools_in, tools_named  # noqa: PLC0415

    given = tools_in(tools.read(), tools.name) if tools is not None else ()
    found = explained(_text(file), (*given, *tools_named(names)), dialect, chunk)
    click.echo(json_text(found) if as_json else "\n".join(as_lines(found, Paint.here())))
    ctx.exit(0 if found.sound else BUG)


def _text(file: IO[bytes]) -> str:
    """Read the text; bytes that are no UTF-8 are kept apart, so that none is lost."""
    if file.isatty():
        click.echo("Paste what the model wrote; end with Ctrl-D on a line of its own.", err=True)
    body = file.read(LARGEST + 1)
    if len(body) > LARGEST:
        raise BadRequest(f"the text is longer than {LARGEST} bytes, which is the most that is explained at once")
    return body.decode("utf-8", "surrogateescape")
