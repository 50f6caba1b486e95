r"""`toolspeak run`: a task, worked to its end with tools.

$ toolspeak run "Which Python files have no tests?"
✓ list_files(path=".", depth=3)  0.0 s
✓ shell(command="grep -rL test src")  0.1 s
Two files have none: a.py and b.py.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from toolspeak.cli.options import configured, read_prompt, upstream_options
from toolspeak.cli.terminal import Paint, color_option

if TYPE_CHECKING:  # the help must not pay for the engine
    from toolspeak.runs.spec import Spec

MODES: Final = ("read-only", "ask", "auto", "off")
ROUNDS: Final = 50
_TOOLS: Final = "Its tools, with commas between them: files, shell, final_output, mcp:NAME, module:attribute."
_APPROVAL: Final = (
    "Which calls may run: read-only refuses those that change something, ask asks you before them, auto asks only "
    "before those that reach out of the folder, off never asks.  [default: ask; without a terminal read-only]"
)
_SETTINGS: Final = ("mode", "dialect", "strategy", "release", "constraint")


@click.command()
@click.argument("task", required=False)
@upstream_options
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    metavar="PATH",
    help="The one folder that its tools may change.  [default: the current one]",
)
@click.option("--tools", metavar="NAMES", default="files,shell,final_output", show_default=True, help=_TOOLS)
@click.option("--approval", type=click.Choice(MODES), help=_APPROVAL)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=ROUNDS,
    show_default=True,
    help="How often it may call tools; then it has to say what it has.",
)
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="How much the model may write in one turn.")
@click.option("--temperature", type=click.FloatRange(0), metavar="X", help="How freely it writes; 0 is the least.")
@click.option("--system", metavar="TEXT", help="What the model is told before all else.")
@click.option("--expand", is_flag=True, help="Show calls with all arguments, and their results.")
@click.option("--json", "as_json", is_flag=True, help="Say how it ended in one JSON object.")
@click.option("--events", "as_events", is_flag=True, help="Say what happens as JSON, a line for each event.")
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
    expand: bool,
    as_json: bool,
    as_events: bool,
    **said: str | bool | None,
) -> None:
    r"""Work on a task with tools, round by round, to its end.

    The TASK (with - or nothing: what is piped in) is worked on in one folder. What the model does is shown on standard
    error, a line for each round of tools; its final text goes to standard output. Ctrl-C stops it and keeps its rounds,
    Ctrl-C again leaves at once.

    The status is 0 if it is done, 1 if it failed or had to be summed up, 130 if it was cancelled.

    \b
    Examples:
      toolspeak run "Which tests are slow, and why?"
      toolspeak run --approval auto --folder ./site "Make the footer sticky."
      toolspeak run --tools files --json "Summarise README.md" < /dev/null
      git log -5 | toolspeak run - --approval read-only
    """
    asked = read_prompt(task)
    if asked is None:
        raise click.UsageError("A TASK is needed.")
    if as_json and as_events:
        raise click.UsageError("--json and --events exclude each other.")
    # The engine is loaded only here: `--help` must not pay for it.
    import asyncio  # noqa: PLC0415

    from toolspeak.cli._run_task import Manner, begin  # noqa: PLC0415

    sampling = {"max_tokens": max_tokens, "temperature": temperature}
    asks = sys.stdin.isatty() and sys.stderr.isatty()
    spec = _spec(
        said,
        task=asked,
        folder=folder or _here(),
        tools=_names(tools),
        approval=approval or ("ask" if asks else "read-only"),
        rounds=rounds,
        system=system or "",
        sampling={name: value for name, value in sampling.items() if value is not None},
    )
    manner = Manner(Paint.here(sys.stderr), expand=expand, as_json=as_json, as_events=as_events, asks=asks)
    click.get_current_context().exit(asyncio.run(begin(configured(file, said), spec, manner)))


def _spec(said: dict[str, Any], **fields: Any) -> "Spec":  # noqa: ANN401 - the fields of a spec
    """Write down what the run needs to go on in another process: the model and what is done with tools too."""
    from toolspeak.runs.spec import Spec  # noqa: PLC0415
    from toolspeak.runtime.tools.approval import Approval  # noqa: PLC0415

    settings = {name: said[name] for name in _SETTINGS if said.get(name)}
    fields["approval"] = Approval(fields["approval"])
    return Spec(**fields, model=said.get("model") or "", settings=settings)


def _names(tools: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in tools.split(",") if name.strip()))


def _here() -> str:
    """Return the current folder; one that holds everything that a person has must be named."""
    here = Path.cwd().resolve()
    home = Path.home().resolve()
    if here == home or here in home.parents:
        raise click.UsageError(f"The current folder is {here}, and the run could change all in it: say --folder PATH.")
    return str(here)
