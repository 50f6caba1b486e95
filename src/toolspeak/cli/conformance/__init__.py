r"""`toolspeak conformance`: judge the tool calling of any OpenAI-compatible server or gateway over HTTP.

kind           sent right asked again text wrong missed wrong false protocol
qwen-json        26    26           0          0      0     0     0        0
"""

from pathlib import Path
from typing import Final

import click

from toolspeak.cli.options import json_option
from toolspeak.cli.terminal import Paint, color_option

NOT_ALL_RIGHT: Final = 1
_LIVE: Final = "Ask the server's own model a few questions, and judge only the form of the answers."
_MODEL: Final = "Model name to send.  [default: conformance; with --live, the first that the server lists]"
_BY_MODEL: Final = "Send each case under the name of the model that wrote it, for gateways that read by model name."
_ONLY: Final = "Send only cases whose id or kind begins with this; can be repeated."
_KEY: Final = "API key, sent as a bearer token; it is safer in the variable TOOLSPEAK_CONFORMANCE_KEY."
_WAIT: Final = "Seconds to wait until a request arrives at the scripted upstream through the gateway."


@click.command()
@click.argument("url")
@click.option("--live", is_flag=True, help=_LIVE)
@click.option(
    "--upstream-host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address of the scripted upstream.",
)
@click.option(
    "--upstream-port",
    type=click.IntRange(0, 65535),
    default=8099,
    show_default=True,
    metavar="N",
    help="Port of the scripted upstream; 0 picks a free one.",
)
@click.option(
    "--wait", type=click.FloatRange(min=0, min_open=True), default=120, show_default=True, metavar="SECONDS", help=_WAIT
)
@click.option("--model", metavar="NAME", help=_MODEL)
@click.option("--by-model", is_flag=True, help=_BY_MODEL)
@click.option("--key", envvar="TOOLSPEAK_CONFORMANCE_KEY", metavar="KEY", help=_KEY)
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Send this header; can be repeated.")
@click.option("--only", multiple=True, metavar="NAME", help=_ONLY)
@click.option(
    "--cuts",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="N",
    help="Stream each case this many times, split differently each time.",
)
@click.option(
    "--parallel", type=click.IntRange(1, 64), default=4, show_default=True, metavar="N", help="Concurrent requests."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Time for one response.",
)
@click.option(
    "--badge",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg",
    help="Write a badge with the share of right results.",
)
@click.option(
    "--worst",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Show at most this many results that are not right.",
)
@json_option
@color_option
def conformance(  # noqa: PLR0913 - one for each option
    *,
    url: str,
    live: bool,
    upstream_host: str,
    upstream_port: int,
    wait: float,
    model: str | None,
    by_model: bool,
    key: str | None,
    headers: tuple[str, ...],
    only: tuple[str, ...],
    cuts: int,
    parallel: int,
    timeout: float,
    badge: Path | None,
    worst: int,
    as_json: bool,
) -> None:
    r"""Judge the tool calls of an OpenAI-compatible server or gateway.

    URL is the base URL of a gateway, such as http://127.0.0.1:4141/v1. The command starts a scripted model server on
    loopback and prints its address: point the gateway at it. Then it sends each case through the gateway, streamed and
    whole. The scripted model answers with what models really wrote, in their own call formats, and the command judges
    what a client gets: the calls and their arguments, the text without leaked markup, and the protocol.

    With --live, URL is a model server, or a gateway with a real model: the command asks the model a few questions and
    judges only the protocol.

    The exit status is 0 if everything is right, 1 if not, 2 after an error.

    \b
    Examples:
      toolspeak conformance http://127.0.0.1:4141/v1
      toolspeak conformance http://127.0.0.1:4000/v1 --key sk-1234 --badge badge.svg
      toolspeak conformance http://127.0.0.1:4141/v1 --only dsml --only kimi --json
      toolspeak conformance http://127.0.0.1:8080/v1 --live
    """
    # The trial is loaded only here, so that `--help` stays fast.
    from toolspeak.cli.conformance.session import ConformanceOptions, echo_report, judge_server, target_of  # noqa: PLC0415

    asked = ConformanceOptions(
        target_of(url, model, key, headers, timeout=timeout, parallel=parallel),
        host=upstream_host,
        port=upstream_port,
        wait=wait,
        names_models=by_model,
        only=only,
        cuts=cuts,
    )
    report = judge_server(asked, live=live, quiet=as_json)
    if badge is not None:
        badge.write_text(report.badge(), encoding="utf-8")
    echo_report(report, Paint.here(), worst=worst, as_json=as_json)
    click.get_current_context().exit(0 if report.is_right else NOT_ALL_RIGHT)
