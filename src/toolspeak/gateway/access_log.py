"""Writes the access log: one line for each request, as text for people or as JSON for programs (OBS-1, OBS-6).

    09:11:06 200 /v1/messages anna@127.0.0.1 qwen3@box emulated 1 call 812+43 tok 0.41/3.10 s 7f3a21bc
    09:11:09 WARNING 429 /v1/messages anna@127.0.0.1 our limit: … (requests_per_minute) 0.00 s 0b12c9aa

An entry is filled while its request is answered and formatted once, at its end: a chunk of a stream costs nothing.

Clients choose paths and model names. So every word that is not ours is escaped and shortened: it can neither forge a
line or a field, nor reach the terminal as a control character. The texts of upstreams' errors are not logged at all,
because they may quote a prompt or a key.
"""

import json
import logging
import traceback
from dataclasses import dataclass
from enum import StrEnum
from time import gmtime, strftime
from typing import Final

from typing_extensions import override

from toolspeak.config.shape import LogForm
from toolspeak.engine.effects import Outcome
from toolspeak.engine.plan import Plan, Way
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import CallStarted, Failed
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.json import Json, JsonObject
from toolspeak.runtime.directory import Route
from toolspeak.runtime.turn_progress import TurnProgress

_LOG: Final = logging.getLogger(__name__)
WIDTH: Final = 120
"""Columns of a text line, with its time and its level."""
_TIME, _LEVEL = len("09:11:06 "), len("WARNING ")
_SHORTEST, _LONGEST = 12, 200
"""Characters to which a word may be cut in a text line, and to which each word is cut in every form."""
_LONGEST_REASON: Final = 400
_WHY: Final = 48
"""Columns that a reason may take from the names beside it in a text line."""
_TRACE: Final = 8
"""Characters of the trace in a text line."""
_HUNG_UP: Final = 499
"""The status that nginx logs for a client that closed the connection before it got one."""
_FIRST_SERVER_ERROR, _FIRST_ERROR = 500, 400
_EXACT: Final = 10.0
"""Seconds below which hundredths are shown."""
_NO_BASIS: Final = (0, "")


class Fault(StrEnum):
    """Whose fault it is that a request failed."""

    CLIENT = "client"
    HUNG_UP = "client hung up"
    LIMIT = "our limit"
    UPSTREAM = "upstream"
    SHUTDOWN = "shutdown"
    GATEWAY = "gateway"


