"""Reads every dialect: text in, in any chunks; events out.

The reader keeps only what it must hold back: a prefix of a marker, a block that is not complete, blanks around calls.
`states.py` has the states between which it changes; a dialect is data for them (`grammar.py`).

`native_attempt` reads the arguments of a native call, which are text that a model wrote.
"""

from collections.abc import Callable, Iterator
from typing import Final

from toolspeak.dialects.core.form import Scope
from toolspeak.dialects.core.grammar import MarkupGrammar
from toolspeak.dialects.core.lookup import marker_tables
from toolspeak.dialects.core.output import counted_ids
from toolspeak.dialects.core.states import ReaderStates, ReadOptions
from toolspeak.dialects.core.tag_form import XML
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, TextDelta, Why
from toolspeak.ir.message import Call
from toolspeak.ir.tool import ChoiceMode
from toolspeak.ir.turn import Item, split
from toolspeak.text.repair import repair
from toolspeak.toolset.check import Attempt, CallChecker
from toolspeak.toolset.toolset import ToolSet

DEFAULTS: Final = ReadOptions()
PIECE: Final = 4096
"""A long text is read in pieces of this length: each step copies the rest of the window."""


class TextReader:
    """Reads one turn. Made new for each turn, never reset."""

    def __init__(
        self, grammar: MarkupGrammar, tools: ToolSet, ids: Iterator[str] | None = None, options: ReadOptions = DEFAULTS
    ) -> None:
        """Read calls of `tools`; with none, or none allowed, only reasoning is split off."""
        reads_calls = bool(tools) and options.choice.mode is not ChoiceMode.NONE
        tables = marker_tables(grammar if reads_calls else grammar.without_calls)
        checker = CallChecker(tools, options.choice, counted_ids() if ids is None else ids)
        self._begins = tables.points.begins
        self._states = ReaderStates(tables, tools, checker, options)
        self._cursor = self._states.cursor
        self._is_plain = False  # after the last chunk that had to be searched: in text, with nothing held back
        if options.starts_in_reasoning and grammar.opened_reasoning is not None:
            self._states.reasoning.enter(grammar.opened_reasoning)

    @property
    def cut(self) -> Why | None:
        """Return why nothing more will be read (a forged result, a limit): the upstream can be closed."""
        return self._states.end.why

    @property
    def beginnings(self) -> Callable[[str], object] | None:
        """Return a search for what may begin more than text; None if the next text must be read in any case.

        A text in which nothing is found would be shown as it is, and change no state but that of its last line.
        """
        return self._begins if self._is_plain else None

    def feed(self, chunk: str) -> list[Event]:
        """Take more text; return what it decides, as events."""
        return split(self.read(chunk))

    def finish(self) -> list[Event]:
        """Take the end of the text; return the rest, as events."""
        return split(self.read_end())

    def read(self, chunk: str) -> list[Item]:
        """Take more text; return what it decides, with each call in one piece. After the end, text is ignored."""
        states, cursor = self._states, self._cursor
        # Most chunks of most answers are plain text: they pass here, and change no state, so that the next one may too.
        if self._is_plain and chunk and len(chunk) <= PIECE and not self._begins(chunk):
            cursor.quotation.shown(chunk)
            return [TextDelta(chunk)]
        if cursor.is_final:
            return []
        for start in range(0, len(chunk), PIECE):
            piece = chunk if len(chunk) <= PIECE else chunk[start : start + PIECE]
            cursor.window = cursor.window + piece if cursor.window else piece
            while cursor.window and states.current.step():
                pass
        self._is_plain = states.current is states.text and states.is_plain()
        return states.out.drain()

    def read_end(self) -> list[Item]:
        """Take the end of the text; return the rest, with each call in one piece."""
        states = self._states
        if self._cursor.is_final:
            return []
        self._cursor.is_final, self._is_plain = True, False
        while states.current.step():
            pass
        states.block.finish()
        states.out.commit()
        states.release()
        return states.out.drain()


def native_attempt(call: Call, tools: ToolSet) -> Attempt:
    """Read the arguments of a native call. Some servers leave a dialect's markup in them, or cut them."""
    name, arguments, native_id = call.name, call.arguments, call.native_id
    if not arguments.strip():
        return Attempt(name, {}, native_id=native_id)
    if arguments.lstrip().startswith("<parameter"):
        return _from_tags(call, tools)
    try:
        repaired = repair(arguments, closed=False)
    except BadJson as error:
        detail = f"the arguments are not JSON: {error}"
        return Attempt(name, problem=Problem.PARSE_ERROR, detail=detail, native_id=native_id)
    source = None if repaired.fixes else arguments
    return Attempt(name, repaired.value, source=source, native_id=native_id, fixes=repaired.fixes)


def _from_tags(call: Call, tools: ToolSet) -> Attempt:
    form = XML.new(Scope(tools, stop=("</",)))
    _, outcome = form.feed(call.arguments.strip(), 0, final=True)
    if isinstance(outcome, tuple) and outcome[0].texts is not None:
        return Attempt(call.name, texts=outcome[0].texts, native_id=call.native_id)
    detail = "the arguments are not JSON"
    return Attempt(call.name, problem=Problem.PARSE_ERROR, detail=detail, native_id=call.native_id)
