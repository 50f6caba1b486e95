"""What a client asks of runs, read and held against what the configuration offers.

A run works on this machine, so nothing in a request widens what it may do: its folder, its tools and how much it may do
without a person's word are those of `[runs]`, or less.
"""

from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

from toolspeak.config.shape import Offer
from toolspeak.engine.agent import Status
from toolspeak.engine.journal import compact_from
from toolspeak.engine.plan import Settings
from toolspeak.errors import BadField
from toolspeak.gateway.exchange import Exchange, header
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Sampling
from toolspeak.runs.spec import Spec, misfit, said_as
from toolspeak.runtime.tools.approval import Approval
from toolspeak.runtime.tools.toolbox import OUTPUT

LIMIT, MOST = 50, 1000
"""Runs of a list: unless a client says otherwise, and at most."""
_MOST_OUTPUT: Final = 1 << 16
_MODES: Final = list(Approval)
T = TypeVar("T")


class AskedRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a start: the fields of a spec, and an id for those who may have to ask twice."""

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


class AskedWord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a word on a call."""

    allowed: bool
    reason: str = ""


def read_body(body: bytes, kind: type[T]) -> T:
    """Read a body; what is wrong names its field."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise misfit(error) from None


def spec_of(asked: AskedRun, offer: Offer, tenant: str) -> Spec:
    """Make the spec of a run, or say which field asks for more than is offered."""
    if not asked.task.strip():
        raise BadField("task", "it is empty: it says what to do")
    said_as(Settings, asked.settings, "settings")
    said_as(Sampling, asked.sampling, "sampling")
    return Spec(
        asked.task,
        asked.model,
        asked.system,
        _tools(asked.tools, offer),
        _folder(asked.folder, offer),
        _approval(asked.approval, offer),
        _within("rounds", offer.rounds if asked.rounds is None else asked.rounds, offer.rounds),
        _within("output", asked.output, _MOST_OUTPUT),
        _history(asked.history),
        asked.settings,
        asked.sampling,
        tenant,
    )


def _tools(asked: tuple[str, ...] | None, offer: Offer) -> tuple[str, ...]:
    if asked is None:
        return tuple(name for name in Spec("").tools if name in offer.tools)
    for name in asked:
        if name not in offer.tools:
            raise BadField("tools", f"{name[:80]!r} is not offered; those that are: {', '.join(offer.tools) or 'none'}")
    return asked


def _folder(asked: str, offer: Offer) -> str:
    """Take only a folder that is listed as it stands: what lies below one, a run could make a link of."""
    if asked and asked not in offer.folders:
        raise BadField("folder", f"{asked[:80]!r} is not offered; leave it out for one of the run's own")
    return asked


def _approval(asked: Approval | None, offer: Offer) -> Approval:
    most = _MODES.index(offer.approval)
    wanted = min(_MODES.index(Approval.ASK), most) if asked is None else _MODES.index(asked)
    if wanted > most:
        raise BadField("approval", f"{asked!s} is not offered; the modes that are: {', '.join(_MODES[: most + 1])}")
    return _MODES[wanted]


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
    """Read what stands behind the question mark."""
    return dict(parse_qsl(exchange.query))


def limit_in(query: dict[str, str]) -> int:
    """Return how many runs are asked for."""
    said = query.get("limit", str(LIMIT))
    if not said.isascii() or not said.isdecimal() or len(said) > len(str(MOST)):
        raise BadField("limit", f"{said[:40]!r} is not an integer from 1 to {MOST}")
    return _within("limit", int(said), MOST)


def status_in(query: dict[str, str]) -> Status | None:
    """Return how the runs stand that are asked for."""
    said = query.get("status")
    if said is not None and said not in list(Status):
        raise BadField("status", f"{said[:40]!r} is not one of {', '.join(Status)}")
    return None if said is None else Status(said)


def after_in(exchange: Exchange) -> int:
    """Return the number behind which events are wanted: what a browser says when it comes back goes first."""
    name, said = "Last-Event-ID", header(exchange, b"last-event-id")
    if not said:
        name, said = "after", query_of(exchange).get("after", "-1")
    digits = said.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) <= len("1000000000000"):
        return int(said)
    raise BadField(name, f"{said[:40]!r} is not the number of an event")
