"""The states of a reader: in text, in a fence, in an echoed result, in a block, in reasoning, and past the end.

    text ──opener──▶ block ──closer, or no call──▶ text or reasoning
    text ──reasoning mark──▶ reasoning ──its closer──▶ text
    reasoning ──opener──▶ block
    text ──fence──▶ fence ──its closing line──▶ text
    text ──tool result before any call──▶ echo ──its closer──▶ text
    text ──tool result after a call, or a limit──▶ past the end

A state consumes from the cursor's window and returns True, or returns False to wait for more text. Each state keeps
only what it needs itself; the window and the place of its first character are the cursor's.
"""

import re
from dataclasses import dataclass, replace
from typing import Final, Protocol, assert_never

from toolspeak.dialects.core.form import NonCall
from toolspeak.dialects.core.grammar import BlockReader, Label, ReasoningMarks, Special, Wrapper
from toolspeak.dialects.core.growth import Growth
from toolspeak.dialects.core.lookup import (
    HELD,
    Beginnings,
    FenceLine,
    FoundMarker,
    LookupContext,
    MarkerTables,
    ReasoningTable,
    Sign,
    result_closers,
)
from toolspeak.dialects.core.output import Delivered, Delivery, Fallback, Output
from toolspeak.dialects.core.quotation import MAX_RUN, Fence, Quotation, fence_at, has_placeholder, next_line
from toolspeak.dialects.core.wrapper import WrapperBlock
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, Discarded, ReasoningDelta, TextDelta, Why
from toolspeak.ir.tool import AUTO, ToolChoice
from toolspeak.ir.turn import PartialCall
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.text.scan import Markers
from toolspeak.toolset.check import Attempt, CallChecker
from toolspeak.toolset.toolset import ToolSet

_SPACE = re.compile(r"\s*")
_INDENT = re.compile(r"[ \t]*")
_TICKS = re.compile(rf"`{{1,{MAX_RUN}}}")
_NO_MARKERS: Final = Markers(())


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read one turn."""

    choice: ToolChoice = AUTO
    stop: tuple[str, ...] = ()
    """Stop sequences that were sent upstream; the text ends before them."""
    calls_in_reasoning: bool = False
    """Take calls out of closed reasoning too: some models never leave it."""
    starts_in_reasoning: bool = False
    """The prompt's template has opened the reasoning already."""
    max_calls: int = 128
    max_block: int = 8 * 1024 * 1024
    """Characters that one block may hold."""
    tells_growth: bool = False
    """Give news of calls while they are written, where their markup leaves no doubt that they are calls (CHK-7)."""


class ReaderState(Protocol):
    """Reads one kind of text."""

    def step(self) -> bool:
        """Consume from the window and return True, or return False to wait for more text."""
        ...


class Cursor:
    """The text that is not decided yet, and the place of its first character."""

    __slots__ = ("is_final", "line_start", "nothing_seen", "nothing_since_call", "out", "quotation", "window")

    def __init__(self, out: Output) -> None:
        """Start at the start of the message, with no text."""
        self.window = ""
        self.is_final = False
        """No more text will come."""
        self.nothing_seen = True
        """Nothing was shown or called yet: this is the start of the message."""
        self.nothing_since_call = True
        """Nothing was shown since the last call, or since the start."""
        self.line_start = False
        self.quotation = Quotation()
        self.out = out

    def take(self, length: int) -> str:
        """Consume that many characters."""
        taken, self.window = self.window[:length], self.window[length:]
        return taken

    def discard(self, length: int) -> None:
        """Consume markup of the protocol."""
        self.out.discard(Why.DEBRIS, self.take(length))

    def hold(self, length: int) -> None:
        """Consume markup that is markup only if nothing but calls and blanks follow, and text otherwise."""
        raw = self.take(length)
        self.out.hold(raw, [Discarded(Why.DEBRIS, raw)], TextDelta)


