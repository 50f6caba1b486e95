"""Reads requests for runs, their bodies and queries, and checks them against what `[runs]` offers.

A run executes commands on this machine, so no request can extend its rights: its folder, its tools and what it may do
without approval are those of `[runs]`, or fewer.
"""

from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

from toolspeak.agent.runs.runs import Spec, misfit, read_described
from toolspeak.agent.tools.toolbox import OUTPUT
from toolspeak.config.shape import Approval, Offer
from toolspeak.engine.agent import Status
from toolspeak.engine.journal import compact_from
from toolspeak.engine.settings import Settings
from toolspeak.errors import BadField
from toolspeak.gateway.exchange import Exchange, header
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Sampling

LIMIT, MOST = 50, 1000
"""Length of a list of runs: by default, and at most."""
_MOST_OUTPUT: Final = 1 << 16
"""Largest `output` that a client may set."""
_MODES: Final = list(Approval)
"""From the strictest to the freest: the order of the enumeration decides what a client may ask for."""
T = TypeVar("T")


class RunRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a start: the fields of a spec, and an id.

    The id makes a start safe to repeat: after a timeout or a 503 the run may have been stored, and the same id starts
    only one run.
    """

    task: str
    id: str = ""
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] | None = None
    folder: str = ""
    approval: Approval | None = None
    rounds: int | None = None
    output: int = OUTPUT
    history: tuple[dict[str, Any], ...] = ()
    settings: dict[str, Any] = {}
    sampling: dict[str, Any] = {}


class ApprovalRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a decision on a call."""

    allowed: bool
    reason: str = ""


def read_body(body: bytes, kind: type[T]) -> T:
    """Decode a body; raises `BadField` with the field that is wrong."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise misfit(error) from None


def spec_of(wanted: RunRequest, offer: Offer, tenant: str) -> Spec:
    """Return the spec of a run. Raises `BadField` for a field that is malformed or asks for more than is offered."""
    if not wanted.task.strip():
        raise BadField("task", "it is empty: it says what to do")
    # Only checked here: the spec stores them as they were written, and the worker reads them again.
    read_described(Settings, wanted.settings, "settings")
    read_described(Sampling, wanted.sampling, "sampling")
    return Spec(
        wanted.task,
        wanted.model,
        wanted.system,
        _tools(wanted.tools, offer),
        _folder(wanted.folder, offer),
        _approval(wanted.approval, offer),
        _within("rounds", offer.rounds if wanted.rounds is None else wanted.rounds, offer.rounds),
        _within("output", wanted.output, _MOST_OUTPUT),
        _history(wanted.history),
        wanted.settings,
        wanted.sampling,
        tenant,
    )


def _tools(wanted: tuple[str, ...] | None, offer: Offer) -> tuple[str, ...]:
    if wanted is None:
        return tuple(name for name in Spec("").tools if name in offer.tools)
    for name in wanted:
        if name not in offer.tools:
            raise BadField("tools", f"{name[:80]!r} is not offered; those that are: {', '.join(offer.tools) or 'none'}")
    return wanted


def _folder(wanted: str, offer: Offer) -> str:
    """Accept only a folder that is listed exactly: inside it, an earlier run may have made a symbolic link to `/`."""
    if wanted and wanted not in offer.folders:
        raise BadField("folder", f"{wanted[:80]!r} is not offered; leave it out for one of the run's own")
    return wanted


def _approval(wanted: Approval | None, offer: Offer) -> Approval:
    most = _MODES.index(offer.approval)
    level = min(_MODES.index(Approval.ASK), most) if wanted is None else _MODES.index(wanted)
    if level > most:
        raise BadField("approval", f"{wanted!s} is not offered; the modes that are: {', '.join(_MODES[: most + 1])}")
    return _MODES[level]


def _within(field: str, value: int, most: int) -> int:
    if 1 <= value <= most:
        return value
    raise BadField(field, f"{value} is not an integer from 1 to {most}")


def _history(rows: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    try:
        for row in rows:
            compact_from(row)
    except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise BadField("history", f"it is not made of messages as runs show them ({type(error).__name__})") from None
    return rows


# ---------------------------------------------------------------- queries


def query_of(exchange: Exchange) -> dict[str, str]:
    """Return the query parameters."""
    return dict(parse_qsl(exchange.query))


def limit_in(query: dict[str, str]) -> int:
    """Return the largest number of runs that a list may have. Raises `BadField`."""
    said = query.get("limit", str(LIMIT))
    if not said.isascii() or not said.isdecimal() or len(said) > len(str(MOST)):
        raise BadField("limit", f"{said[:40]!r} is not an integer from 1 to {MOST}")
    return _within("limit", int(said), MOST)


def status_in(query: dict[str, str]) -> Status | None:
    """Return the status by which a list is filtered; raises `BadField`."""
    said = query.get("status")
    if said is not None and said not in list(Status):
        raise BadField("status", f"{said[:40]!r} is not one of {', '.join(Status)}")
    return None if said is None else Status(said)


def after_in(exchange: Exchange) -> int:
    """Return the number of the last event that the client has; -1 means none. Raises `BadField`.

    `Last-Event-ID`, which a browser sends when it reconnects, overrides `?after=`: the URL still has the old number.
    """
    name, said = "Last-Event-ID", header(exchange, b"last-event-id")
    if not said:
        name, said = "after", query_of(exchange).get("after", "-1")
    digits = said.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len("1000000000000"):
        return int(said)
    raise BadField(name, f"{said[:40]!r} is not the number of an event")
