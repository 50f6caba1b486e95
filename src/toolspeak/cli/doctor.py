r"""`toolspeak doctor`: the form of tool calling that a model does best with, measured and kept.

$ toolspeak doctor qwen2.5-coder
form            one pick types text none result two steps right score req tok
hermes          3/3  3/3   2/3  2/3  2/3    3/3 1/3   2/3 18/24  75 % 1.2 310
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from toolspeak.cli.options import configured, place_options
from toolspeak.cli.terminal import Paint, color_option

if TYPE_CHECKING:  # the help must not pay for the suite
    from toolspeak.cli._doctoring import Diagnosis

NOT_HELPED: Final = 1
_FORMS: Final = "Try only these, with commas between them, such as native,hermes,fenced+example."


@click.command()
@click.argument("model", required=False)
@place_options
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The configuration.")
@click.option("--quick", is_flag=True, help="Ask 8 tasks in place of 24, in few forms.")
@click.option("--forms", metavar="NAMES", help=_FORMS)
@click.option("--no-save", is_flag=True, help="Keep nothing.")
@click.option("--sandbox", is_flag=True, help="Say only which sandbox confines the shell of runs here.")
@click.option("--json", "as_json", is_flag=True, help="Say it all in one JSON object.")
@color_option
def doctor(  # noqa: PLR0913 - one for each option
    *,
    model: str | None,
    file: Path | None,
    quick: bool,
    forms: str | None,
    no_save: bool,
    sandbox: bool,
    as_json: bool,
    **said: str | None,
) -> None:
    r"""Find the form of tool calling that suits a model, and keep it.

    The forms are the upstream's own tools, and several ways to teach them in a prompt. All get 8 small tasks, the
    better half 8 more, and the best of those the last 8. The winner is kept as this model's profile, which `serve`,
    `chat` and the library use where you say nothing else. Without MODEL it is the default one.

    The status is 1 if no form makes the model call tools reliably. With --sandbox no model is asked, and the status is
    1 if no sandbox works.

    \b
    Examples:
      toolspeak doctor
      toolspeak doctor qwen2.5-coder:0.5b --quick
      toolspeak doctor --sandbox
      toolspeak doctor --upstream http://127.0.0.1:8080/v1 --forms native,hermes,fenced --no-save
    """
    # The suite is loaded only here: `--help` must not pay for it.
    import asyncio  # noqa: PLC0415

    from toolspeak.cli._doctoring import Wishes, diagnose  # noqa: PLC0415

    if sandbox:
        click.get_current_context().exit(_sandbox(as_json=as_json))
    names = tuple(name.strip() for name in forms.split(",")) if forms is not None else ()
    wishes = Wishes(model or "", names, quick=quick, save=not no_save)
    found = asyncio.run(diagnose(configured(file, said), wishes, Paint.here(), quiet=as_json))
    _echo(found, as_json=as_json)
    click.get_current_context().exit(0 if found.report.helped else NOT_HELPED)


def _sandbox(*, as_json: bool) -> int:
    """Say which sandboxes work; return the status."""
    import asyncio  # noqa: PLC0415 # as above

    from toolspeak.cli._sandbox_text import as_object, lines  # noqa: PLC0415
    from toolspeak.cli.json_output import safe_json  # noqa: PLC0415
    from toolspeak.config.environment import current, journal_folder  # noqa: PLC0415
    from toolspeak.runtime.sandbox.find import find_sandbox  # noqa: PLC0415
    from toolspeak.runtime.sandbox.journal import recover  # noqa: PLC0415

    found, left = asyncio.run(find_sandbox()), recover(journal_folder(current()))
    for line in (safe_json(as_object(found, left)),) if as_json else lines(found, Paint.here(), left):
        click.echo(line)
    return 0 if found.sandbox is not None else NOT_HELPED


def _echo(found: "Diagnosis", *, as_json: bool) -> None:
    from toolspeak.cli._doctor_text import as_object, last_lines, table  # noqa: PLC0415
    from toolspeak.cli.json_output import safe_json  # noqa: PLC0415

    if as_json:
        click.echo(safe_json(as_object(found)))
        return
    paint = Paint.here()
    for line in table(found.report, paint):
        click.echo(line)
    click.echo()
    for line in last_lines(found, paint):
        click.echo(line)