class ReaderStates:
    """All states of one reader, and the current one."""

    def __init__(self, tables: MarkerTables, tools: ToolSet, checker: CallChecker, options: ReadOptions) -> None:
        """Start in text."""
        self.tables, self.tools, self.options = tables, tools, options
        self.out = Output(options.max_block)
        self.delivery = Delivery(checker, self.out, options.max_calls if options.choice.parallel else 1)
        self.cursor = Cursor(self.out)
        self.fence = InFence(self)
        self.echo = InEcho(self)
        self.reasoning = InReasoning(self)
        self.block = InBlock(self)
        self.end = PastEnd(self)
        self.text = InText(self)
        self.current: ReaderState = self.text

    def release(self) -> None:
        """Let go of the states, which refer to this object: else only the garbage collector would free all of them."""
        del self.fence, self.echo, self.reasoning, self.block, self.text
        self.current = self.end

    def is_plain(self) -> bool:
        """Return whether nothing is held back in text, so that a chunk without a marker is just text."""
        cursor = self.cursor
        return not (
            cursor.window
            or cursor.nothing_since_call
            or cursor.line_start
            or cursor.quotation.active
            or self.out.pending
            or self.fence.around is not None
        )

    def show(self, length: int, *, more: bool = True) -> bool:
        """Release text, and return `more`; in a fence around the whole reply, that makes it an ordinary fence."""
        if not length:
            return more
        cursor = self.cursor
        shown, cursor.window = cursor.window[:length], cursor.window[length:]
        cursor.nothing_since_call = cursor.nothing_seen = False
        cursor.quotation.shown(shown)
        self.out.text(shown)
        around, self.fence.around = self.fence.around, None
        if around is None:
            return more
        self.fence.enter(around)
        return True

    def stop_reading(self, why: Why) -> bool:
        """Discard everything from here on."""
        self.end.why, self.current = why, self.end
        return True


class PastEnd:
    """After a forged result or a limit: the rest of the text is discarded."""

    def __init__(self, states: ReaderStates) -> None:
        """Nothing has ended yet."""
        self._cursor, self._out = states.cursor, states.out
        self.why: Why | None = None
        """Why nothing more is read; None while text is read."""

    def step(self) -> bool:
        """Discard the window."""
        self._out.discard(self.why or Why.LIMIT, self._cursor.take(len(self._cursor.window)))
        return False


class InFence:
    """In an ordinary Markdown fence everything is text, up to the line that closes it."""

    def __init__(self, states: ReaderStates) -> None:
        """No fence is open yet."""
        self._states, self._cursor = states, states.cursor
        self._open: Fence | None = None
        self.around: Fence | None = None
        """A fence around the whole reply, as long as it holds nothing but calls."""

    def enter(self, fence: Fence | None) -> None:
        """Go on inside this fence."""
        self._open, self._states.current = fence, self

    def step(self) -> bool:
        """Show text up to the end of the fence."""
        fence = self._open
        if fence is None:
            self._states.current = self._states.text
            return True
        end, self._open = next_line(fence, self._cursor.window, final=self._cursor.is_final)
        if self._open is None:
            self._states.current = self._states.text
        self._states.show(end)
        return self._open is not fence and bool(self._cursor.window)


class InEcho:
    """In a tool result that the model quotes before any call, and in a declared answer, markers are text."""

    def __init__(self, states: ReaderStates) -> None:
        """No result is quoted yet."""
        self._states, self._cursor = states, states.cursor
        self._closers = _NO_MARKERS
        self._shows_closer = True

    def enter(self, opener: str) -> None:
        """Go on inside a result that began so."""
        self._closers, self._shows_closer = Markers(result_closers(opener), ignore_case=True), True
        self._states.current = self

    def enter_answer(self, ends: tuple[str, ...]) -> None:
        """Go on inside an answer, up to one of its ends, which are read as markup again."""
        self._closers, self._shows_closer = Markers(ends, ignore_case=True), False
        self._states.current = self

    def step(self) -> bool:
        """Show text up to the end of the result or the answer."""
        hit = self._closers.search(self._cursor.window, 0, final=self._cursor.is_final)
        if hit is None or not hit.literal:
            self._states.show(len(self._cursor.window) if hit is None else hit.start)
            return False
        self._states.show(hit.start + (len(hit.literal) if self._shows_closer else 0))
        self._states.current = self._states.text
        return True


