r"""`toolspeak chat`: ask a model once, or hold a conversation, and see its tool calls.

$ toolspeak chat --tools tools.json "Is it cold in Oslo?"
▸ get_weather(city="Oslo")
native checked · 1 request · 142 tokens in, 18 out · 0.7 s
"""

from pathlib import Path
from typing import IO

import click

from toolspeak.cli.options import TOOLS_HELP, config_option, json_option, load_config, read_prompt, upstream_options
from toolspeak.cli.terminal import Paint, color_option


@click.command()
@click.argument("prompt", required=False)
@upstream_options
@config_option
@click.option("--system", metavar="TEXT", help="System prompt.")
@click.option("--tools", type=click.File("rb"), metavar="FILE", help=TOOLS_HELP)
@click.option("--expand", is_flag=True, help="Show each call with its full arguments, its repairs and its raw text.")
@json_option
@color_option
def chat(  # noqa: PLR0913 - one for each option
    *,
    prompt: str | None,
    file: Path | None,
    system: str | None,
    tools: IO[bytes] | None,
    expand: bool,
    as_json: bool,
    **options: str | bool | None,
) -> None:
    r"""Talk to a model, and see its tool calls.

    With a PROMPT (or with - or nothing, if text is piped in) the command asks once and exits. Without one it starts a
    conversation: Ctrl-C stops an answer, Ctrl-D exits.

    Calls are shown, not run. In a conversation you type what the tool returns; an empty line cancels the call. The
    answer goes to standard output; reasoning and the status line go to standard error.

    \b
    Examples:
      toolspeak chat
      toolspeak chat "Why is the sky blue?" --model qwen2.5-coder
      toolspeak chat --tools tools.json --mode force "Is it cold in Oslo?"
      git diff | toolspeak chat --system "Write a commit message."
    """
    asked = read_prompt(prompt)
    if asked is None and as_json:
        raise click.UsageError("--json needs a PROMPT. Pass it as an argument, or pipe it in.")
    # The client is loaded only here, so that `--help` stays fast.
    from toolspeak.cli.chat.conversation import Chat, open_connection  # noqa: PLC0415
    from toolspeak.cli.tool_file import read_tool_file  # noqa: PLC0415

    given = read_tool_file(tools.read(), tools.name) if tools is not None else ()
    with open_connection(load_config(file, options)) as connection:
        talk = Chat(connection, given, system, Paint.here(), expand)
        if asked is None:
            talk.converse()
        elif as_json:
            click.echo(talk.json(asked))
        else:
            talk.once(asked)
