r"""`toolspeak keys`: makes, lists, rotates and revokes the keys of clients.

$ toolspeak keys make anna --requests-per-minute 60 --expires 90d
sk-toolspeak-…
toolspeak: this is the key k_4be1c09a71d2 of anna. It is shown only now.

The store is imported inside the functions that need it, so that `--help` stays fast.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from toolspeak.cli.options import config_option, json_option
from toolspeak.errors import BadConfig

if TYPE_CHECKING:
    from toolspeak.gateway.key_admin import KeyAdmin
    from toolspeak.gateway.key_records import KeyRecord

F = TypeVar("F", bound=Callable[..., Any])
ADMIN_PORT: Final = 4142
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION: Final = re.compile(r"(\d{1,9})([smhd]?)")
_LEAST_ADMIN_KEY: Final = 16


def read_duration(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Return the seconds of `90d`, `24h`, `30m` or `0`; raises `click.BadParameter`."""
    if value is None:
        return None
    found = _DURATION.fullmatch(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a time such as 90d, 24h or 30m.", context, parameter)
    return int(found[1]) * _UNITS[found[2] or "s"]


@click.group()
def keys() -> None:
    r"""Make, list, rotate and revoke the keys of clients.

    Running gateways apply changes within two seconds, without a restart. [access] in toolspeak.toml sets where keys are
    stored: in a file on this machine, or in Redis for a fleet. Only their digests are stored.

    \b
    Examples:
      toolspeak keys make anna --requests-per-minute 60 --expires 90d
      toolspeak keys list
      toolspeak keys rotate k_4be1c09a71d2 --overlap 24h
      toolspeak keys revoke k_4be1c09a71d2
    """


def _limit_options(command: F) -> F:
    texts = {
        "--requests-per-minute": "Requests per minute.",
        "--input-tokens-per-minute": "Tokens per minute that models read.",
        "--output-tokens-per-minute": "Tokens per minute that models write.",
        "--concurrent": "Concurrent requests.",
    }
    for name, text in reversed(texts.items()):
        command = click.option(name, type=click.IntRange(1), metavar="N", help=f"{text}  [default: no limit]")(command)
    return command


@keys.command()
@click.argument("tenant")
@click.option("--model", "models", multiple=True, metavar="NAME", help="Model that the key may use; may be repeated.")
@_limit_options
@click.option(
    "--expires", callback=read_duration, metavar="TIME", help="Time after which the key expires, such as 90d."
)
@config_option
@json_option
def make(  # noqa: PLR0913 # one for each option
    *,
    tenant: str,
    models: tuple[str, ...],
    requests_per_minute: int | None,
    input_tokens_per_minute: int | None,
    output_tokens_per_minute: int | None,
    concurrent: int | None,
    expires: int | None,
    file: Path | None,
    as_json: bool,
) -> None:
    r"""Make a key for a tenant, and print it. It is shown only once.

    \b
    Examples:
      toolspeak keys make anna
      toolspeak keys make build --model small --model 'box:qwen3*' --concurrent 4 --expires 90d
    """
    from toolspeak.config.shape import RateLimits  # noqa: PLC0415
    from toolspeak.gateway.key_records import KeyOrder  # noqa: PLC0415

    limits = RateLimits(requests_per_minute, input_tokens_per_minute, output_tokens_per_minute, concurrent)
    order = KeyOrder(tenant, models, limits, expires)
    _show_new(*_admin(file).make(order), as_json=as_json)


@keys.command("list")
@config_option
@json_option
def list_keys(*, file: Path | None, as_json: bool) -> None:
    r"""List the stored keys: ids, tenants, limits and times. Keys of the configuration file are not listed.

    \b
    Example:
      toolspeak keys list
    """
    import json  # noqa: PLC0415

    from toolspeak.runtime.clock import CLOCK  # noqa: PLC0415

    found, now = _admin(file).list(), CLOCK.seconds()
    if as_json:
        click.echo(json.dumps({"keys": [record.public(now) for record in found]}))
        return
    for line in _table(found, now):
        click.echo(line)
    if not found:
        click.echo("no keys are stored: toolspeak keys make TENANT", err=True)


@keys.command()
@click.argument("id")
@click.option(
    "--overlap",
    callback=read_duration,
    default="24h",
    metavar="TIME",
    help="How long the old key stays valid.  [default: 24h]",
)
@config_option
@json_option
def rotate(*, id: str, overlap: int, file: Path | None, as_json: bool) -> None:  # as people call it
    r"""Make a new key with the permissions of an old one, which expires after an overlap.

    \b
    Examples:
      toolspeak keys rotate k_4be1c09a71d2
      toolspeak keys rotate k_4be1c09a71d2 --overlap 0
    """
    _show_new(*_admin(file).rotate(id, overlap), as_json=as_json)


@keys.command()
@click.argument("id")
@config_option
@json_option
def revoke(*, id: str, file: Path | None, as_json: bool) -> None:  # as people call it
    r"""Revoke a key now. Gateways reject it within two seconds; open streams continue.

    \b
    Example:
      toolspeak keys revoke k_4be1c09a71d2
    """
    import json  # noqa: PLC0415

    from toolspeak.runtime.clock import CLOCK  # noqa: PLC0415

    record = _admin(file).revoke(id)
    if as_json:
        click.echo(json.dumps(record.public(CLOCK.seconds())))
    else:
        click.echo(f"the key {record.id} of {record.tenant} is revoked", err=True)


@keys.command()
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=ADMIN_PORT,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 picks a free one.",
)
@config_option
def serve(*, host: str, port: int, file: Path | None) -> None:
    r"""Serve the admin API, which programs use to make, list, rotate and revoke keys.

    Clients send the key in the variable TOOLSPEAK_ADMIN_KEY as a bearer token. It is not a key of the gateway, and the
    gateway does not serve this API.

    \b
    Example:
      TOOLSPEAK_ADMIN_KEY=$(openssl rand -hex 32) toolspeak keys serve
    """
    from toolspeak.config import current  # noqa: PLC0415
    from toolspeak.gateway.admin_api import AdminApi, run_admin_api  # noqa: PLC0415

    key = current().get("TOOLSPEAK_ADMIN_KEY", "").strip()
    if len(key) < _LEAST_ADMIN_KEY:
        raise BadConfig(
            f"TOOLSPEAK_ADMIN_KEY: the admin API needs a key of {_LEAST_ADMIN_KEY} characters or more. "
            "Set it to the output of `openssl rand -hex 32`."
        )
    api = AdminApi(_admin(file, "admin-api"), key)
    run_admin_api(api, host, port, lambda url: click.echo(f"the admin API listens on {url}", err=True))


