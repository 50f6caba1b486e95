r"""`toolspeak trace`: see what happened in a turn: the plan, what the model wrote, why it was asked again.

$ toolspeak trace
10:04:11  7f3a21bc  200  emulated  qwen3 -> box:qwen3    get_weather    2 requests   812+43 tokens   3.1 s
"""

from typing import IO, Final

import click

from toolspeak.cli.options import json_option
from toolspeak.cli.terminal import Paint, color_option

DEFAULT_URL: Final = "http://127.0.0.1:4141"
LARGEST: Final = 256 * 1024 * 1024
"""Bytes of a trace in a file."""
_FORMATS: Final = ("text", "json", "markdown", "curl", "case")


@click.command()
@click.argument("id", required=False)
@click.option("--url", default=DEFAULT_URL, show_default=True, metavar="URL", help="Gateway that has the traces.")
@click.option("--key", envvar="TOOLSPEAK_KEY", show_envvar=True, metavar="KEY", help="Key for that gateway.")
@click.option("--file", type=click.File("rb"), metavar="FILE", help="Read the trace from a file that --as json wrote.")
@click.option("--search", default="", metavar="WORDS", help="List only traces with these words in names or errors.")
@click.option("--failed", is_flag=True, help="List only turns that failed.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="How many to list.")
@click.option("--follow", is_flag=True, help="Keep listing turns as they end, until Ctrl-C.")
@click.option(
    "--as", "format", type=click.Choice(_FORMATS), default="text", show_default=True, help="Format of the trace."
)
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="The attempt for --as case and --shrink.")
@click.option("--shrink", is_flag=True, help="Reduce the text to the smallest one that is read in the same way.")
@click.option("--mode", metavar="MODE", help="Read the answers again in this mode, and compare.")
@click.option("--dialect", metavar="NAME", help="Read the answers again in this dialect, and compare.")
@click.option("--live", is_flag=True, help="Ask the model again, optionally with another --mode, --dialect or --model.")
@click.option("--model", metavar="NAME", help="With --live, ask this model.")
@json_option
@color_option
def trace(  # noqa: PLR0913 - one for each option
    *,
    id: str | None,
    url: str,
    key: str | None,
    file: IO[bytes] | None,
    search: str,
    failed: bool,
    limit: int,
    follow: bool,
    format: str,
    attempt: int | None,
    shrink: bool,
    mode: str | None,
    dialect: str | None,
    live: bool,
    model: str | None,
    as_json: bool,
) -> None:
    r"""See what happened in a turn, and why.

    The page of a turn shows the plan, what the model wrote, why it was asked again, what that cost, and what fills the
    context.

    Without ID, the command lists the newest turns, running ones first. ID is the value of the response header
    x-toolspeak-trace, its beginning, or `last`.

    With --mode or --dialect, the command reads the recorded answers again, as if that had been set. It does not ask the
    model, except with --live: then it sends the request once more.

    \b
    Examples:
      toolspeak trace
      toolspeak trace last
      toolspeak trace --follow --failed
      toolspeak trace 7f3a --as markdown > issue.md
      toolspeak trace 7f3a --as case --shrink >> cases.jsonl
      toolspeak trace 7f3a --dialect hermes
      toolspeak trace 7f3a --live --model qwen3-coder
    """
    # Everything is loaded only here, so that `--help` stays fast.
    from toolspeak.cli.trace.page import TracePage  # noqa: PLC0415
    from toolspeak.cli.trace.source import GatewayTraces, read_trace  # noqa: PLC0415

    if model and not live:
        raise click.UsageError(f"another model, {model}, must be asked. Add --live.")
    page = TracePage(Paint.here(), is_json=as_json)
    gateway = GatewayTraces(url, key or "")
    if file is not None:
        found = read_trace(file.read(LARGEST))
    elif id is None:
        page.echo_list(gateway, search, failed=failed, limit=limit, follows=follow)
        return
    else:
        found = gateway.find(id)
    asked = {name: value for name, value in (("mode", mode), ("dialect", dialect)) if value}
    if live:
        page.echo_asked_again(found, gateway.ask_again(found, asked, model or ""))
    elif asked:
        page.echo_replay(found, asked)
    else:
        page.echo_trace(found, "json" if as_json else format, url, attempt, shrinks=shrink)
