"""The text that is not decided yet, and what is plain about it: quotations, fences and echoes, in which all is text.

Each state consumes from the window and returns True, or returns False to wait for more text.
"""

import re
from collections.abc import Callable

from toolspeak.dialects._fences import MAX_RUN, Fence, next_line
from toolspeak.dialects._output import Output
from toolspeak.dialects._quotation import Quotation
from toolspeak.ir.event import Discarded, TextDelta, Why
from toolspeak.text.scan import Markers

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
