r"""`toolspeak runs`: list stored runs; show, resume or cancel one.

$ toolspeak runs
1a2b3c4d  done       3 rounds  2 min ago   Which tests are slow?
9f8e7d6c  cancelled  1 round   1 h ago     Make the footer sticky.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.options import config_option, json_option, load_config, upstream_options
from toolspeak.cli.terminal import Paint, color_option

if TYPE_CHECKING:  # `--help` must not load the engine
    from toolspeak.agent.runs.provider import OpenRuns
    from toolspeak.agent.runs.runs import RunView

STATUSES: Final = ("running", "waiting", "done", "summed_up", "cancelled", "failed")
FORMS: Final = ("openai", "anthropic", "gemini")
_EXPAND: Final = "Show each call with its full arguments and its result."


@click.group(invoke_without_command=True)
@config_option
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many runs to list, newest first."
)
@click.option("--status", type=click.Choice(STATUSES), help="List only runs with this status.")
@json_option
@color_option
@click.pass_context
def runs(ctx: click.Context, *, file: Path | None, limit: int, status: str | None, as_json: bool) -> None:
    r"""List stored runs; show, resume or cancel one.

    Runs are stored if toolspeak[runs] is installed. You can shorten an ID, as long as only one run starts with it.

    \b
    Examples:
      toolspeak runs
      toolspeak runs --status failed --json
      toolspeak runs show 1a2b --expand
      toolspeak runs show 1a2b --as anthropic
      toolspeak runs resume 1a2b
    """
    if ctx.invoked_subcommand is not None:
        return

    async def echo_list(opened: "OpenRuns") -> None:
        from toolspeak.agent.runs.runs import line_json  # noqa: PLC0415
        from toolspeak.cli.output import safe_json  # noqa: PLC0415
        from toolspeak.cli.run.history import list_lines  # noqa: PLC0415
        from toolspeak.engine.agent import Status  # noqa: PLC0415
        from toolspeak.runtime.clock import CLOCK  # noqa: PLC0415

        lines = await opened.runs.list(limit, Status(status) if status else None)
        if as_json:
            click.echo(safe_json({"runs": [line_json(line) for line in lines]}))
            return
        for line in list_lines(lines, CLOCK.seconds(), Paint.here()):
            click.echo(line)
        if not lines:
            click.echo("there are no stored runs", err=True)

    _with_runs(file, echo_list)


@runs.command()
@click.argument("id")
@config_option
@click.option("--expand", is_flag=True, help=_EXPAND)
@json_option
@click.option("--as", "form", type=click.Choice(FORMS), help="Print its messages in the format of this vendor.")
@color_option
def show(*, id: str, file: Path | None, expand: bool, as_json: bool, form: str | None) -> None:
    """Show a run: one line for each round, its text, and how it ended."""

    async def echo_run(opened: "OpenRuns") -> None:
        from toolspeak.cli.run.history import find_run, times_of, view_lines  # noqa: PLC0415

        view = await opened.runs.show(await find_run(opened.runs, id))
        if as_json or form:
            click.echo(_json_text(view, form))
            return
        for line in view_lines(view, await times_of(opened.runs, view), Paint.here(), expand=expand):
            click.echo(line)

    _with_runs(file, echo_run)


@runs.command()
@click.argument("id")
@upstream_options
@config_option
@click.option("--expand", is_flag=True, help=_EXPAND)
@color_option
def resume(*, id: str, file: Path | None, expand: bool, **options: str | bool | None) -> None:
    """Continue a run that was cancelled or failed, or follow one that is running."""
    import asyncio  # noqa: PLC0415

    from toolspeak.cli.run import session  # noqa: PLC0415
    from toolspeak.extras import require_extra  # noqa: PLC0415

    require_extra("runs", "toolspeak runs")
    asks = sys.stdin.isatty() and sys.stderr.isatty()
    display = session.Display(Paint.here(sys.stderr), expand=expand, asks=asks)
    click.get_current_context().exit(asyncio.run(session.resume_run(load_config(file, options), id, display)))


@runs.command()
@click.argument("id")
@config_option
def cancel(*, id: str, file: Path | None) -> None:
    """Cancel a run. Its rounds are kept."""

    async def cancel_run(opened: "OpenRuns") -> None:
        from toolspeak.cli.run.history import find_run, short_id  # noqa: PLC0415

        whole = await find_run(opened.runs, id)
        line = (await opened.runs.show(whole)).line
        if line.ended:
            click.echo(f"run {whole} has ended already ({line.status}); there is nothing to cancel", err=True)
            return
        await opened.runs.cancel(whole)
        click.echo(f"run {whole} is being cancelled; to continue: toolspeak runs resume {short_id(whole)}", err=True)

    _with_runs(file, cancel_run)


def _with_runs(file: Path | None, do: "Callable[[OpenRuns], Awaitable[None]]") -> None:
    """Open the stored runs without starting to work on them, and call `do`."""
    import asyncio  # noqa: PLC0415

    from toolspeak.agent.runs.provider import open_user_runs  # noqa: PLC0415
    from toolspeak.config import current, load  # noqa: PLC0415
    from toolspeak.extras import require_extra  # noqa: PLC0415

    require_extra("runs", "toolspeak runs")  # without it a run ends with its process, and there is nothing to show
    config = load(file, current())

    async def opened() -> None:
        async with open_user_runs(config, works=False) as each:
            await do(each)

    asyncio.run(opened())


def _json_text(view: "RunView", form: str | None) -> str:
    from toolspeak.agent.runs.runs import messages_json, view_json  # noqa: PLC0415
    from toolspeak.cli.output import safe_json  # noqa: PLC0415

    return safe_json(messages_json(view, form) if form else view_json(view))
