"""What a dialect is: a grammar to read, and for most a way to write."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._marks import Marks, marks_of, tags_in
from toolspeak.dialects._options import DEFAULTS, ReadOptions
from toolspeak.dialects._reader import Reader
from toolspeak.dialects._shape import Shape
from toolspeak.ir.message import Call, Result
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Turn, fold
from toolspeak.toolset.toolset import ToolSet

_PROBE: Final = Tool("probe", parameters={"type": "object", "properties": {"probe": {"type": "string"}}})


@dataclass(frozen=True)
class Writer:
    """How to say it in this dialect: teach the tools, write calls and results, and stop before a forged result."""

    teach: Callable[[ToolSet], str]
    """The contract for the prompt: the tools, how to call them, when not to."""
    write_calls: Callable[[Sequence[Call], ToolSet], str]
    """Calls exactly as this dialect's reader reads them."""
    write_result: Callable[[Result], str]
    stop: tuple[str, ...] = ()
    """Where generation must stop: the begin of a result that only we may write."""
    shape: Shape | None = None
    """How an upstream can be told to write calls; None where that cannot be said (CHK-8)."""


@dataclass(frozen=True)
class Dialect:
    """A text form of tool calls."""

    name: str
    grammar: Grammar
    writer: Writer | None = None
    rescues: bool | Grammar = False
    """Calls of this form are also read from text where no dialect is expected: the dialect `any` includes it.

    True if the markers do not occur in prose or data by chance. If only some of them are safe, the grammar of those.
    """

    @property
    def rescue(self) -> Grammar | None:
        """The grammar by which calls are rescued; None if this dialect takes no part in `any`."""
        if isinstance(self.rescues, Grammar):
            return self.rescues
        return self.grammar if self.rescues else None

    @cached_property
    def marks(self) -> Marks:
        """What untrusted text must not have where this dialect is spoken: its markers, its tags, and all others'."""
        marks = marks_of(self.grammar)
        if self.writer is None:
            return marks
        call = Call("probe", _PROBE.name, '{"probe": "probe"}')
        return marks.with_tags(tags_in(self.writer.write_calls((call,), ToolSet.of([_PROBE]))))

    def reader(
        self,
        tools: Sequence[Tool] | ToolSet,
        ids: Iterator[str] | None = None,
        options: ReadOptions = DEFAULTS,
    ) -> Reader:
        """Make a reader for one turn."""
        compiled = tools if isinstance(tools, ToolSet) else ToolSet.of(tools)
        return Reader(self.grammar, compiled, ids, options)

    def read(self, text: str, tools: Sequence[Tool] | ToolSet, options: ReadOptions = DEFAULTS) -> Turn:
        """Read a whole text: the fold of feeding it."""
        reader = self.reader(tools, options=options)
        return fold((*reader.feed(text), *reader.finish()))
