"""The state machine that reads every dialect: text in, in any chunks; events out.

The reader keeps only what it must hold back: a prefix of a marker, a block that is not complete, blanks around calls.
Each state consumes from the window and returns True, or returns False to wait for more text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, assert_never

from toolspeak.dialects.core.form import NonCall
from toolspeak.dialects.core.grammar import BlockReader, Label, MarkupGrammar, ReasoningMarks, Special, Wrapper
from toolspeak.dialects.core.lookup import (
    HELD,
    Beginnings,
    FenceLine,
    FoundMarker,
    LookupContext,
    MarkerTables,
    Sign,
    marker_tables,
    result_closers,
)
from toolspeak.dialects.core.output import Delivered, Delivery, Fallback, Output, counted_ids
from toolspeak.dialects.core.quotation import MAX_RUN, Fence, Quotation, fence_at, next_line
from toolspeak.dialects.core.wrapper import WrapperBlock
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, Discarded, Event, ReasoningDelta, TextDelta, Why
from toolspeak.ir.tool import AUTO, ChoiceMode, ToolChoice
from toolspeak.ir.turn import Item, split
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.text.scan import Markers
from toolspeak.toolset.check import Attempt, CallChecker
from toolspeak.toolset.toolset import ToolSet


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


DEFAULTS = ReadOptions()


_TICKS = re.compile(rf"`{{1,{MAX_RUN}}}")


class Page:
    """Keeps the window, and knows how to let text go."""

    def __init__(self, max_pending: int, in_text: Callable[[], bool]) -> None:
        """Start an empty page; `in_text` is the state for text that is neither quoted nor fenced."""
        self._plain = in_text
        self._out = Output(max_pending)
        self._window = ""
        self._final = False
        self._state = in_text
        self._virgin = self._fresh = True  # nothing shown or called yet; nothing shown since the last call
        self._line_start = False
        self._quotation = Quotation()
        self._echo: Markers | None = None  # what ends a tool result that nobody asked for, quoted in the text
        self._fence: Fence | None = None
        self._around: Fence | None = None  # a fence around the whole reply, if it turns out to hold just a call
        self._cut: Why | None = None

    @property
    def cut(self) -> Why | None:
        """Return why nothing more will be read (a forged result, a limit): the upstream can be closed."""
        return self._cut

    def _show(self, length: int, *, more: bool = True) -> bool:
        """Release text; in a fence around the whole reply, that makes it an ordinary fence."""
        if length:
            shown, self._window = self._window[:length], self._window[length:]
            self._fresh = self._virgin = False
            self._quotation.shown(shown)
            if self._around is not None:
                self._fence, self._around = self._around, None
                self._out.text(shown)
                self._state = self._in_fence
                return True
            self._out.text(shown)
        return more

    def _hold(self, length: int) -> None:
        """Set markup aside that is markup only if nothing but calls and blanks follow."""
        raw, self._window = self._window[:length], self._window[length:]
        self._out.hold(raw, [Discarded(Why.DEBRIS, raw)], TextDelta)

    def _discard(self, length: int) -> None:
        raw, self._window = self._window[:length], self._window[length:]
        self._out.discard(Why.DEBRIS, raw)

    def _newline(self) -> bool:
        if self._quotation.code >= len("```"):  # a fence that opened at the end of a line
            self._fence, self._quotation.code = Fence("`" * self._quotation.code, "", ""), 0
            self._state = self._in_fence
            return True
        self._quotation.newline()
        self._show(1)
        self._line_start = True
        return True

    def _backticks(self) -> bool:
        run = _TICKS.match(self._window)
        length = run.end() if run else 1
        if length == len(self._window) < MAX_RUN and not self._final:
            return False
        self._quotation.ticks(length)
        return self._show(length)

    def _in_quotation(self) -> bool:
        """Inside inline code, quotation marks or a quoted line, markers are text."""
        end = self._window.find("\n")
        closer = self._window.find(self._quotation.closer) if self._quotation.closer else -1
        if closer < 0 and end < 0:
            return self._show(len(self._window), more=False)
        if closer < 0 or 0 <= end < closer:
            return self._show(end) if end else self._newline()
        if not self._quotation.mark:
            return self._show(closer) if closer else self._backticks()
        self._quotation.mark = ""
        return self._show(closer + 1)

    def _in_fence(self) -> bool:
        """Inside an ordinary fence everything is text, up to the line that closes it."""
        fence = self._fence
        if fence is None:
            self._state = self._plain
            return True
        end, self._fence = next_line(fence, self._window, final=self._final)
        if self._fence is None:
            self._state = self._plain
        self._show(end)
        return self._fence is not fence and bool(self._window)

    def _in_echo(self) -> bool:
        """Inside a tool result that the model quotes, markers are text."""
        hit = self._echo.search(self._window, 0, final=self._final) if self._echo is not None else None
        if hit is None or not hit.literal:
            self._show(len(self._window) if hit is None else hit.start)
            return False
        self._show(hit.start + len(hit.literal))
        self._state = self._plain
        return True

    def _stop_reading(self, why: Why) -> bool:
        self._cut, self._state = why, self._discarding
        return True

    def _discarding(self) -> bool:
        self._out.discard(self._cut or Why.LIMIT, self._window)
        self._window = ""
        return False


PIECE: Final = 4096
"""A long text is read in pieces: what is left of a piece is copied at each step."""
_THINK = ReasoningMarks("<think>", ("</think>",))
"""What a template opens, where a dialect has no reasoning with an end of its own."""
_SPACE = re.compile(r"\s*")
_INDENT = re.compile(r"[ \t]*")


class TextReader(Page):
    """Reads one turn. Made new for each turn, never reset."""

    def __init__(
        self, grammar: MarkupGrammar, tools: ToolSet, ids: Iterator[str] | None = None, options: ReadOptions = DEFAULTS
    ) -> None:
        """Read calls of `tools`; with none, or none allowed, only reasoning is split off."""
        super().__init__(options.max_block, self._in_text)
        reads_calls = bool(tools) and options.choice.mode is not ChoiceMode.NONE
        self._tools, self._options = tools, options
        self._tables: MarkerTables = marker_tables(grammar if reads_calls else grammar.without_calls)
        self._begins = self._tables.points.begins
        self._beginnings = Beginnings(self._tables, tools, options.stop)
        checker = CallChecker(tools, options.choice, counted_ids() if ids is None else ids)
        self._delivery = Delivery(checker, self._out, options.max_calls if options.choice.parallel else 1)
        self._thinking: ReasoningMarks | None = None
        self._block: BlockReader | None = None
        self._special: Special | None = None
        self._wrapper: Wrapper | None = None
        self._opener = 0  # length of the marker that opened the block, until it has told something
        self._taken = 0  # the part of that marker which the block does not see
        self._raw: list[str] = []
        self._held = 0
        if options.starts_in_reasoning and grammar.reasoning:
            self._think(next((mark for mark in grammar.reasoning if mark.closers), _THINK))

    def feed(self, chunk: str) -> list[Event]:
        """Take more text; return what it decides, as events."""
        return split(self.read(chunk))

    def finish(self) -> list[Event]:
        """Take the end of the text; return the rest, as events."""
        return split(self.read_end())

    def read(self, chunk: str) -> list[Item]:
        """Take more text; return what it decides, with each call in one piece."""
        if not self._window and len(chunk) <= PIECE and chunk and self._is_plain() and not self._begins(chunk):
            self._quotation.shown(chunk)
            return [TextDelta(chunk)]
        for start in range(0, len(chunk), PIECE):
            piece = chunk if len(chunk) <= PIECE else chunk[start : start + PIECE]
            self._window = self._window + piece if self._window else piece
            while self._window and self._state():
                pass
        return self._out.drain()

    def _is_plain(self) -> bool:
        """Return whether text that has no marker in it is just text here, as most of it is."""
        return (
            self._state == self._plain
            and not (self._fresh or self._line_start or self._quotation.active or self._out.pending)
            and self._around is None
        )

    def read_end(self) -> list[Item]:
        """Take the end of the text; return the rest, with each call in one piece."""
        self._final = True
        while self._state():
            pass
        if self._block is not None or self._window:  # a block did not say how it ends
            rest, self._window = "".join(self._raw) + self._window, ""
            self._as_it_looks(rest)
        self._out.commit()
        return self._out.drain()

    # text

    def _in_text(self) -> bool:
        if self._fresh or self._line_start:
            waits = self._at_beginning()
            if waits is not None:
                return waits
        if self._quotation.active:
            return self._in_quotation()
        hit = self._tables.points.search(self._window, 0, final=self._final)
        if hit is None:
            return self._show(len(self._window), more=False)
        if hit.literal == "":
            return self._show(hit.start, more=False)
        if hit.start > 0:
            return self._show(hit.start)  # which may make a fence of what is around: look again
        if hit.literal == "\n":
            return self._newline()
        if hit.literal == "`":
            return self._backticks()
        if self._quotation.opens_with(hit.literal):
            return self._show(1)
        return self._open(FoundMarker(hit.literal, self._tables.anywhere.action(hit.literal)), 0)

    # the first thing of a message, of a line, after a call

    def _at_beginning(self) -> bool | None:
        """Look for what counts only here. None: there is nothing such."""
        blank = (_SPACE if self._fresh else _INDENT).match(self._window)
        pos = blank.end() if blank else 0
        if pos == len(self._window) and pos <= MAX_BLANKS:
            return self._blank_end(pos) if self._final else False
        # Nothing begins on a blank line. Looking all forms up there took 1.3 s for 100 KB of newlines (dialect `any`).
        is_blank = self._window.startswith("\n", pos)
        found = self._found_at(pos) if pos <= MAX_BLANKS and not is_blank else None
        if found is HELD:
            return False
        if found is not None:
            return self._open(found, pos)
        if not self._fresh:
            self._quotation.begin_line(self._window[:pos], self._window[pos : pos + 1])
        elif self._window[pos : pos + 1] in (">", "|"):
            self._quotation.line = True
        self._line_start = self._fresh = False
        return None

    def _found_at(self, pos: int) -> FoundMarker | None:
        """Look a beginning up; inside quotations nothing begins, but a fence ends inline code."""
        if not self._fresh and self._quotation.is_indented_code(self._window[:pos]):
            return None
        if self._quotation.mark and not self._fresh:
            return None
        if self._quotation.code and not self._fresh:
            return self._fence_in_code(pos)
        return self._beginnings.at(self._window, pos, self._place(), final=self._final)

    def _fence_in_code(self, pos: int) -> FoundMarker | None:
        fence = fence_at(self._window, pos, final=self._final)
        if fence == "":
            return HELD
        if fence is None or len(fence.ticks) == self._quotation.code:
            return None
        self._quotation.code = 0
        return self._beginnings.at(self._window, pos, self._place(), final=self._final)

    def _place(self) -> LookupContext:
        after_call = self._fresh and self._out.attempts > 0
        called = self._out.attempts > 0 or self._out.pending
        return LookupContext(
            self._virgin and self._fresh, after_call, self._fresh and self._out.pending, called, self._around
        )

    def _blank_end(self, pos: int) -> bool:
        if self._out.attempts or self._out.pending:
            self._discard(pos)
        else:
            self._show(pos)
        return False

    # fences

    def _fence_line(self, kind: FenceLine, literal: str, pos: int) -> bool:
        fence = fence_at(self._window, pos, final=True)
        if fence:
            fence = replace(fence, indent=pos - self._window.rfind("\n", 0, pos) - 1)
        if kind is FenceLine.ORDINARY:
            self._fence = fence or None
            self._show(pos + len(literal))
            self._state, self._line_start = self._in_fence, False
            return True
        self._discard(pos)
        self._around = (fence or None) if kind is FenceLine.WHOLE else None
        self._hold(len(literal))
        return True

    # openers

    def _open(self, found: FoundMarker, pos: int) -> bool:
        """Act on what was found at `pos`, with only blanks before it."""
        action, literal = found.action, found.literal
        if isinstance(action, FenceLine):
            return self._fence_line(action, literal, pos)
        if action is Sign.RESULT:
            return self._result(literal, pos)
        alone = not self._fresh
        self._before(pos)
        match action:
            case Wrapper():
                self._begin(WrapperBlock(action, self._tools, self._options.stop), action, literal)
            case Special():
                self._begin(action.kind.new_block(self._tools, self._options.stop), None, literal)
                self._special = action
            case ReasoningMarks():
                self._out.fail()
                self._discard(len(literal))
                self._think(action)
            case Label():
                self._discard(len(literal))
            case Sign.CLOSER | None:
                self._closer(len(literal), alone=alone)
            case _:
                assert_never(action)
        return True

    def _closer(self, length: int, *, alone: bool) -> None:
        """Drop a closer behind a call; one behind text is markup only if nothing follows it."""
        if alone:
            self._hold(length)
            self._fresh = True
        else:
            self._discard(length)

    def _before(self, pos: int) -> None:
        """Blanks before a call are debris where nothing was shown since the last one, else text."""
        if self._fresh:
            self._discard(pos)
        else:
            self._show(pos)
        self._line_start = False

    def _result(self, literal: str, pos: int) -> bool:
        """Stop at a tool result behind a call: only we write results, so it is forged."""
        called = self._out.attempts or self._out.pending
        if not called or self._around is not None:
            self._echo = Markers(result_closers(literal), ignore_case=True)
            self._state = self._in_echo
            return self._show(pos + len(literal))
        self._before(pos)
        self._out.commit()
        return self._stop_reading(Why.FORGED)

    # blocks

    def _begin(self, block: BlockReader, wrapper: Wrapper | None, literal: str) -> None:
        self._block, self._wrapper = block, wrapper
        kept = wrapper is not None and wrapper.keep_opener
        taken = 0 if kept else len(literal)
        self._raw = [self._window[:taken]]
        self._window = self._window[taken:]
        self._taken = taken
        self._held, self._state = taken, self._in_block
        self._opener = max(1, len(literal))

    def _in_block(self) -> bool:
        block = self._block
        if block is None:
            return False
        text, final = self._visible()
        room = self._options.max_block - self._held
        length, outcome = block.feed(text[:room], final=final and len(text) <= room)
        if outcome is None and len(text) > room:
            return self._too_long(room)
        self._raw.append(self._window[:length])
        self._window = self._window[length:]
        self._held += length
        if outcome is None:
            return False
        raw = "".join(self._raw)
        self._raw, self._held = [], 0
        if block.ended:
            self._block = None
            self._state = self._in_reasoning if self._thinking else self._in_text
        if outcome is NonCall.REFUSED and self._opener and isinstance(block, WrapperBlock):
            self._opener = max(self._opener, self._taken + block.last_opener)
        self._deliver(outcome, raw)
        self._opener = 0
        return True

    def _visible(self) -> tuple[str, bool]:
        """Return what a block may see: in reasoning, nothing from the reasoning's own end on."""
        if self._thinking is None:
            return self._window, self._final
        hit = self._tables.in_reasoning(self._thinking).ends.search(self._window, 0, final=self._final)
        if hit is None:
            return self._window, self._final
        return self._window[: hit.start], hit.literal != ""

    def _too_long(self, room: int) -> bool:
        raw = "".join(self._raw) + self._window[:room]
        self._window = self._window[room:]
        detail = f"the call is longer than {self._options.max_block} characters"
        self._out.emit([CallRejected(Complaint(Problem.TRUNCATED, None, detail), raw)])
        return self._leave_block(Why.LIMIT)

    def _leave_block(self, why: Why) -> bool:
        self._block, self._raw = None, []
        return self._stop_reading(why)

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
                    self._think(self._special.reasoning[0])
            case _:
                self._attempted(outcome, raw)

    def _as_it_looks(self, raw: str) -> None:
        """Let all of it be text, or reasoning."""
        if self._thinking:
            self._out.thought(raw)
            return
        self._window = raw + self._window
        self._show(len(raw))
        if raw:
            self._line_start = raw.endswith("\n")

    def _give_back(self, raw: str) -> None:
        """Let the opener be text, or reasoning, and read on after it.

        Of several openers in a row all but the last are text at once: a block refused after the last one is refused
        after each of them. Reading on after the first took 46 s for 16,000 characters of `>` (functionary; found by the
        fuzzer).
        """
        self._window = raw + self._window
        opener, self._window = self._window[: self._opener], self._window[self._opener :]
        self._as_it_looks(opener)

    def _attempted(self, attempts: tuple[Attempt, ...], raw: str) -> None:
        delivered = self._delivery.deliver(attempts, raw, until_end=self._until_end())
        if delivered is Delivered.TEXT:
            self._as_it_looks(raw)
            return
        self._fresh, self._virgin = True, self._around is not None
        if delivered in (Delivered.TOO_MANY, Delivered.LOOP):
            self._window = self._delivery.rest + self._window
            self._leave_block(Why.LIMIT)
        elif any(attempt.cut for attempt in attempts):
            self._leave_block(Why.LIMIT)

    def _until_end(self) -> Fallback | None:
        """Return what calls here turn into if more than blanks and calls follows; None if they are calls for sure."""
        if self._thinking is not None:
            return ReasoningDelta
        tail = self._around is not None or (self._wrapper is not None and self._wrapper.tail)
        return TextDelta if tail else None

    # reasoning

    def _think(self, mark: ReasoningMarks) -> None:
        self._thinking, self._state = mark, self._in_reasoning

    def _in_reasoning(self) -> bool:
        mark = self._thinking
        if mark is None:
            return False
        table = self._tables.in_reasoning(mark)
        hit = table.points.search(self._window, 0, final=self._final)
        if hit is None or hit.literal == "":
            self._ponder(len(self._window) if hit is None else hit.start)
            return False
        self._ponder(hit.start)
        if hit.literal in table.closers or hit.literal in table.stops:
            return self._conclude(len(hit.literal) if hit.literal in table.closers else 0)
        wrapper = table.openers[hit.literal]
        self._begin(WrapperBlock(wrapper, self._tools, self._options.stop), wrapper, hit.literal)
        return True

    def _ponder(self, length: int) -> None:
        """Release reasoning; blanks behind a call inside it do not yet decide what that call was."""
        if not length:
            return
        thought, self._window = self._window[:length], self._window[length:]
        if self._out.pending and not thought.strip():
            self._out.discard(Why.DEBRIS, thought)
        else:
            self._out.thought(thought)

    def _conclude(self, closer: int) -> bool:
        if self._options.calls_in_reasoning:
            self._out.commit()
        elif self._out.pending:
            self._out.fail()
        self._discard(closer)
        self._thinking, self._state = None, self._in_text
        return True
