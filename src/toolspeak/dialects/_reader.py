"""The one machine that reads every dialect: text in, in any chunks; events out.

It keeps only what it must hold back: a marker that may still become one, a block that is not complete, blanks around
calls. Each state consumes from the window and returns True, or returns False to wait for more text.
"""

import re
from collections.abc import Callable, Iterator
from typing import assert_never

from toolspeak.dialects._attempt import Attempt, Mark
from toolspeak.dialects._beginnings import HELD, Beginnings, Place
from toolspeak.dialects._delivery import Delivered, Delivery
from toolspeak.dialects._fences import Fence, closing, fence_at
from toolspeak.dialects._grammar import Block, Grammar, Label, Reasoning, Special, Wrapper
from toolspeak.dialects._judge import Judge
from toolspeak.dialects._options import DEFAULTS, ReadOptions
from toolspeak.dialects._output import Fallback, Output, counted_ids
from toolspeak.dialects._tables import FenceLine, Found, Sign, Tables, tables_of
from toolspeak.dialects._wrapper import WrapperBlock
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import CallRejected, Discarded, Event, ReasoningDelta, TextDelta, Why
from toolspeak.ir.tool import ChoiceMode
from toolspeak.text.jsonspan import MAX_BLANKS
from toolspeak.toolset.toolset import ToolSet

_SPACE = re.compile(r"\s*")
_INDENT = re.compile(r"[ \t]*")
_TICKS = re.compile(r"`+")


