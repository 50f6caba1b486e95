"""toolspeak gives every language model tool calling.

`read` takes the text of a model and gives the turn: what to show, what it thought, which tools it calls.
To read a stream, take a reader from a dialect: `dialects.load("hermes").reader(tools)`.
"""

from collections.abc import Sequence

from toolspeak import dialects
from toolspeak.dialects import Dialect, Reader, ReadOptions
from toolspeak.errors import ToolspeakError
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call, Image, Message, Reasoning, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Turn, fold, unfold

__all__ = [
    "Call",
    "ChoiceMode",
    "Dialect",
    "Event",
    "Image",
    "Message",
    "ReadOptions",
    "Reader",
    "Reasoning",
    "Request",
    "Result",
    "Role",
    "Text",
    "Tool",
    "ToolChoice",
    "ToolspeakError",
    "Turn",
    "dialects",
    "fold",
    "read",
    "unfold",
]


def read(text: str, tools: Sequence[Tool], dialect: str = "any", options: ReadOptions | None = None) -> Turn:
    """Read a model's whole text; `any` reads whatever comes, a model's own dialect reads it best."""
    return dialects.load(dialect).read(text, tools, options or ReadOptions())
