r"""`toolspeak run`: let a model work on a task with tools until it is done.

$ toolspeak run "Which Python files have no tests?"
✓ list_files(path=".", depth=3)  0.0 s
✓ shell(command="grep -rL test src")  0.1 s
Two files have none: a.py and b.py.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from toolspeak.cli.options import config_option, json_option, load_config, read_prompt, upstream_options
from toolspeak.cli.terminal import Paint, color_option
from toolspeak.engine.settings import OPTIONS

F = TypeVar("F", bound=Callable[..., Any])

MODES: Final = ("read-only", "ask", "auto", "off")
ROUNDS: Final = 50
_TOOLS: Final = "Tools, separated by commas: files, shell, final_output, mcp:NAME, module:attribute."
_APPROVAL: Final = (
    "Which calls can run: read-only denies calls that change something, ask asks you before them, auto asks only "
    "before calls that reach outside the folder, off never asks.  [default: ask; read-only without a terminal]"
)


def sandbox_options(command: F) -> F:
    """Add the options that say where the tools work and which calls can run: `--folder` and `--approval`."""
    command = click.option("--approval", type=click.Choice(MODES), help=_APPROVAL)(command)
    return click.option(
        "--folder",
        type=click.Path(exists=True, file_okay=False, resolve_path=True),
        metavar="PATH",
        help="The only folder that the tools can change.  [default: the current folder]",
    )(command)


@click.command()
@click.argument("task", required=False)
@upstream_options
@config_option
@sandbox_options
@click.option("--tools", metavar="NAMES", default="files,shell,final_output", show_default=True, help=_TOOLS)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=ROUNDS,
    show_default=True,
    help="Limit of rounds of tool calls; after them, the model must summarize its work.",
)
@click.option(
    "--max-tokens", type=click.IntRange(1), metavar="N", help="Limit of tokens that the model writes per turn."
)
@click.option("--temperature", type=click.FloatRange(0), metavar="X", help="Sampling temperature.")
@click.option("--system", metavar="TEXT", help="System prompt, added after the agent prompt.")
@click.option("--no-agent-prompt", is_flag=True, help="Leave out the prompt that tells the model how an agent works.")
@click.option(
    "--continue",
    "continues",
    metavar="ID",
    help="Continue the conversation of an ended run, in its folder, with its model, tools and limits; the options that "
    "you pass replace those of the run.",
)
@click.option("--expand", is_flag=True, help="Show each call with its full arguments and its result.")
@json_option
@click.option("--events", "as_events", is_flag=True, help="Print each event as one line of JSON, as it happens.")
@color_option
def run(  # noqa: PLR0913 - one for each option
    *,
    task: str | None,
    file: Path | None,
    folder: str | None,
    tools: str,
    approval: str | None,
    rounds: int,
    max_tokens: int | None,
    temperature: float | None,
    system: str | None,
    no_agent_prompt: bool,
    continues: str | None,
    expand: bool,
    as_json: bool,
    as_events: bool,
    **options: str | bool | None,
) -> None:
    r"""Let a model work on a task with tools until it is done.

    The model works in one folder on the TASK (with - or nothing, on the text that is piped in). Progress goes to
    standard error, one line for each round of tool calls; the final text goes to standard output. Ctrl-C stops the run
    and keeps its rounds; a second Ctrl-C exits at once.

    The exit status is 0 if the task is done, 1 if the run failed or used up its rounds, 130 if it was cancelled.

    \b
    Examples:
      toolspeak run "Which tests are slow, and why?"
      toolspeak run --approval auto --folder ./site "Make the footer sticky."
      toolspeak run --tools files --json "Summarise README.md" < /dev/null
      git log -5 | toolspeak run - --approval read-only
      toolspeak run --continue 1a2b "Now do the same for the header."
    """
    asked = read_prompt(task)
    if asked is None:
        raise click.UsageError("There is no TASK. Pass it as an argument, or pipe it in.")
    if as_json and as_events:
        raise click.UsageError("--json and --events cannot be used together. Choose one.")
    # The engine is loaded only here, so that `--help` stays fast.
    import asyncio  # noqa: PLC0415

    from toolspeak.agent.runs.runs import Spec  # noqa: PLC0415
    from toolspeak.cli.run.session import Display, continue_run, start_run  # noqa: PLC0415

    sampling = {"max_tokens": max_tokens, "temperature": temperature}
    fields = spec_fields(
        options,
        task=asked,
        folder=folder or ("" if continues else current_folder()),
        tools=tool_names(tools),
        approval=approval,
        rounds=rounds,
        system=system or "",
        sampling={name: value for name, value in sampling.items() if value is not None},
        agent_prompt=not no_agent_prompt,
    )
    paint = Paint.here(sys.stderr)
    display = Display(paint, expand=expand, as_json=as_json, as_events=as_events, asks=user_is_there())
    config, context = load_config(file, options), click.get_current_context()
    if continues is not None:
        context.exit(asyncio.run(continue_run(config, continues, _typed(context, fields), display)))
    context.exit(asyncio.run(start_run(config, Spec(**fields), display)))


def _typed(context: click.Context, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the task and those fields of a spec whose options the user has typed."""
    options = {"agent_prompt": "no_agent_prompt"}
    typed = {
        name: value
        for name, value in fields.items()
        if context.get_parameter_source(options.get(name, name)) is ParameterSource.COMMANDLINE
    }
    return typed | {name: fields[name] for name in ("task", "settings", "sampling") if fields[name]}


def spec_fields(options: Mapping[str, Any], approval: str | None, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - the fields of a spec
    """Return the fields of the spec. They include the model and the handling of tools, for other processes."""
    from toolspeak.config.shape import Approval  # noqa: PLC0415

    settings = {each.name: options[each.name] for each in OPTIONS if options.get(each.name)}
    mode = Approval(approval or ("ask" if user_is_there() else "read-only"))
    return {**fields, "approval": mode, "model": options.get("model") or "", "settings": settings}


def user_is_there() -> bool:
    """Whether a user can be asked on this terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def tool_names(tools: str) -> tuple[str, ...]:
    """Return the names of a list with commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in tools.split(",") if name.strip()))


def current_folder() -> str:
    """Return the current folder. The home folder and its parents are refused: a run could change everything there."""
    here = Path.cwd().resolve()
    home = Path.home().resolve()
    if here == home or here in home.parents:
        raise click.UsageError(
            f"The current folder is {here}, and the run could change everything in it. Pass --folder PATH."
        )
    return str(here)
