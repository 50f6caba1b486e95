"""The `tool_use` blocks of one answer, told as calls.

A block stops even where the limit of tokens cut it. So a call ends with its block only if its arguments are whole;
where that cannot be seen (none came, or all came at once), it ends when something else follows (P3).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolspeak.errors import BadFrame
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallRejected, CallStarted, Event
from toolspeak.text.jsonspan import JsonSpan, Status
from toolspeak.wires._arguments import is_json
from toolspeak.wires._deltas import MAX_SIZE
from toolspeak.wires._ids import FreshIds
from toolspeak.wires._names import Names

_CALL_SIZE = 1024  # what a call without arguments counts for: a bound for their number, too
_NO_ARGUMENTS = frozenset({"", "{}", "null"})


@dataclass(slots=True, eq=False)
class _Growing:
    id: str
    name: str
    preset: str = ""
    """The arguments that stood in the block's start."""
    said: list[str] = field(default_factory=list[str])


class CallBlocks:
    """Takes the blocks of one answer as they start, grow and stop."""

    def __init__(self, names: Names, ids: FreshIds) -> None:
        """Take the tools' names and the ids of the conversation."""
        self._names = names
        self._ids = ids
        self._open: dict[int | None, _Growing] = {}
        self._stopped: _Growing | None = None
        """A call whose block has stopped, but which may have been cut."""
        self._size = 0
        self.any = False
        """Whether a call has ended well."""

    def start(self, index: int | None, name: str, native_id: str, preset: str) -> Iterable[Event]:
        """Begin a call."""
        self._count(_CALL_SIZE + len(preset))
        yield from self.stop(index)
        yield from self.pause()
        call = _Growing(self._ids.take(native_id), self._names.back(name), "" if preset in _NO_ARGUMENTS else preset)
        self._open[index] = call
        yield CallStarted(call.id, call.name, native_id)

    def grow(self, index: int | None, piece: str) -> Iterable[Event]:
        """Take more of the arguments; those of blocks that are no calls of ours are nobody's."""
        call = self._open.get(index)
        if call is not None and piece:
            self._count(len(piece))
            call.said.append(piece)
            yield ArgsDelta(call.id, piece)

    def stop(self, index: int | None) -> Iterable[Event]:
        """Take the end of a block."""
        call = self._open.pop(index, None)
        if call is None:
            return
        yield from self.pause()
        if call.said and is_json("".join(call.said)):
            yield from self._end(call)
        else:
            self._stopped = call

    def pause(self) -> Iterable[Event]:
        """Something else follows: what has stopped before it was not cut by the end of the answer."""
        call, self._stopped = self._stopped, None
        if call is not None:
            yield from self._settle(call, None)

    def finish(self, problem: Problem | None) -> Iterable[Event]:
        """End or reject the calls that are left; a `problem` may have cut them."""
        left = [*self._open.values(), *([self._stopped] if self._stopped else [])]
        self._open, self._stopped = {}, None
        for call in left:
            yield from self._settle(call, problem)

    def _settle(self, call: _Growing, problem: Problem | None) -> Iterable[Event]:
        said = "".join(call.said)
        whole = bool(said.strip()) and is_json(said)
        if problem is Problem.DISCONNECTED or (problem is not None and not whole):
            yield self._rejected(call, problem)
        elif not said.strip() or whole or not _is_cut(said):
            yield from self._end(call)
        else:
            yield self._rejected(call, Problem.TRUNCATED)

    def _end(self, call: _Growing) -> Iterable[Event]:
        self.any = True
        if not "".join(call.said).strip():
            yield ArgsDelta(call.id, call.preset or "{}")
        yield CallEnded(call.id)

    def _rejected(self, call: _Growing, problem: Problem) -> CallRejected:
        return CallRejected(Complaint(problem, call.name), "".join(call.said) or call.preset)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MAX_SIZE:
            raise BadFrame(f"the arguments of one response have {self._size} characters, at most {MAX_SIZE} are read")


def _is_cut(text: str) -> bool:
    """Return whether more could have made JSON of a text that is none."""
    span = JsonSpan()
    span.feed(text.lstrip())
    return span.status is Status.OPEN
