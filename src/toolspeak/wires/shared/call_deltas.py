"""Merges fragments of native tool calls, as real servers send them.

Names come repeated in full, or in pieces; indices are missing, or all zero; arguments are sent again at the end, or two
calls share one index. Neither `=` nor `+=` is right for all servers: what is already complete decides.
"""

import re
from dataclasses import dataclass, field

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallRejected, CallStarted, Discarded, Event, Why
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.jsonspan import JsonSpan, SpanStatus
from toolspeak.wires.shared.calls import FreshIds, arguments_json
from toolspeak.wires.shared.tools import ToolNames

MAX_SIZE = 8 * 1024 * 1024
"""Characters of arguments in one response."""
_LONG_INDEX = 9
_CALL_SIZE = 1024  # added for each call, so that the limit on size also limits the number of calls
_BLANK = re.compile(r"\s*")


@dataclass(slots=True, eq=False)
class _CallState:
    native_id: str = ""
    id: str = ""
    name: str = ""
    started: bool = False
    ended: bool = False
    said: list[str] = field(default_factory=list[str])
    span: JsonSpan = field(default_factory=JsonSpan)
    extra: list[str] = field(default_factory=list[str])
    """Text after the complete arguments: the same again, those of another call, or nonsense."""
    extra_span: JsonSpan = field(default_factory=JsonSpan)

    @property
    def whole(self) -> bool:
        return self.span.status is SpanStatus.DONE