class InReasoning:
    """In reasoning: its end, and openers of calls that count only if the reasoning never ends."""

    def __init__(self, states: ReaderStates) -> None:
        """No reasoning has begun yet."""
        self._states, self._cursor, self._out = states, states.cursor, states.out
        self.table: ReasoningTable | None = None
        """The markers of the reasoning that is open, also while a block inside it is read; None outside."""

    def enter(self, marks: ReasoningMarks) -> None:
        """Go on inside reasoning."""
        self.table, self._states.current = self._states.tables.in_reasoning(marks), self

    def step(self) -> bool:
        """Release reasoning up to its end or a call's opener."""
        table = self.table
        if table is None:
            return False
        hit = table.points.search(self._cursor.window, 0, final=self._cursor.is_final)
        if hit is None or hit.literal == "":
            self._release(len(self._cursor.window) if hit is None else hit.start)
            return False
        self._release(hit.start)
        if hit.literal in table.closers or hit.literal in table.stops:
            return self._conclude(len(hit.literal) if hit.literal in table.closers else 0)
        if hit.literal in table.debris:
            self._leftover(len(hit.literal))
        else:
            self._states.block.enter_wrapper(table.openers[hit.literal], hit.literal)
        return True

    def _leftover(self, length: int) -> None:
        """Drop a closer after a call; after thoughts it is one."""
        if self._out.pending:
            self._cursor.discard(length)
        else:
            self._out.thought(self._cursor.take(length))

    def visible(self) -> tuple[str, bool]:
        """Return the text that a block may see, and whether it is final: nothing from the reasoning's own end on."""
        window, is_final = self._cursor.window, self._cursor.is_final
        hit = None if self.table is None else self.table.ends.search(window, 0, final=is_final)
        return (window, is_final) if hit is None else (window[: hit.start], hit.literal != "")

    def _release(self, length: int) -> None:
        """Release reasoning; blanks after a call inside it do not yet decide what that call was."""
        if not length:
            return
        thought = self._cursor.take(length)
        if self._out.pending and not thought.strip():
            self._out.discard(Why.DEBRIS, thought)
        else:
            self._out.thought(thought)

    def _conclude(self, closer: int) -> bool:
        if self._states.options.calls_in_reasoning:
            self._out.commit()
        elif self._out.pending:
            self._out.fail()
        self._cursor.discard(closer)
        self.table, self._states.current = None, self._states.text
        return True


