r"""`toolspeak chat`: ask a model, with tools or without.

$ toolspeak chat --tools tools.json "Is it cold in Oslo?"
▸ get_weather(city="Oslo")
native checked · 1 request · 142 tokens in, 18 out · 0.7 s
"""

from pathlib import Path
from typing import IO, Final

import click

from toolspeak.cli.options import configured, read_prompt, upstream_options
from toolspeak.cli.terminal import Paint, color_option

_TOOLS: Final = (
    "The tools, as JSON: an array of them or a request that has `tools`, in any vendor's form, or an array of names."
)


@click.command()
@click.argument("prompt", required=False)
@upstream_options
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--system", metavar="TEXT", help="What the model is told before all else.")
@click.option("--tools", type=click.File("rb"), metavar="FILE", help=_TOOLS)
@click.option("--expand", is_flag=True, help="Show calls with all arguments, fixes, and the text they were read from.")
@click.option("--json", "as_json", is_flag=True, help="Say the answer to a prompt in one JSON object.")
@color_option
def chat(  # noqa: PLR0913 - one for each option
    *,
    prompt: str | None,
    file: Path | None,
    system: str | None,
    tools: IO[bytes] | None,
    expand: bool,
    as_json: bool,
    **said: str | bool | None,
) -> None:
    r"""Talk with a model, and see its tool calls.

    With a PROMPT (or with - or nothing, when text is piped in) it asks once and ends. Without one it is a
    conversation: Ctrl-C stops an answer, Ctrl-D ends.

    Calls are shown, not run. In a conversation you say what the tool returns; an empty line cancels the call. The
    answer goes to standard output; reasoning, and how the answer was got, to standard error.

    \b
    Examples:
      toolspeak chat
      toolspeak chat "Why is the sky blue?" --model qwen2.5-coder
      toolspeak chat --tools tools.json --mode force "Is it cold in Oslo?"
      git diff | toolspeak chat --system "Write a commit message."
    """
    asked = read_prompt(prompt)
    if asked is None and as_json:
        raise click.UsageError("--json needs a PROMPT.")
    # The client is loaded only here: `--help` must not pay for it.
    from toolspeak.cli._chatting import Chat  # noqa: PLC0415
    from toolspeak.cli._line import connected  # noqa: PLC0415
    from toolspeak.cli.tool_file import tools_in  # noqa: PLC0415

    given = tools_in(tools.read(), tools.name) if tools is not None else ()
    with connected(configured(file, said)) as line:
        talk = Chat(line, given, system, Paint.here(), expand)
        if asked is None:
            talk.converse()
        elif as_json:
            click.echo(talk.json(asked))
        else:
            talk.once(asked)
