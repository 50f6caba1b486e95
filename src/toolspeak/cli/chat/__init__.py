r"""`toolspeak chat`: ask a model once, or hold a conversation, and see its tool calls.

$ toolspeak chat --tools tools.json "Is it cold in Oslo?"
▸ get_weather(city="Oslo")
native checked · 1 request · 142 tokens in, 18 out · 0.7 s

$ toolspeak chat --tools                  a conversation in which the tools run
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from toolspeak.cli.options import config_option, json_option, load_config, read_prompt, upstream_options
from toolspeak.cli.run import current_folder, sandbox_options, spec_fields, tool_names, user_is_there
from toolspeak.cli.terminal import Paint, color_option

if TYPE_CHECKING:  # `--help` must not load it
    from toolspeak.config.shape import Config

_STDIN: Final = "-"
_DEFAULT_TOOLS: Final = "files,shell"
_TOOLS: Final = (
    "Either a JSON file with tool definitions in the format of any vendor: calls are shown, not run. Or names of tools "
    "that run, separated by commas: files, shell, mcp:NAME, module:attribute.  [without a value: files,shell]"
)
_NAME: Final = re.compile(r"\w+|[\w-]+:[\w.-]+")


@click.command()
@click.argument("prompt", required=False)
@upstream_options
@config_option
@click.option("--system", metavar="TEXT", help="System prompt.")
@click.option("--tools", is_flag=False, flag_value=_DEFAULT_TOOLS, metavar="FILE|NAMES", help=_TOOLS)
@sandbox_options
@click.option("--expand", is_flag=True, help="Show each call with its full arguments, its repairs and its raw text.")
@json_option
@color_option
def chat(  # noqa: PLR0913 - one for each option
    *,
    prompt: str | None,
    file: Path | None,
    system: str | None,
    tools: str | None,
    folder: str | None,
    approval: str | None,
    expand: bool,
    as_json: bool,
    **options: str | bool | None,
) -> None:
    r"""Talk to a model, and see its tool calls.

    With a PROMPT (or with - or nothing, if text is piped in), the command asks once and exits. Without a PROMPT, it
    starts a conversation: Ctrl-C stops an answer, Ctrl-D exits.

    With --tools FILE, calls are shown, not run. In a conversation, you type what the tool returns; an empty line
    cancels the call. With --tools NAMES, the tools run as in `toolspeak run`: in a sandbox, in one folder, and with
    your approval. Each round of calls is one numbered line; /show N expands it.

    The answer goes to standard output; reasoning and the status line go to standard error.

    \b
    Examples:
      toolspeak chat
      toolspeak chat --tools --folder ./site
      toolspeak chat "Why is the sky blue?" --model qwen2.5-coder
      toolspeak chat --tools tools.json --mode force "Is it cold in Oslo?"
      git diff | toolspeak chat --system "Write a commit message."
    """
    asked = read_prompt(prompt)
    if asked is None and as_json:
        raise click.UsageError("--json needs a PROMPT. Pass it as an argument, or pipe it in.")
    if tools is not None and not _is_file(tools):
        names, place = _runnable(tools), folder or current_folder()
        fields = spec_fields(options, approval, task=asked or "", tools=names, folder=place, system=system or "")
        _work(load_config(file, options), fields, expand=expand, as_json=as_json)
        return
    if folder or approval:
        raise click.UsageError("--folder and --approval need tools that run. Pass --tools files,shell, for example.")
    # The client is loaded only here, so that `--help` stays fast.
    from toolspeak.cli.chat.conversation import Chat, open_connection  # noqa: PLC0415
    from toolspeak.cli.tool_file import read_tool_file  # noqa: PLC0415

    given = read_tool_file(_content(tools), tools) if tools is not None else ()
    with open_connection(load_config(file, options)) as connection:
        talk = Chat(connection, given, system, Paint.here(), expand)
        if asked is None:
            talk.converse()
        elif as_json:
            click.echo(talk.json(asked))
        else:
            talk.once(asked)


def _is_file(tools: str) -> bool:
    return tools == _STDIN or Path(tools).is_file()


def _content(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == _STDIN else Path(file).read_bytes()
    except OSError as error:
        raise click.UsageError(f"{file!r} cannot be read: {error.strerror}.") from None


def _runnable(tools: str) -> tuple[str, ...]:
    """Return the names of tools. A value that is no name is likely a file that is not there, or the prompt."""
    names = tool_names(tools)
    if not names or not all(map(_NAME.fullmatch, names)):
        raise click.UsageError(
            f"--tools {tools!r} is neither a file that exists nor names of tools, such as {_DEFAULT_TOOLS}. "
            f"With a PROMPT, write the names: --tools {_DEFAULT_TOOLS}."
        )
    return names


def _work(config: "Config", fields: dict[str, Any], *, expand: bool, as_json: bool) -> None:
    """Let the tools run: for one prompt, as `toolspeak run` does, or in a conversation."""
    import asyncio  # noqa: PLC0415

    from toolspeak.agent.runs.runs import Spec  # noqa: PLC0415
    from toolspeak.cli.chat.agent_session import AgentSession  # noqa: PLC0415
    from toolspeak.cli.run.session import Display, start_run  # noqa: PLC0415

    display = Display(Paint.here(sys.stderr), expand=expand, as_json=as_json, asks=user_is_there())
    if fields["task"]:
        click.get_current_context().exit(asyncio.run(start_run(config, Spec(**fields), display)))
    AgentSession(config, Spec(**fields), display).converse()