class InBlock:
    """After an opener: a block reads until it has an outcome, which is delivered, or given back as text."""

    def __init__(self, states: ReaderStates) -> None:
        """No block is open yet."""
        self._states, self._cursor, self._out = states, states.cursor, states.out
        self._reasoning = states.reasoning
        self._tools, self._stop = states.tools, states.options.stop
        self._max_block = states.options.max_block
        self._block: BlockReader | None = None
        self._wrapper: Wrapper | None = None
        self._special: Special | None = None
        self._opener = 0  # length of the marker that opened the block, until the block has given an outcome
        self._taken = 0  # the part of that marker which the block does not see
        self._raw: list[str] = []  # the text that the block has consumed since its last outcome
        self._held = 0  # length of `_raw`
        self._waits = 0  # how often calls of tagged values have waited for what follows them, and met text
        self._growth: Growth | None = None
        self._told = 0  # pieces of `_raw` that news of the call had

    def enter_wrapper(self, wrapper: Wrapper, literal: str) -> None:
        """Go on after the opener of a wrapper."""
        self._wrapper = wrapper
        scope = wrapper.scope(self._tools, self._stop, self._states.tables.results)
        if self._states.options.tells_growth:
            self._growth = Growth() if self._is_sure(wrapper) else None
            scope = replace(scope, growth=self._growth)
        block = WrapperBlock(wrapper, scope, self._waits)
        self._enter(block, literal, 0 if wrapper.keep_opener else len(literal))

    def enter_special(self, special: Special, literal: str) -> None:
        """Go on after an opener whose block is no wrapper."""
        self._wrapper, self._special, self._growth = None, special, None
        self._enter(special.kind.new_block(self._tools, self._stop), literal, len(literal))

    def _is_sure(self, wrapper: Wrapper) -> bool:
        """Return whether a call here is one whatever follows it, and nothing before it waits for that."""
        is_tail = wrapper.tail or wrapper.needs_closer or self._states.fence.around is not None
        return wrapper.sure and not is_tail and self._reasoning.table is None and not self._out.pending

    def _tell(self, growth: Growth) -> None:
        """Give news of a call; none if one before it in the same block waits for the end."""
        json = growth.take()
        if json and not self._out.pending:
            raw, self._told = "".join(self._raw[self._told :]), len(self._raw)
            self._out.tell(PartialCall(self._states.delivery.next_id, growth.name, growth.native_id, raw, json))

    def _enter(self, block: BlockReader, literal: str, taken: int) -> None:
        self._block = block
        self._told = 0
        self._raw = [self._cursor.take(taken)]
        self._taken = self._held = taken
        self._opener = max(1, len(literal))
        self._states.current = self

    def step(self) -> bool:
        """Feed the block, and deliver its outcome."""
        block = self._block
        if block is None:
            return False
        cursor = self._cursor
        if self._reasoning.table is None:
            text, final = cursor.window, cursor.is_final
        else:
            text, final = self._reasoning.visible()
        room = self._max_block - self._held
        length, outcome = block.feed(text[:room], final=final and len(text) <= room)
        if outcome is None and len(text) > room:
            outcome = block.settle() if isinstance(block, WrapperBlock) else None
            if outcome is None:
                return self._too_long(room)
        self._raw.append(cursor.window[:length])
        cursor.window = cursor.window[length:]
        self._held += length
        if self._growth is not None:
            self._tell(self._growth)
        if outcome is None:
            return False
        raw = "".join(self._raw)
        self._raw, self._held, self._told = [], 0, 0
        if isinstance(block, WrapperBlock):
            raw = self._look_back(block, raw)
        if block.ended:
            self._block = None
            self._states.current = self._states.text if self._reasoning.table is None else self._reasoning
        if outcome is NonCall.REFUSED and self._opener and isinstance(block, WrapperBlock):
            self._opener = max(self._opener, self._taken + block.last_opener)
        self._deliver(outcome, raw)
        self._opener = 0
        return True

    def _look_back(self, block: WrapperBlock, raw: str) -> str:
        """Return what belongs to the outcome; the text that a call has only looked at is read again."""
        self._waits = block.spent
        if not block.returned:
            return raw
        end = len(raw) - block.returned
        self._cursor.window = raw[end:] + self._cursor.window
        return raw[:end]

    def finish(self) -> None:
        """At the end of the text, release what a block that did not say how it ends has consumed."""
        if self._block is not None or self._cursor.window:
            self._as_it_looks("".join(self._raw) + self._cursor.take(len(self._cursor.window)))

    def _too_long(self, room: int) -> bool:
        raw = "".join(self._raw) + self._cursor.take(room)
        detail = f"the call is longer than {self._max_block} characters"
        self._out.emit([CallRejected(Complaint(Problem.TRUNCATED, None, detail), raw)])
        return self._leave(Why.LIMIT)

    def _leave(self, why: Why) -> bool:
        self._block, self._raw = None, []
        return self._states.stop_reading(why)

    def _deliver(self, outcome: tuple[Attempt, ...] | NonCall, raw: str) -> None:
        match outcome:
            case NonCall.REFUSED:
                self._give_back(raw)
            case NonCall.TEXT | NonCall.SHOWN:
                self._as_it_looks(raw)
            case NonCall.DEBRIS:
                self._out.discard(Why.DEBRIS, raw)
            case NonCall.THOUGHT:
                self._out.thought(raw)
            case NonCall.THINKING:
                self._out.discard(Why.DEBRIS, raw)
                if self._special is not None:
                    self._reasoning.enter(self._special.reasoning[0])
            case NonCall.ANSWER:
                self._out.discard(Why.DEBRIS, raw)
                if self._special is not None:
                    self._states.echo.enter_answer(self._special.answer_ends)
            case _:
                self._attempted(outcome, raw)

    def _as_it_looks(self, raw: str) -> None:
        """Let all of it be text, or reasoning."""
        if self._reasoning.table is not None:
            self._out.thought(raw)
            return
        self._cursor.window = raw + self._cursor.window
        self._states.show(len(raw))
        if raw:
            self._cursor.line_start = raw.endswith("\n")

    def _give_back(self, raw: str) -> None:
        """Let the opener be text, or reasoning, and read on after it.

        Of several openers in a row all but the last are text at once: a block refused after the last one is refused
        after each of them. Reading on after the first took 46 s for 16,000 characters of `>` (functionary; found by the
        fuzzer).
        """
        self._cursor.window = raw + self._cursor.window
        self._as_it_looks(self._cursor.take(self._opener))

    def _attempted(self, attempts: tuple[Attempt, ...], raw: str) -> None:
        delivery = self._states.delivery
        delivered = delivery.deliver(attempts, raw, until_end=self._until_end(attempts))
        if delivered is Delivered.TEXT:
            self._as_it_looks(raw)
            return
        self._cursor.nothing_since_call = True
        self._cursor.nothing_seen = self._states.fence.around is not None
        if delivered in (Delivered.TOO_MANY, Delivered.LOOP):
            self._cursor.window = delivery.rest + self._cursor.window
            self._leave(Why.LIMIT)
        elif any(attempt.cut for attempt in attempts):
            self._leave(Why.LIMIT)

    def _until_end(self, attempts: tuple[Attempt, ...]) -> Fallback | None:
        """Return what calls here turn into if more than blanks and calls follows; None if they are calls for sure."""
        if self._reasoning.table is not None:
            return ReasoningDelta
        tail = self._states.fence.around is not None or (self._wrapper is not None and self._wrapper.tail)
        return TextDelta if tail or any(map(has_placeholder, attempts)) else None


