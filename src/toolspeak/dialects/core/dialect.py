"""A dialect: a grammar to read calls and, for most, a writer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from toolspeak.dialects.core.escapes import ForbiddenMarkers, forbidden_markers, tag_names_in
from toolspeak.dialects.core.grammar import MarkupGrammar
from toolspeak.dialects.core.reader import DEFAULTS, TextReader
from toolspeak.dialects.core.states import ReadOptions
from toolspeak.dialects.core.writer import Writer
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold
from toolspeak.toolset.toolset import ToolSet

_PROBE: Final = Tool("probe", parameters={"type": "object", "properties": {"probe": {"type": "string"}}})


@dataclass(frozen=True)
class Dialect:
    """A text form of tool calls."""

    name: str
    grammar: MarkupGrammar
    writer: Writer | None = None
    rescues: bool | MarkupGrammar = False
    """Calls of this form are also read from text where no dialect is expected: the dialect `any` includes it.

    True if the markers do not occur in prose or data by chance. If only some of them are safe, the grammar of those.
    """
    summary: str = ""
    """What models write, in one line for the docs. A dialect with a module of its own says it in the docstring."""

    @property
    def rescue(self) -> MarkupGrammar | None:
        """The grammar by which calls are rescued; None if this dialect takes no part in `any`."""
        if isinstance(self.rescues, MarkupGrammar):
            return self.rescues
        return self.grammar if self.rescues else None

    @cached_property
    def marks(self) -> ForbiddenMarkers:
        """The markers that untrusted text must not contain in a prompt of this dialect, and those of all others."""
        marks = forbidden_markers(self.grammar)
        if self.writer is None:
            return marks
        call = Call("probe", _PROBE.name, '{"probe": "probe"}')
        return marks.with_tags(tag_names_in(self.writer.write_calls((call,), ToolSet.of([_PROBE]))))

    def reader(
        self,
        tools: Sequence[Tool] | ToolSet,
        ids: Iterator[str] | None = None,
        options: ReadOptions = DEFAULTS,
    ) -> TextReader:
        """Make a reader for one turn."""
        compiled = tools if isinstance(tools, ToolSet) else ToolSet.of(tools)
        return TextReader(self.grammar, compiled, ids, options)

    def read(self, text: str, tools: Sequence[Tool] | ToolSet, options: ReadOptions = DEFAULTS) -> Turn:
        """Read a whole text: the fold of feeding it."""
        reader = self.reader(tools, options=options)
        return fold((*reader.feed(text), *reader.finish()))