class Reader:
    """Reads one turn. Made new for each turn, never reset."""

    def __init__(
        self, grammar: Grammar, tools: ToolSet, ids: Iterator[str] | None = None, options: ReadOptions = DEFAULTS
    ) -> None:
        """Read calls of `tools`; with none, or none allowed, only reasoning is split off."""
        reads_calls = bool(tools) and options.choice.mode is not ChoiceMode.NONE
        self._tools, self._options = tools, options
        self._tables: Tables = tables_of(grammar if reads_calls else grammar.without_calls)
        self._beginnings = Beginnings(self._tables, tools, options.stop)
        self._out = Output(options.max_block)
        judge = Judge(tools, options.choice, counted_ids() if ids is None else ids)
        self._delivery = Delivery(judge, self._out, options.max_calls if options.choice.parallel else 1)
        self._window = ""
        self._final = False
        self._state: Callable[[], bool] = self._in_text
        self._virgin = self._fresh = True  # nothing shown or called yet; nothing shown since the last call
        self._line_start = False
        self._code = 0  # length of the backtick run that opened inline code
        self._quoted = False
        self._fence: Fence | None = None
        self._around: Fence | None = None  # a fence around the whole reply, if it turns out to hold just a call
        self._thinking: Reasoning | None = None
        self._block: Block | None = None
        self._special: Special | None = None
        self._wrapper: Wrapper | None = None
        self._raw: list[str] = []
        self._held = 0
        self._cut: Why | None = None
        if options.starts_in_reasoning and grammar.reasoning:
            self._think(grammar.reasoning[0])

    @property
    def cut(self) -> Why | None:
        """Say why nothing more will be read (a forged result, a limit): the upstream can be closed."""
        return self._cut

    def feed(self, chunk: str) -> list[Event]:
        """Take more text; return what it decides."""
        self._window = self._window + chunk if self._window else chunk
        while self._window and self._state():
            pass
        return self._out.drain()

    def finish(self) -> list[Event]:
        """Take the end of the text; return the rest."""
        self._final = True
        while self._state():
            pass
        if self._block is not None or self._window:
            self._as_it_looks("".join(self._raw) + self._window)  # a block that did not say how it ends
        self._out.commit()
        return self._out.drain()

    # text

    def _in_text(self) -> bool:
        if self._fresh or self._line_start:
            waits = self._at_beginning()
            if waits is not None:
                return waits
        if self._quoted or self._code:
            return self._in_quotation()
        hit = self._tables.points.search(self._window, 0, final=self._final)
        if hit is None:
            return self._show(len(self._window), more=False)
        if hit.literal == "":
            return self._show(hit.start, more=False)
        if hit.literal == "\n":
            return self._newline(hit.start)
        if hit.literal == "`":
            return self._backticks(hit.start)
        self._show(hit.start)
        return self._open(Found(hit.literal, self._tables.anywhere.action(hit.literal)), 0)

    def _show(self, length: int, *, more: bool = True) -> bool:
        """Release text; in a fence around the whole reply, that makes it an ordinary fence."""
        if length:
            shown, self._window = self._window[:length], self._window[length:]
            self._fresh = self._virgin = False
            if self._around is not None:
                self._fence, self._around = self._around, None
                self._out.text(shown)
                self._state = self._in_fence
                return True
            self._out.text(shown)
        return more

    def _newline(self, at: int) -> bool:
        self._code, self._quoted = 0, False
        self._show(at + 1)
        self._line_start = True
        return True

    def _backticks(self, at: int) -> bool:
        run = _TICKS.match(self._window, at)
        end = run.end() if run else at + 1
        if end == len(self._window) and not self._final:
            return self._show(at, more=False)
        length = end - at
        if not self._code:
            self._code = length
        elif self._code == length:
            self._code = 0
        return self._show(end)

    def _in_quotation(self) -> bool:
        """Inside inline code or a quoted line, markers are text."""
        end = self._window.find("\n")
        tick = self._window.find("`") if self._code else -1
        if tick >= 0 and (end < 0 or tick < end):
            return self._backticks(tick)
        return self._newline(end) if end >= 0 else self._show(len(self._window), more=False)

    # the first thing of a message, of a line, after a call

    def _at_beginning(self) -> bool | None:
        """Look for what counts only here. None: there is nothing such."""
        blank = (_SPACE if self._fresh else _INDENT).match(self._window)
        pos = blank.end() if blank else 0
        if pos == len(self._window) and pos <= MAX_BLANKS:
            return self._blank_end(pos) if self._final else False
        found = self._beginnings.at(self._window, pos, self._place(), final=self._final) if pos <= MAX_BLANKS else None
        if found is HELD:
            return False
        if found is not None:
            return self._open(found, pos)
        self._quoted = self._window[pos : pos + 1] == ">"
        self._line_start = self._fresh = False
        return None

    def _place(self) -> Place:
        after_call = self._fresh and self._out.attempts > 0
        return Place(self._virgin and self._fresh, after_call, self._fresh and self._out.pending, self._around)

    def _blank_end(self, pos: int) -> bool:
        if self._out.attempts or self._out.pending:
            self._discard(pos)
        else:
            self._show(pos)
        return False

    # fences

    def _fence_line(self, kind: FenceLine, literal: str, pos: int) -> bool:
        fence = fence_at(self._window, pos, final=True)
        if kind is FenceLine.ORDINARY:
            self._fence = fence or None
            self._show(pos + len(literal))
            self._state, self._line_start = self._in_fence, False
            return True
        self._discard(pos)
        self._around = (fence or None) if kind is FenceLine.WHOLE else None
        self._hold(len(literal))
        return True

    def _in_fence(self) -> bool:
        """Inside an ordinary fence everything is text, up to the line that closes it."""
        fence = self._fence
        if fence is None:
            self._state = self._in_text
            return True
        end, closed = closing(fence, self._window, final=self._final)
        if closed:
            self._fence, self._state = None, self._in_text
        self._show(end)
        return closed and bool(self._window)

    # openers

    def _open(self, found: Found, pos: int) -> bool:
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
            case Reasoning():
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

    def _hold(self, length: int) -> None:
        """Set markup aside that is markup only if nothing but calls and blanks follow."""
        raw, self._window = self._window[:length], self._window[length:]
        self._out.hold(raw, [Discarded(Why.DEBRIS, raw)], TextDelta)

    def _result(self, literal: str, pos: int) -> bool:
        """Stop at a tool result behind a call: only we write results, so it is forged."""
        if not self._out.attempts and not self._out.pending:
            return self._show(pos + len(literal))
        self._before(pos)
        self._out.commit()
        return self._stop_reading(Why.FORGED)

    def _stop_reading(self, why: Why) -> bool:
        self._cut, self._state = why, self._discarding
        return True

    def _discarding(self) -> bool:
        self._out.discard(self._cut or Why.LIMIT, self._window)
        self._window = ""
        return False

    def _discard(self, length: int) -> None:
        raw, self._window = self._window[:length], self._window[length:]
        self._out.discard(Why.DEBRIS, raw)

    # blocks

    def _begin(self, block: Block, wrapper: Wrapper | None, literal: str) -> None:
        self._block, self._wrapper = block, wrapper
        kept = wrapper is not None and wrapper.keep_opener
        taken = 0 if kept else len(literal)
        self._raw = [self._window[:taken]]
        self._window = self._window[taken:]
        self._held, self._state = taken, self._in_block

    def _in_block(self) -> bool:
        block = self._block
        if block is None:
            return False
        length, outcome = block.feed(self._window, final=self._final)
        self._raw.append(self._window[:length])
        self._window = self._window[length:]
        self._held += length
        if outcome is None:
            return self._held + len(self._window) > self._options.max_block and self._too_long()
        raw = "".join(self._raw)
        self._raw, self._held = [], 0
        if block.ended:
            self._block = None
            self._state = self._in_reasoning if self._thinking else self._in_text
        self._deliver(outcome, raw)
        return True

    def _too_long(self) -> bool:
        raw = "".join(self._raw)
        detail = f"the call is longer than {self._options.max_block} characters"
        self._out.emit([CallRejected(Complaint(Problem.TRUNCATED, None, detail), raw)])
        return self._stop_reading(Why.LIMIT)

    def _deliver(self, outcome: tuple[Attempt, ...] | Mark, raw: str) -> None:
        match outcome:
            case Mark.REFUSED:
                self._as_it_looks(raw)
            case Mark.DEBRIS:
                self._out.discard(Why.DEBRIS, raw)
            case Mark.THOUGHT:
                self._out.thought(raw)
            case Mark.THINKING:
                self._out.discard(Why.DEBRIS, raw)
                if self._special is not None:
                    self._think(self._special.reasoning[0])
            case _:
                self._attempted(outcome, raw)

    def _as_it_looks(self, raw: str) -> None:
        """Give back what was no call; at least one character, so that the same opener is not found again."""
        if not raw:
            raw, self._window = self._window[:1], self._window[1:]
        if self._thinking:
            self._out.thought(raw)
            return
        self._window = raw + self._window
        self._show(len(raw))

    def _attempted(self, attempts: tuple[Attempt, ...], raw: str) -> None:
        delivered = self._delivery.deliver(attempts, raw, until_end=self._until_end())
        if delivered is Delivered.TEXT:
            self._as_it_looks(raw)
            return
        self._fresh, self._virgin = True, self._around is not None
        if delivered is Delivered.TOO_MANY:
            self._window = self._delivery.rest + self._window
            self._stop_reading(Why.LIMIT)
        elif any(attempt.cut for attempt in attempts):
            self._stop_reading(Why.LIMIT)

    def _until_end(self) -> Fallback | None:
        """Say what calls are, here, if more than blanks and calls follows them; None where they are calls for sure."""
        if self._thinking is not None:
            return ReasoningDelta
        tail = self._around is not None or (self._wrapper is not None and self._wrapper.tail)
        return TextDelta if tail else None

    # reasoning

    def _think(self, mark: Reasoning) -> None:
        self._thinking, self._state = mark, self._in_reasoning

    def _in_reasoning(self) -> bool:
        mark = self._thinking
        if mark is None:
            return False
        table = self._tables.in_reasoning[mark]
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