class InText:
    """In visible text: finds openers, fences and quotations."""

    def __init__(self, states: ReaderStates) -> None:
        """Start at the start of the message."""
        self._states, self._cursor, self._out = states, states.cursor, states.out
        self._quotation = states.cursor.quotation
        self.tables = states.tables
        self._beginnings = Beginnings(states.tables, states.tools, states.options.stop)

    def step(self) -> bool:
        """Show text up to the next marker, and act on it."""
        cursor, states = self._cursor, self._states
        if cursor.nothing_since_call or cursor.line_start:
            waits = self._at_beginning()
            if waits is not None:
                return waits
        if self._quotation.active:
            return self._in_quotation()
        hit = self.tables.points.search(cursor.window, 0, final=cursor.is_final)
        if hit is None:
            return states.show(len(cursor.window), more=False)
        if hit.literal == "":
            return states.show(hit.start, more=False)
        if hit.start > 0:
            return states.show(hit.start)  # which may make a fence of what is around: look again
        if hit.literal == "\n":
            return self._newline()
        if hit.literal == "`":
            return self._backticks()
        if self._quotation.opens_with(hit.literal):
            return states.show(1)
        return self._open(FoundMarker(hit.literal, self.tables.anywhere.action(hit.literal)), 0)

    # quotations

    def _in_quotation(self) -> bool:
        """Inside inline code, quotation marks or a quoted line, markers are text."""
        window, quotation = self._cursor.window, self._quotation
        end = window.find("\n")
        closer = window.find(quotation.closer) if quotation.closer else -1
        if closer < 0 and end < 0:
            return self._states.show(len(window), more=False)
        if closer < 0 or 0 <= end < closer:
            return self._states.show(end) if end else self._newline()
        if not quotation.mark:
            return self._states.show(closer) if closer else self._backticks()
        quotation.mark = ""
        return self._states.show(closer + 1)

    def _newline(self) -> bool:
        if self._quotation.code >= len("```"):  # a fence that opened at the end of a line
            fence, self._quotation.code = Fence("`" * self._quotation.code, "", ""), 0
            self._states.fence.enter(fence)
            return True
        self._quotation.newline()
        self._states.show(1)
        self._cursor.line_start = True
        return True

    def _backticks(self) -> bool:
        run = _TICKS.match(self._cursor.window)
        length = run.end() if run else 1
        if length == len(self._cursor.window) < MAX_RUN and not self._cursor.is_final:
            return False
        self._quotation.ticks(length)
        return self._states.show(length)

    # the first thing of a message, of a line, after a call

    def _at_beginning(self) -> bool | None:
        """Look for markers that count only here. None: there is nothing such."""
        cursor = self._cursor
        blank = (_SPACE if cursor.nothing_since_call else _INDENT).match(cursor.window)
        pos = blank.end() if blank else 0
        if pos == len(cursor.window) and pos <= MAX_BLANKS:
            return self._blank_end(pos) if cursor.is_final else False
        # Nothing begins on a blank line. Looking all forms up there took 1.3 s for 100 KB of newlines (dialect `any`).
        is_blank = cursor.window.startswith("\n", pos)
        found = self._found_at(pos) if pos <= MAX_BLANKS and not is_blank else None
        if found is HELD:
            return False
        if found is not None:
            return self._open(found, pos)
        if not cursor.nothing_since_call:
            self._quotation.begin_line(cursor.window[:pos], cursor.window[pos : pos + 1])
        elif cursor.window[pos : pos + 1] in (">", "|"):
            self._quotation.line = True
        cursor.line_start = cursor.nothing_since_call = False
        return None

    def _found_at(self, pos: int) -> FoundMarker | None:
        """Look a beginning up; inside quotations nothing begins, but a fence ends inline code."""
        cursor, quotation = self._cursor, self._quotation
        if not cursor.nothing_since_call:
            if quotation.is_indented_code(cursor.window[:pos]) or quotation.mark:
                return None
            if quotation.code:
                return self._fence_in_code(pos)
        return self._beginnings.at(cursor.window, pos, self._context(), final=cursor.is_final)

    def _fence_in_code(self, pos: int) -> FoundMarker | None:
        cursor = self._cursor
        fence = fence_at(cursor.window, pos, final=cursor.is_final)
        if fence == "":
            return HELD
        if fence is None or len(fence.ticks) == self._quotation.code:
            return None
        self._quotation.code = 0
        return self._beginnings.at(cursor.window, pos, self._context(), final=cursor.is_final)

    def _context(self) -> LookupContext:
        cursor, out = self._cursor, self._out
        fresh = cursor.nothing_since_call
        called = out.attempts > 0 or out.pending
        around = self._states.fence.around
        return LookupContext(
            cursor.nothing_seen and fresh, fresh and out.attempts > 0, fresh and out.pending, called, around
        )

    def _blank_end(self, pos: int) -> bool:
        if self._out.attempts or self._out.pending:
            self._cursor.discard(pos)
        else:
            self._states.show(pos)
        return False

    # openers

    def _open(self, found: FoundMarker, pos: int) -> bool:
        """Act on the marker at `pos`, with only blanks before it."""
        action, literal = found.action, found.literal
        if isinstance(action, FenceLine):
            return self._fence_line(action, literal, pos)
        if action is Sign.RESULT:
            return self._result(literal, pos)
        alone = not self._cursor.nothing_since_call
        self._before(pos)
        match action:
            case Wrapper():
                self._states.block.enter_wrapper(action, literal)
            case Special():
                self._states.block.enter_special(action, literal)
            case ReasoningMarks():
                self._out.fail()
                self._cursor.discard(len(literal))
                self._states.reasoning.enter(action)
            case Label():
                self._cursor.discard(len(literal))
            case Sign.CLOSER | None:
                self._closer(len(literal), alone=alone)
            case _:
                assert_never(action)
        return True

    def _fence_line(self, kind: FenceLine, literal: str, pos: int) -> bool:
        cursor = self._cursor
        fence = fence_at(cursor.window, pos, final=True) or None
        if fence is not None:
            fence = replace(fence, indent=pos - cursor.window.rfind("\n", 0, pos) - 1)
        if kind is FenceLine.ORDINARY:
            self._states.fence.enter(fence)
            self._states.show(pos + len(literal))
            cursor.line_start = False
            return True
        cursor.discard(pos)
        self._states.fence.around = fence if kind is FenceLine.WHOLE else None
        cursor.hold(len(literal))
        return True

    def _closer(self, length: int, *, alone: bool) -> None:
        """Drop a closer after a call; one after text is markup only if nothing follows it."""
        if alone:
            self._cursor.hold(length)
            self._cursor.nothing_since_call = True
        else:
            self._cursor.discard(length)

    def _before(self, pos: int) -> None:
        """Blanks before a call are debris where nothing was shown since the last one, else text."""
        if self._cursor.nothing_since_call:
            self._cursor.discard(pos)
        else:
            self._states.show(pos)
        self._cursor.line_start = False

    def _result(self, literal: str, pos: int) -> bool:
        """Stop at a tool result after a call: only toolspeak writes results, so the model has forged it."""
        called = self._out.attempts or self._out.pending
        if not called or self._states.fence.around is not None:
            self._states.echo.enter(literal)
            return self._states.show(pos + len(literal))
        self._before(pos)
        self._out.commit()
        return self._states.stop_reading(Why.FORGED)
