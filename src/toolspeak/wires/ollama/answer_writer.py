"""Writes an answer for an Ollama client, streamed or whole, and errors."""

from collections.abc import Iterable

from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Request
from toolspeak.ir.turn import Turn
from toolspeak.wires.ollama.request_reader import object_bytes
from toolspeak.wires.shared.calls import CallSequencer
from toolspeak.wires.shared.failures import ENDED_IN_ERROR, http_status
from toolspeak.wires.shared.interface import ErrorBody, Stamp
from toolspeak.wires.shared.json_body import dump_body, quote

_NANOSECONDS = 1_000_000_000
_GOES_ON = b'},"done":false}\n'


def stream_type(request: Request) -> str:
    """Return the media type."""
    del request
    return "application/x-ndjson"


class OllamaEncoder:
    """Writes one streamed answer.

    Text is the hot path: a chunk is one quoted string between two byte strings that are made once per answer.
    """

    def __init__(self, request: Request, stamp: Stamp) -> None:
        """Start an answer to `request`."""
        self._text = _head(request, stamp)
        self._empty = self._text + b'""'
        self._thought = self._empty + b',"thinking":'
        self._called = self._empty + b',"tool_calls":['
        self._sequence = CallSequencer()
        self._only_text = True  # no call so far: text need not pass the sequencer
        self._name = ""
        self._arguments: list[str] = []
        """Arguments of the open call: calls are sent whole."""
        self._sent = 0
        self._elapsed = stamp.elapsed
        self._first: float | None = None
        """Seconds until the first event, which is when the upstream has read the prompt."""

    def encode(self, events: Iterable[Event]) -> bytes:
        """Return the bytes for these events."""
        out: list[bytes] = []
        if self._first is None:
            self._first = self._elapsed()
        for event in events:
            if type(event) is TextDelta and self._only_text:
                out += (self._text, quote(event.text), _GOES_ON) if event.text else ()
                continue
            for one in self._sequence.feed(event):
                self._other(one, out)
        return b"".join(out)

    def keep_alive(self) -> bytes:
        """Return a line with an empty text: a blank line breaks ollama-python."""
        return self._empty + _GOES_ON

    def _other(self, event: Event, out: list[bytes]) -> None:
        match event:
            case TextDelta(text):
                out += (self._text, quote(text), _GOES_ON) if text else ()
            case ReasoningDelta(text):
                out += (self._thought, quote(text), _GOES_ON) if text else ()
            case CallStarted(_, name):
                self._only_text = False
                self._name, self._arguments = name, []
            case ArgsDelta(_, json):
                self._arguments.append(json)
            case CallEnded(id):
                self._call_ended(id, out)
            case Finished(StopReason.ERROR):
                self._failed(ENDED_IN_ERROR, out)
            case Finished(stop, usage):
                out += (self._empty, _end(stop, usage, self._elapsed(), self._first or 0.0), b"\n")
            case Failed(failure):
                self._failed(failure, out)
            case CallRejected() | Discarded():
                pass

    def _call_ended(self, id: str, out: list[bytes]) -> None:
        call = _call(self._sent, id, self._name, "".join(self._arguments))
        out += (self._called, call, b"]", _GOES_ON)
        self._sent += 1

    def _failed(self, failure: Failure, out: list[bytes]) -> None:
        out += (dump_body(error_body(failure)), b"\n")


def encode_turn(request: Request, stamp: Stamp, turn: Turn) -> bytes:
    """Write a whole answer."""
    out = [_head(request, stamp), quote(turn.text)]
    if turn.reasoning:
        out += (b',"thinking":', quote(turn.reasoning))
    if turn.calls:
        calls = (_call(index, call.id, call.name, call.arguments) for index, call in enumerate(turn.calls))
        out += (b',"tool_calls":[', b",".join(calls), b"]")
    return b"".join((*out, _end(turn.stop, turn.usage, stamp.elapsed(), 0.0)))


def _head(request: Request, stamp: Stamp) -> bytes:
    marks = dump_body({"model": request.model, "created_at": rfc3339(stamp.created)})
    return marks[:-1] + b',"message":{"role":"assistant","content":'


def _call(index: int, id: str, name: str, arguments: str) -> bytes:
    function = b'{"index":%d,"name":%b,"arguments":%b}' % (index, quote(name), object_bytes(arguments))
    return b'{"id":%b,"function":%b}' % (quote(id), function)


def _end(stop: StopReason | None, usage: Usage, total: float, first: float) -> bytes:
    end = {"done": True, "done_reason": done_reason(stop), **usage_body(usage, total, first)}
    return b"}," + dump_body(end)[1:]


def done_reason(stop: StopReason | None) -> str:
    """Return the reason for the end; calls are a plain stop here."""
    return "length" if stop is StopReason.LENGTH else "stop"


def usage_body(usage: Usage, total: float = 0.0, first: float = 0.0) -> JsonObject:
    """Write token counts, and durations in nanoseconds, as the gateway sees them.

    `first` is the time to the first event. Without a stream nothing is seen before the end, so all of the time counts
    as generation: clients divide the tokens by it. The time to load the model is the upstream's, and unknown here.
    """
    return {
        "total_duration": round(total * _NANOSECONDS),
        "load_duration": 0,
        "prompt_eval_count": usage.input_tokens,
        "prompt_eval_duration": round(first * _NANOSECONDS),
        "eval_count": usage.output_tokens,
        "eval_duration": round((total - first) * _NANOSECONDS),
    }


# ---------------------------------------------------------------- dates
#
# The core reads no calendar, so that dates are computed here, after Howard Hinnant's `civil_from_days`: a year begins
# in March, which makes the leap day its last day, and 400 such years (an era) always have the same number of days.

_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60
_BEFORE_1970 = 719_468  # days since the first of March of the year 0
_ERA = 146_097
_CENTURY = 36_524
_FOUR_YEARS = 1_460
_YEAR = 365
_FIVE_MONTHS = 153
_MARCH = 3


def rfc3339(seconds: int) -> str:
    """Write seconds since 1970 as a date and time in UTC: `2026-01-02T03:04:05Z`."""
    days, rest = divmod(seconds, _DAY)
    year, month, day = _date(days)
    hour, rest = divmod(rest, _HOUR)
    minute, second = divmod(rest, _MINUTE)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def _date(days: int) -> tuple[int, int, int]:
    era, day = divmod(days + _BEFORE_1970, _ERA)
    year = (day - day // _FOUR_YEARS + day // _CENTURY - day // (_ERA - 1)) // _YEAR
    day -= _YEAR * year + year // 4 - year // 100
    month = (5 * day + 2) // _FIVE_MONTHS
    day -= (_FIVE_MONTHS * month + 2) // 5
    carry, month = divmod(month + _MARCH - 1, 12)
    return era * 400 + year + carry, month + 1, day + 1


# ---------------------------------------------------------------- errors


def encode_failure(failure: Failure, stamp: Stamp) -> ErrorBody:
    """Write an error that is sent instead of an answer."""
    del stamp
    return ErrorBody(http_status(failure), dump_body(error_body(failure)))


def error_body(failure: Failure) -> JsonObject:
    """Write the body of an error, also for an error inside a stream; clients ignore one with an empty text."""
    return {"error": failure.message or failure.kind.value}
