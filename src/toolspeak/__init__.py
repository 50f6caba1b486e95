"""toolspeak gives every language model tool calling.

`Client` and `AsyncClient` ask a model with tools, whatever the model can do, and work on tasks: `Client.run`.
`read` takes the text of a model and gives the turn: what to show, what it thought, which tools it calls.
To read a stream, take a reader from a dialect: `dialects.load("hermes").reader(tools)`.

Each name is loaded when it is first used, so that `import toolspeak` (and the command line) costs next to nothing.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # what `_HOMES` says, in the words of type checkers; a test keeps both the same
    from toolspeak import dialects
    from toolspeak.agent.tools.action import Action
    from toolspeak.agent.tools.functions import tool
    from toolspeak.client import Answer, AsyncClient, Client, tool_result
    from toolspeak.dialects import Dialect, ReadOptions, TextReader
    from toolspeak.engine.agent import Ending
    from toolspeak.engine.settings import Settings
    from toolspeak.errors import ToolspeakError, UpstreamFailed
    from toolspeak.facts.strategy import strategy_for
    from toolspeak.ir.event import Event, TextDelta
    from toolspeak.ir.message import Call, Image, Message, Reasoning, Result, Role, Text
    from toolspeak.ir.request import Request, Sampling
    from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
    from toolspeak.ir.turn import Turn, fold, unfold

__all__ = [
    "Action",
    "Answer",
    "AsyncClient",
    "Call",
    "ChoiceMode",
    "Client",
    "Dialect",
    "Ending",
    "Event",
    "Image",
    "Message",
    "ReadOptions",
    "Reasoning",
    "Request",
    "Result",
    "Role",
    "Sampling",
    "Settings",
    "Text",
    "TextDelta",
    "TextReader",
    "Tool",
    "ToolChoice",
    "ToolspeakError",
    "Turn",
    "UpstreamFailed",
    "dialects",
    "fold",
    "read",
    "strategy_for",
    "tool",
    "tool_result",
    "unfold",
]

_HOMES: Final = {
    "toolspeak": ("dialects",),
    "toolspeak.client": ("Answer", "AsyncClient", "Client", "tool_result"),
    "toolspeak.dialects": ("Dialect", "ReadOptions", "TextReader"),
    "toolspeak.engine.agent": ("Ending",),
    "toolspeak.engine.settings": ("Settings",),
    "toolspeak.errors": ("ToolspeakError", "UpstreamFailed"),
    "toolspeak.facts.strategy": ("strategy_for",),
    "toolspeak.ir.event": ("Event", "TextDelta"),
    "toolspeak.ir.message": ("Call", "Image", "Message", "Reasoning", "Result", "Role", "Text"),
    "toolspeak.ir.request": ("Request", "Sampling"),
    "toolspeak.ir.tool": ("ChoiceMode", "Tool", "ToolChoice"),
    "toolspeak.ir.turn": ("Turn", "fold", "unfold"),
    "toolspeak.agent.tools.action": ("Action",),
    "toolspeak.agent.tools.functions": ("tool",),
}
"""Where each public name lives; those of "toolspeak" are its modules."""


def read(text: str, tools: "Sequence[Tool]", dialect: str = "any", options: "ReadOptions | None" = None) -> "Turn":
    """Read a model's whole text; `any` reads whatever comes, a model's own dialect reads it best."""
    from toolspeak.dialects import ReadOptions, load  # noqa: PLC0415 - loaded on first use

    return load(dialect).read(text, tools, options or ReadOptions())


if not TYPE_CHECKING:  # else every misspelt name would pass the type checkers

    def __getattr__(name: str) -> object:
        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = import_module(f"{home}.{name}") if home == __name__ else getattr(import_module(home), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