def _admin(file: Path | None, by: str = "") -> "KeyAdmin":
    from toolspeak.config import current, load  # noqa: PLC0415
    from toolspeak.gateway.key_admin import open_key_admin  # noqa: PLC0415

    return open_key_admin(load(file, current()), by or f"cli:{_user()}")


def _user() -> str:
    """Return the name of the person for the audit log; empty on a system without users."""
    import getpass  # noqa: PLC0415

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container with an id that no file names
        return str(os.getuid()) if hasattr(os, "getuid") else ""


def _show_new(record: "KeyRecord", secret: str, *, as_json: bool) -> None:
    import json  # noqa: PLC0415

    from toolspeak.runtime.clock import CLOCK  # noqa: PLC0415

    if as_json:
        click.echo(json.dumps({"key": secret, **record.public(CLOCK.seconds())}))
        return
    click.echo(secret)
    click.echo(f"toolspeak: this is the key {record.id} of {record.tenant}. It is shown only now.", err=True)


def _table(records: "Sequence[KeyRecord]", now: int) -> list[str]:
    rows = [("ID", "TENANT", "STATE", "EXPIRES", "LIMITS", "MODELS")]
    rows += [
        (one.id, one.tenant, one.state(now), _day(one.expires), _limits(one), " ".join(one.models) or "all")
        for one in records
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows] if records else []


def _day(seconds: int | None) -> str:
    from time import gmtime, strftime  # noqa: PLC0415

    return "never" if seconds is None else strftime("%Y-%m-%d %H:%MZ", gmtime(seconds))


def _limits(record: "KeyRecord") -> str:
    pairs = (
        (record.requests_per_minute, "req/min"),
        (record.input_tokens_per_minute, "in/min"),
        (record.output_tokens_per_minute, "out/min"),
        (record.concurrent, "at once"),
    )
    return ", ".join(f"{limit} {unit}" for limit, unit in pairs if limit is not None) or "none"