@dataclass(slots=True)
class AccessEntry:
    """What the log says about one request. `str` is its text line, `fields` its JSON."""

    trace: str
    method: str
    path: str
    client: str
    """The address of the connection: that of the proxy, where one is in front."""
    wire: str
    started: float
    """Monotonic seconds."""
    is_check: bool = False
    """A health check, or a scrape of metrics. It is logged only if it fails: programs send one each second."""
    tenant: str = ""
    model: str = ""
    """As the client wrote it."""
    upstream: str = ""
    upstream_model: str = ""
    is_listed: bool = False
    """The upstream lists the model, or the operator named it: its name is no invention of the client."""
    plan: Plan | None = None
    """The plan that a turn began with."""
    fallback: str = ""
    """Why another model than that of the request took the turn; empty if none did."""
    progress: TurnProgress | None = None
    """How far a turn is; None for other requests."""
    body_seconds: float = 0.0
    """How long the client of a turn took to send the body of its request."""
    status: int = 0
    outcome: Outcome | None = None
    first_byte: float | None = None
    """Monotonic seconds at which the first content of a stream was sent; a keep-alive is no content."""
    seconds: float = 0.0
    fault: Fault | None = None
    failure: Failure | None = None
    was_slow: bool = False
    """The log has said what this turn waits for."""

    def goes_to(self, route: Route) -> None:
        """Note which model of which upstream answers."""
        self.upstream, self.upstream_model, self.is_listed = route.place, route.model, route.is_real

    def falls_back(self, route: Route, plan: Plan, why: str) -> None:
        """Note that another model takes the turn, and why."""
        self.goes_to(route)
        self.plan, self.fallback = plan, why

    def fail(self, fault: Fault, failure: Failure | None = None) -> None:
        """Note that the request failed. The first failure is kept: a later one is its consequence."""
        if self.fault is None:
            self.fault, self.failure = fault, failure

    def end(self, status: int, now: float) -> None:
        """Write the line. `status` is the one that was sent, 0 if the client hung up before that.

        If a guardrail took a call away, a second line says which and why (CHK-16): the model seems to have made none.
        """
        self.status, self.seconds = status or _HUNG_UP, now - self.started
        outcome = self.outcome
        last = outcome.events[-1] if outcome is not None and outcome.events else None
        if isinstance(last, Failed):  # after the beginning of a stream: its head said 200
            self.fail(Fault.UPSTREAM, last.failure)
        _LOG.log(self.level, self)
        if outcome is not None and any(one.problem is Problem.UNRELATED for one in outcome.complaints):
            _LOG.info("%s %s", self.trace[:_TRACE], safe_words(outcome.taken.why))

    @property
    def level(self) -> int:
        """The level: an error where an operator must act, a warning where a client must."""
        match self.fault:
            case None:
                return logging.DEBUG if self.is_check else logging.INFO
            case Fault.HUNG_UP:  # people stop their agents all the time; one that waited for long may have timed out
                return logging.WARNING if self.was_slow else logging.INFO
            case Fault.GATEWAY:
                return logging.ERROR
            case Fault.UPSTREAM:
                answered = _FIRST_ERROR <= self.status < _FIRST_SERVER_ERROR
                return logging.WARNING if answered else logging.ERROR
            case _:
                return logging.WARNING

    @property
    def way(self) -> str:
        """How tools were handled: native, rescued (native, with calls that came as text), emulated, plain or off."""
        return mode_of(self.outcome.taken, self.outcome.rescued) if self.outcome is not None else ""

    @property
    def mode(self) -> str:
        """The same, also for a turn that failed: then as it was planned. Empty for other requests."""
        return self.way or (mode_of(self.plan) if self.plan is not None else "")

    @property
    def calls(self) -> int:
        """The number of calls that the client got."""
        return sum(type(event) is CallStarted for event in self.outcome.events) if self.outcome is not None else 0

    @property
    def reason(self) -> str:
        """Why the request failed, in our own words or as the kind of the upstream's error."""
        failure = self.failure
        if failure is None:
            return ""
        # A failure with a basis was read from the upstream's text.
        if self.fault is Fault.UPSTREAM and failure.basis != _NO_BASIS:
            return f"{failure.kind} ({failure.status})"
        return safe_words(failure.message)

    @override
    def __str__(self) -> str:
        return self.line(WIDTH)

    def line(self, width: int) -> str:
        """Return the text line for a log of so many columns."""
        room = width - _TIME - (_LEVEL if self.level > logging.INFO else 0)
        named = safe_name(self.path), safe_name(self._sender), self._destination
        facts, why = " ".join(self._facts()), self._why
        left = room - len(f"{self.status} ") - len(facts) - sum(map(bool, named))
        names = _fitted(*named, left - min(len(why), _WHY) - bool(why))
        why = _cut(why, left - sum(map(len, names)) - 1)
        return " ".join(part for part in (str(self.status), *names, why, facts) if part)

    @property
    def _why(self) -> str:
        if self.fault is None:
            return ""
        return f"{self.fault}: {self.reason}" if self.reason else self.fault.value

    def _facts(self) -> list[str]:
        found: list[str] = []
        if (outcome := self.outcome) is not None:
            usage, complaints = outcome.usage, len(outcome.complaints)
            found += [self.way] if self.fault is None else []
            found += [_counted(self.calls, "call")] if self.calls else []
            found += [_counted(complaints, "complaint")] if complaints else []
            tokens = f"{usage.input_tokens}+{usage.output_tokens}"
            found += [f"{tokens} tok"] if self.fault is None or tokens != "0+0" else []
        first = "" if self.first_byte is None else f"{_duration(self.first_byte - self.started)}/"
        return [*found, f"{first}{_duration(self.seconds)} s", self.trace[:_TRACE]]

    @property
    def _sender(self) -> str:
        return f"{self.tenant}@{self.client}" if self.tenant else self.client

    @property
    def _destination(self) -> str:
        named = safe_name(self.upstream_model or self.model)
        return f"{named}@{safe_name(self.upstream)}" if self.upstream else named

    def fields(self) -> JsonObject:
        """Return everything that is known, under names that stay."""
        outcome, failure = self.outcome, self.failure
        first = None if self.first_byte is None else round(self.first_byte - self.started, 4)
        found: JsonObject = {
            "trace": self.trace,
            "tenant": self.tenant,
            "client": self.client,
            "method": safe_name(self.method),
            "path": safe_name(self.path),
            "wire": self.wire,
            "model": safe_name(self.model),
            "upstream": safe_name(self.upstream),
            "upstream_model": safe_name(self.upstream_model),
            "status": self.status,
            "ok": self.fault is None,
            "first_byte_seconds": first,
            "seconds": round(self.seconds, 4),
        }
        if outcome is not None:
            found |= {
                "tools": self.way,
                "plan": safe_words(outcome.taken.line),
                "refused": outcome.refused.value if outcome.refused else None,
                "requests": outcome.requests,
                "calls": self.calls,
                "complaints": len(outcome.complaints),
                "input_tokens": outcome.usage.input_tokens,
                "output_tokens": outcome.usage.output_tokens,
            }
        if self.fallback:
            found["fallback"] = self.fallback
        if self.fault is not None:
            kind: Json = failure.kind.value if failure is not None else None
            found |= {"fault": self.fault.value, "kind": kind, "reason": self.reason}
        return found