class CallDeltas:
    """Turns the fragments of one response into call events.

    A call ends when its arguments are complete and something else follows, or when the response ends normally. Its
    arguments are passed on as they came; checking them is the engine's job.
    """

    def __init__(self, names: ToolNames, ids: FreshIds) -> None:
        """Map names back with `names`, which also tell when a name is complete, and ids with `ids`."""
        self._names = names
        self._ids = ids
        self._open: dict[_CallState, None] = {}  # in the order in which they started
        self._complete: list[_CallState] = []
        self._with_extra: dict[_CallState, None] = {}  # calls that have text after their arguments
        self._size = 0
        self._last: _CallState | None = None
        self._by_id: dict[str, _CallState] = {}
        self._at_index: dict[int, _CallState] = {}
        self._events: list[Event] = []

    @property
    def any(self) -> bool:
        """Whether there was a call."""
        return self._last is not None

    def feed(self, fragments: Json) -> list[Event]:
        """Take the `tool_calls` of one delta; anything but a list of objects has no calls."""
        for fragment in fragments if isinstance(fragments, list) else ():
            if isinstance(fragment, dict):
                self._merge(fragment)
        return self._told()

    def pause(self) -> list[Event]:
        """End the complete calls, because something else follows."""
        self._pause()
        return self._told()

    def finish(self, problem: Problem | None) -> list[Event]:
        """End the calls that are still open; after a `problem`, reject those that it may have cut (P3)."""
        for call in list(self._open):
            if problem is Problem.DISCONNECTED or (
                problem is Problem.TRUNCATED and not (call.whole and not call.extra)
            ):
                self._reject(call, problem)
            else:
                self._end(call)
        self._events += [Discarded(Why.DEBRIS, "".join(call.extra)) for call in self._with_extra if call.extra]
        return self._told()

    def _pause(self) -> None:
        for call in self._complete:
            self._end(call)
        self._complete.clear()

    def _told(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _merge(self, fragment: JsonObject) -> None:
        function = fragment.get("function")
        function = function if isinstance(function, dict) else {}
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        arguments = function.get("arguments") or ""
        call = self._call_of(fragment, name, says=bool(name or arguments))
        if call is None:
            return
        self._name(call, name)
        if arguments:
            text = arguments_json(arguments)
            self._count(len(text))
            self._start(call)
            self._grow(call, text)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MAX_SIZE:
            raise BadFrame(f"the arguments of one response have {self._size} characters, at most {MAX_SIZE} are read")

    def _call_of(self, fragment: JsonObject, name: str, *, says: bool) -> _CallState | None:
        index, id = _index(fragment.get("index")), fragment.get("id")
        id = id if isinstance(id, str) else ""
        last = self._last
        there = self._at_index.get(index) if index is not None else None
        known = self._by_id.get(id) if id else None
        # The order matters. An id is the strongest sign, unless the server reuses it for another call; then the index,
        # unless the server sends `index: 0` for every call; then the last call, for fragments with neither.
        if known is not None and not _is_elsewhere(known, there, index) and not _has_another_name(known, name):
            return known
        if there is not None and not _is_another(there, id, name):
            return there
        if last is not None and not name and _goes_on(last, id, index):
            return last
        return self._new(id, index) if says else None

    def _new(self, id: str, index: int | None) -> _CallState:
        self._count(_CALL_SIZE)
        self._pause()
        call = self._last = _CallState(id)
        self._open[call] = None
        if id:
            self._by_id[id] = call
        if index is not None:
            self._at_index[index] = call
        return call

    def _name(self, call: _CallState, piece: str) -> None:
        if call.started:
            return
        self._count(max(0, len(call.name) + len(piece) - _CALL_SIZE))
        # MiniMax repeats the whole name in every fragment, Gemini's compatible endpoint sends it in pieces. So a name
        # grows until it is that of a tool, and a repetition does not count.
        if piece != call.name and call.name not in self._names.known:
            call.name += piece
        if call.name in self._names.known:
            self._start(call)

    def _start(self, call: _CallState) -> None:
        if not call.started:
            call.started = True
            call.id = self._ids.take(call.native_id)
            self._events.append(CallStarted(call.id, self._names.back(call.name), call.native_id))

    def _grow(self, call: _CallState, text: str) -> None:
        if call.whole:
            self._read_extra(call, text)
            return
        end = call.span.feed(text) if call.span.status is SpanStatus.OPEN else len(text)
        if not call.whole:
            end = len(text)
        else:
            self._complete.append(call)
        self._say(call, text[:end])
        if text[end:].strip():
            self._read_extra(call, text[end:])

    def _read_extra(self, call: _CallState, text: str) -> None:
        """Read text after complete arguments: a repetition is dropped, other arguments are another call."""
        pos = 0
        while pos < len(text) and (call.extra or not _BLANK.fullmatch(text, pos)):
            end = call.extra_span.feed(text, pos)
            if call.extra_span.status is not SpanStatus.DONE:
                call.extra.append(text[pos:])
                self._with_extra[call] = None
                return
            value = "".join((*call.extra, text[pos:end]))
            call.extra, call.extra_span = [], JsonSpan()
            if value.strip() != "".join(call.said).strip():
                self._split(call, value)
            pos = end

    def _split(self, call: _CallState, arguments: str) -> None:
        """Continue with another call of the same name, in the place of this one."""
        self._count(_CALL_SIZE)
        self._end(call)
        self._open[call] = None
        call.native_id, call.started, call.ended = "", False, False
        call.said, call.span = [], JsonSpan()
        self._start(call)
        self._grow(call, arguments)

    def _say(self, call: _CallState, text: str) -> None:
        call.said.append(text)
        self._events.append(ArgsDelta(call.id, text))

    def _end(self, call: _CallState) -> None:
        if call.ended:
            return
        self._start(call)
        if call.extra:
            self._say(call, "".join(call.extra))
            call.extra = []
        if not "".join(call.said).strip():
            self._say(call, "{}")
        call.ended = True
        self._open.pop(call, None)
        self._events.append(CallEnded(call.id))

    def _reject(self, call: _CallState, problem: Problem) -> None:
        if not call.ended:
            call.ended = True
            self._events.append(CallRejected(Complaint(problem, call.name), "".join((*call.said, *call.extra))))
            call.extra = []


def _index(value: Json) -> int | None:
    """Read an index; one server writes it as a string."""
    if isinstance(value, str) and value.isdecimal() and len(value) < _LONG_INDEX:
        return int(value)
    return value if isinstance(value, int) else None


def _goes_on(last: _CallState, id: str, index: int | None) -> bool:
    """Whether a fragment without a name continues the last call: after a bare name, or without an id and index."""
    if not id:
        return index is None or not last.said
    return index is None and not last.whole


def _is_another(there: _CallState, id: str, name: str) -> bool:
    """Whether a fragment for the index of this call starts another call."""
    if id and there.native_id:
        return bool(name) or there.whole
    return _has_another_name(there, name)


def _is_elsewhere(known: _CallState, there: _CallState | None, index: int | None) -> bool:
    """Whether a known id comes at another index, for another call."""
    return known.whole and index is not None and there is not known


def _has_another_name(call: _CallState, name: str) -> bool:
    return call.whole and name not in ("", call.name)
