r"""`toolspeak runs`: what was worked on, and what can go on.

$ toolspeak runs
1a2b3c4d  done       3 rounds  2 min ago   Which tests are slow?
9f8e7d6c  cancelled  1 round   1 h ago     Make the footer sticky.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.options import configured, upstream_options
from toolspeak.cli.terminal import Paint, color_option

if TYPE_CHECKING:  # the help must not pay for the engine
    from toolspeak.runs.opened import Opened
    from toolspeak.runs.runs import View

STATUSES: Final = ("running", "waiting", "done", "summed_up", "cancelled", "failed")
FORMS: Final = ("openai", "anthropic", "gemini")
_config = click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")


@click.group(invoke_without_command=True)
@_config
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many, the newest first."
)
@click.option("--status", type=click.Choice(STATUSES), help="Only those that stand so.")
@click.option("--json", "as_json", is_flag=True, help="Say it all in one JSON object.")
@color_option
@click.pass_context
def runs(ctx: click.Context, *, file: Path | None, limit: int, status: str | None, as_json: bool) -> None:
    r"""List runs; show, resume or cancel one.

    Runs are kept where toolspeak[runs] is installed. An ID may be shortened, as long as only one run begins so.

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

    async def listed(opened: "Opened") -> None:
        from toolspeak.cli._runs_text import list_lines  # noqa: PLC0415
        from toolspeak.cli.json_output import safe_json  # noqa: PLC0415
        from toolspeak.engine.agent import Status  # noqa: PLC0415
        from toolspeak.runs.shown import line_json  # noqa: PLC0415
        from toolspeak.runtime.clock import CLOCK  # noqa: PLC0415

        lines = await opened.runs.list(limit, Status(status) if status else None)
        if as_json:
            click.echo(safe_json({"runs": [line_json(line) for line in lines]}))
            return
        for line in list_lines(lines, CLOCK.seconds(), Paint.here()):
            click.echo(line)
        if not lines:
            click.echo("no runs are kept" if opened.lasts else "runs are kept only with toolspeak[runs]", err=True)

    _with_runs(file, listed)


@runs.command()
@click.argument("id")
@_config
@click.option("--expand", is_flag=True, help="Show calls with all arguments, and their results.")
@click.option("--json", "as_json", is_flag=True, help="Say it all in one JSON object.")
@click.option("--as", "form", type=click.Choice(FORMS), help="Write its messages out, as this vendor has them.")
@color_option
def show(*, id: str, file: Path | None, expand: bool, as_json: bool, form: str | None) -> None:
    """Show a run: its rounds on a line each, its text, how it ended."""

    async def shown(opened: "Opened") -> None:
        from toolspeak.cli._run_named import named  # noqa: PLC0415
        from toolspeak.cli._runs_text import times_of, view_lines  # noqa: PLC0415

        view = await opened.runs.show(await named(opened.runs, id))
        if as_json or form:
            click.echo(_written(view, form))
            return
        for line in view_lines(view, await times_of(opened.runs, view), Paint.here(), expand=expand):
            click.echo(line)

    _with_runs(file, shown)


@runs.command()
@click.argument("id")
@upstream_options
@_config
@click.option("--expand", is_flag=True, help="Show calls with all arguments, and their results.")
@color_option
def resume(*, id: str, file: Path | None, expand: bool, **said: str | bool | None) -> None:
    """Go on with a run that was cancelled or failed, or watch one that goes on."""
    import asyncio  # noqa: PLC0415

    from toolspeak.cli._run_task import Manner, go_on  # noqa: PLC0415

    asks = sys.stdin.isatty() and sys.stderr.isatty()
    manner = Manner(Paint.here(sys.stderr), expand=expand, asks=asks)
    click.get_current_context().exit(asyncio.run(go_on(configured(file, said), id, manner)))


@runs.command()
@click.argument("id")
@_config
def cancel(*, id: str, file: Path | None) -> None:
    """Stop a run; its rounds are kept."""

    async def cancelled(opened: "Opened") -> None:
        from toolspeak.cli._run_named import named, short  # noqa: PLC0415

        whole = await named(opened.runs, id)
        await opened.runs.cancel(whole)
        click.echo(f"run {whole} is told to stop; toolspeak runs resume {short(whole)} goes on from there", err=True)

    _with_runs(file, cancelled)


def _with_runs(file: Path | None, do: "Callable[[Opened], Awaitable[None]]") -> None:
    import asyncio  # noqa: PLC0415

    from toolspeak.config import current, load  # noqa: PLC0415
    from toolspeak.runs.opened import opened_runs  # noqa: PLC0415

    config = load(file, current())

    async def opened() -> None:
        async with opened_runs(config, works=False) as each:
            await do(each)

    asyncio.run(opened())


def _written(view: "View", form: str | None) -> str:
    from toolspeak.cli.json_output import safe_json  # noqa: PLC0415
    from toolspeak.runs.shown import messages_json, view_json  # noqa: PLC0415

    return safe_json(messages_json(view, form) if form else view_json(view))