def mode_of(plan: Plan, rescued: int = 0) -> str:
    """Return how a turn handles tools, as `AccessEntry.way` lists it; `rescued` are its calls that came as text."""
    if plan.way is Way.FORCE:
        return "emulated"
    if plan.way in (Way.NATIVE, Way.FALLBACK):
        return "rescued" if rescued else "native"
    return plan.way.value


def fault_of(failure: Failure) -> Fault:
    """Return whose fault a refusal of the gateway itself is: our limit, or the client's request."""
    is_limit = failure.kind in (FailureKind.RATE_LIMITED, FailureKind.TRANSIENT, FailureKind.TOO_LARGE)
    return Fault.LIMIT if is_limit else Fault.CLIENT


def safe_name(name: str) -> str:
    """Return a name in visible ASCII without blanks, shortened: it cannot forge a field or a line."""
    return ascii(name[:_LONGEST])[1:-1].replace(" ", "\\x20")


def safe_words(text: str) -> str:
    """Return a sentence in visible ASCII on one line, shortened."""
    return ascii(text[:_LONGEST_REASON])[1:-1].replace("\\'", "'")


def _fitted(path: str, sender: str, destination: str, room: int) -> list[str]:
    """Cut the names until they fit, none below `_SHORTEST`: the path first, because the status tells most about it."""
    path = _cut(path, max(_SHORTEST, room - len(sender) - len(destination)))
    destination = _cut(destination, max(_SHORTEST, room - len(sender) - len(path)))
    return [path, _cut(sender, max(_SHORTEST, room - len(path) - len(destination))), destination]


def _cut(text: str, most: int) -> str:
    """Return the text, or its beginning and its end with `..` between them."""
    if len(text) <= most or not text:
        return text
    kept = max(most - 2, 2)
    return f"{text[: kept - kept // 2]}..{text[len(text) - kept // 2 :]}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _duration(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < _EXACT else f"{seconds:.0f}"


# ---------------------------------------------------------------- formatters


class TextFormatter(logging.Formatter):
    """Lines for people: the time of day, the level unless it is INFO, and the message."""

    def __init__(self, worker: int = 0) -> None:
        """Take the number of the worker; 0 for a gateway of one process. Its supervisor puts the mark in front."""
        super().__init__()
        self._width: Final = WIDTH - len(worker_mark(worker)) if worker else WIDTH

    @override
    def format(self, record: logging.LogRecord) -> str:
        time = self.formatTime(record, "%H:%M:%S")
        level = "" if record.levelno == logging.INFO else f"{record.levelname} "
        message = record.msg.line(self._width) if isinstance(record.msg, AccessEntry) else record.getMessage()
        text = f"{time} {level}{message}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """One JSON object on one line for each record; `event` is `request` for the access log, else `log`."""

    def __init__(self, worker: int = 0) -> None:
        """Take the number of the worker; 0 for a gateway of one process."""
        super().__init__()
        self._worker: Final = worker

    @override
    def format(self, record: logging.LogRecord) -> str:
        time = f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(record.created))}.{int(record.msecs):03d}Z"
        line: JsonObject = {"time": time, "level": record.levelname.lower()}
        line |= {"worker": self._worker} if self._worker else {}
        if isinstance(record.msg, AccessEntry):
            line |= {"event": "request", **record.msg.fields()}
        else:
            line |= {"event": "log", "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["exception"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line)


def formatter(form: LogForm, worker: int = 0) -> logging.Formatter:
    """Return the formatter of the whole log; of one worker, if there are several."""
    return JsonFormatter(worker) if form is LogForm.JSON else TextFormatter(worker)


def worker_mark(number: int) -> str:
    """Return what is in front of each text line of a worker."""
    return f"[{number}] "
