r"""`toolspeak doctor`: measure which form of tool calling a model does best with, and save it.

$ toolspeak doctor qwen2.5-coder
form            plain one pick types text none result two steps right req tok
hermes          16/24 3/3  3/3   2/3  2/3  2/3    3/3 1/3   2/3 34/48 1.2 310
"""

from pathlib import Path
from typing import Final

import click

from toolspeak.cli.options import config_option, json_option, load_config, place_options
from toolspeak.cli.terminal import Paint, color_option

NOT_HELPED: Final = 1
_FORMS: Final = "Test only these forms, separated by commas, such as native,hermes,fenced+example."
_MINUTES: Final = "Stop after this many minutes, between two tasks; the next doctor continues there."
_SANDBOX: Final = "Only show which sandbox isolates the shell of runs, and test no model."


@click.command()
@click.argument("model", required=False)
@place_options
@config_option
@click.option("--quick", is_flag=True, help="Test few forms with few tasks, for 3 minutes at most.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help=_MINUTES)
@click.option("--fresh", is_flag=True, help="Discard the results of an unfinished trial.")
@click.option("--forms", metavar="NAMES", help=_FORMS)
@click.option("--no-save", is_flag=True, help="Do not save the result.")
@click.option("--sandbox", is_flag=True, help=_SANDBOX)
@json_option
@color_option
def doctor(  # noqa: PLR0913 - one for each option
    *,
    model: str | None,
    file: Path | None,
    quick: bool,
    minutes: float | None,
    fresh: bool,
    forms: str | None,
    no_save: bool,
    sandbox: bool,
    as_json: bool,
    **options: str | None,
) -> None:
    r"""Find a better form of tool calling for a model, and save it.

    The forms are the upstream's native tools and several ways to describe tools in a prompt. The command tests them
    with small tasks, and drops a form that can hardly win any more. It then tests the best form and the current one
    with more tasks, half of them plain everyday requests. If the best form is better beyond chance, the command saves
    it as the profile of the model; `serve`, `chat` and the library use it unless you set something else. Without MODEL,
    the command tests the default model.

    Ctrl-C keeps the results so far: the next doctor continues there.

    The exit status is 1 if the model does not call tools reliably; with --sandbox, if no sandbox works.

    \b
    Examples:
      toolspeak doctor
      toolspeak doctor qwen2.5-coder:0.5b --quick
      toolspeak doctor --sandbox
      toolspeak doctor --upstream http://127.0.0.1:8080/v1 --forms native,hermes,fenced --no-save
    """
    if sandbox:
        click.get_current_context().exit(_show_sandbox(as_json=as_json))
    # The suite is loaded only here, so that `--help` stays fast.
    import asyncio  # noqa: PLC0415

    from toolspeak.cli.doctor.diagnosis import diagnose, echo_diagnosis  # noqa: PLC0415
    from toolspeak.doctor.diagnosis import DoctorOptions  # noqa: PLC0415

    names = tuple(name.strip() for name in forms.split(",")) if forms is not None else ()
    wanted = DoctorOptions(model or "", names, quick=quick, save=not no_save, minutes=minutes, fresh=fresh)
    found = asyncio.run(diagnose(load_config(file, options), wanted, Paint.here(), quiet=as_json))
    echo_diagnosis(found, Paint.here(), as_json=as_json)
    click.get_current_context().exit(0 if found.report.helped else NOT_HELPED)


def _show_sandbox(*, as_json: bool) -> int:
    """Print which sandboxes work; return the exit status."""
    import asyncio  # noqa: PLC0415

    from toolspeak.agent.sandbox.journal import recover  # noqa: PLC0415
    from toolspeak.agent.sandbox.selection import find_sandbox  # noqa: PLC0415
    from toolspeak.cli.doctor.diagnosis import echo_sandbox  # noqa: PLC0415
    from toolspeak.config.environment import current, journal_folder  # noqa: PLC0415

    found, left = asyncio.run(find_sandbox()), recover(journal_folder(current()))
    echo_sandbox(found, left, Paint.here(), as_json=as_json)
    return 0 if found.sandbox is not None else NOT_HELPED
