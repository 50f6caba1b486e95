"""toolspeak gives every language model tool calling.

`Client` and `AsyncClient` ask a model with tools, whatever the model can do, and work on tasks: `Client.run`.
`read` takes the text of a model and gives the turn: what to show, what it thought, which tools it calls.
To read a stream, take a reader from a dialect: `dialects.load("hermes").reader(tools)`.

Each name is loaded when it is first used, so that `import toolspeak` (and the command line) costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # what `_HOMES` says, in the words of type checkers; a test keeps both the same
    from toolspeak import dialects
    from toolspeak.agent.runs.events import (
        RunEnded,
        RunEvent,
        ToolCallAsked,
        ToolCallBegan,
        ToolCallEnded,
        ToolCallRejected,
        TurnBegan,
        TurnEnded,
        Wrote,
    )
    from toolspeak.agent.tools.action import Action, CallContext, ToolEffect, ToolOutput
    from toolspeak.agent.tools.functions import tool
    from toolspeak.client import (
        Answer,
        AsyncClient,
        AsyncStream,
        ChatOptions,
        Client,
        MessagesInput,
        RunnableTools,
        RunOptions,
        Stream,
        ToolsInput,
        tool_result,
    )
    from toolspeak.config.shape import Approval, Config
    from toolspeak.dialects import Dialect, ReadOptions, TextReader
    from toolspeak.engine.agent import Ending, Status
    from toolspeak.engine.effects import Outcome
    from toolspeak.engine.plan import Plan, Way
    from toolspeak.engine.settings import Mode, Release, Settings, Strategy
    from toolspeak.engine.verdict import Depth, Finding, Layer, Verdict
    from toolspeak.errors import (
        BadConfig,
        BadField,
        BadFrame,
        BadJson,
        BadRequest,
        BadSchema,
        CellUnavailable,
        ClientClosed,
        McpFailed,
        MissingExtra,
        NotStored,
        RunsUnavailable,
        ServerLost,
        TooLarge,
        ToolspeakError,
        TooManyRuns,
        UnknownModel,
        UnknownName,
        UnknownPrevious,
        UnknownRun,
        UpstreamFailed,
    )
    from toolspeak.facts.model import Constrain, ModelFacts, Source, Support
    from toolspeak.facts.strategy import Capability, Chosen, Override, Overrides, strategy_for
    from toolspeak.ir.complaint import Complaint, Fix, Problem
    from toolspeak.ir.constraint import ConstraintForm
    from toolspeak.ir.event import (
        ArgsDelta,
        CallEnded,
        CallRejected,
        CallStarted,
        Discarded,
        Event,
        Failed,
        Finished,
        ReasoningDelta,
        StopReason,
        TextDelta,
        Usage,
        Why,
    )
    from toolspeak.ir.failure import Failure, FailureKind
    from toolspeak.ir.message import Call, Image, Message, Opaque, Reasoning, Result, Role, Text, ToolReference, Vendor
    from toolspeak.ir.request import Request, Sampling
    from toolspeak.ir.round import Compact, Round
    from toolspeak.ir.tool import ChoiceMode, Grammar, Tool, ToolChoice, ToolKind
    from toolspeak.ir.turn import PartialCall, Turn, fold, unfold
    from toolspeak.runtime.drive import AsyncUpstream
    from toolspeak.runtime.transport import Timeouts
    from toolspeak.transport import AsyncTransport, Transport, TransportOptions

__all__ = [
    "Action",
    "Answer",
    "Approval",
    "ArgsDelta",
    "AsyncClient",
    "AsyncStream",
    "AsyncTransport",
    "AsyncUpstream",
    "BadConfig",
    "BadField",
    "BadFrame",
    "BadJson",
    "BadRequest",
    "BadSchema",
    "Call",
    "CallContext",
    "CallEnded",
    "CallRejected",
    "CallStarted",
    "Capability",
    "CellUnavailable",
    "ChatOptions",
    "ChoiceMode",
    "Chosen",
    "Client",
    "ClientClosed",
    "Compact",
    "Complaint",
    "Config",
    "Constrain",
    "ConstraintForm",
    "Depth",
    "Dialect",
    "Discarded",
    "Ending",
    "Event",
    "Failed",
    "Failure",
    "FailureKind",
    "Finding",
    "Finished",
    "Fix",
    "Grammar",
    "Image",
    "Layer",
    "McpFailed",
    "Message",
    "MessagesInput",
    "MissingExtra",
    "Mode",
    "ModelFacts",
    "NotStored",
    "Opaque",
    "Outcome",
    "Override",
    "Overrides",
    "PartialCall",
    "Plan",
    "Problem",
    "ReadOptions",
    "Reasoning",
    "ReasoningDelta",
    "Release",
    "Request",
    "Result",
    "Role",
    "Round",
    "RunEnded",
    "RunEvent",
    "RunOptions",
    "RunnableTools",
    "RunsUnavailable",
    "Sampling",
    "ServerLost",
    "Settings",
    "Source",
    "Status",
    "StopReason",
    "Strategy",
    "Stream",
    "Support",
    "Text",
    "TextDelta",
    "TextReader",
    "Timeouts",
    "TooLarge",
    "TooManyRuns",
    "Tool",
    "ToolCallAsked",
    "ToolCallBegan",
    "ToolCallEnded",
    "ToolCallRejected",
    "ToolChoice",
    "ToolEffect",
    "ToolKind",
    "ToolOutput",
    "ToolReference",
    "ToolsInput",
    "ToolspeakError",
    "Transport",
    "TransportOptions",
    "Turn",
    "TurnBegan",
    "TurnEnded",
    "UnknownModel",
    "UnknownName",
    "UnknownPrevious",
    "UnknownRun",
    "UpstreamFailed",
    "Usage",
    "Vendor",
    "Verdict",
    "Way",
    "Why",
    "Wrote",
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
    "toolspeak.agent.runs.events": (
        "RunEnded",
        "RunEvent",
        "ToolCallAsked",
        "ToolCallBegan",
        "ToolCallEnded",
        "ToolCallRejected",
        "TurnBegan",
        "TurnEnded",
        "Wrote",
    ),
    "toolspeak.agent.tools.action": (
        "Action",
        "CallContext",
        "ToolEffect",
        "ToolOutput",
    ),
    "toolspeak.agent.tools.functions": ("tool",),
    "toolspeak.client": (
        "Answer",
        "AsyncClient",
        "AsyncStream",
        "ChatOptions",
        "Client",
        "MessagesInput",
        "RunnableTools",
        "RunOptions",
        "Stream",
        "ToolsInput",
        "tool_result",
    ),
    "toolspeak.config.shape": (
        "Approval",
        "Config",
    ),
    "toolspeak.dialects": (
        "Dialect",
        "ReadOptions",
        "TextReader",
    ),
    "toolspeak.engine.agent": (
        "Ending",
        "Status",
    ),
    "toolspeak.engine.effects": ("Outcome",),
    "toolspeak.engine.plan": (
        "Plan",
        "Way",
    ),
    "toolspeak.engine.settings": (
        "Mode",
        "Release",
        "Settings",
        "Strategy",
    ),
    "toolspeak.engine.verdict": (
        "Depth",
        "Finding",
        "Layer",
        "Verdict",
    ),
    "toolspeak.errors": (
        "BadConfig",
        "BadField",
        "BadFrame",
        "BadJson",
        "BadRequest",
        "BadSchema",
        "CellUnavailable",
        "ClientClosed",
        "McpFailed",
        "MissingExtra",
        "NotStored",
        "RunsUnavailable",
        "ServerLost",
        "TooLarge",
        "TooManyRuns",
        "ToolspeakError",
        "UnknownModel",
        "UnknownName",
        "UnknownPrevious",
        "UnknownRun",
        "UpstreamFailed",
    ),
    "toolspeak.facts.model": (
        "Constrain",
        "ModelFacts",
        "Source",
        "Support",
    ),
    "toolspeak.facts.strategy": (
        "Capability",
        "Chosen",
        "Override",
        "Overrides",
        "strategy_for",
    ),
    "toolspeak.ir.complaint": (
        "Complaint",
        "Fix",
        "Problem",
    ),
    "toolspeak.ir.constraint": ("ConstraintForm",),
    "toolspeak.ir.event": (
        "ArgsDelta",
        "CallEnded",
        "CallRejected",
        "CallStarted",
        "Discarded",
        "Event",
        "Failed",
        "Finished",
        "ReasoningDelta",
        "StopReason",
        "TextDelta",
        "Usage",
        "Why",
    ),
    "toolspeak.ir.failure": (
        "Failure",
        "FailureKind",
    ),
    "toolspeak.ir.message": (
        "Call",
        "Image",
        "Message",
        "Opaque",
        "Reasoning",
        "Result",
        "Role",
        "Text",
        "ToolReference",
        "Vendor",
    ),
    "toolspeak.ir.request": (
        "Request",
        "Sampling",
    ),
    "toolspeak.ir.round": (
        "Compact",
        "Round",
    ),
    "toolspeak.ir.tool": (
        "ChoiceMode",
        "Grammar",
        "Tool",
        "ToolChoice",
        "ToolKind",
    ),
    "toolspeak.ir.turn": (
        "PartialCall",
        "Turn",
        "fold",
        "unfold",
    ),
    "toolspeak.runtime.drive": ("AsyncUpstream",),
    "toolspeak.runtime.transport": ("Timeouts",),
    "toolspeak.transport": (
        "AsyncTransport",
        "Transport",
        "TransportOptions",
    ),
}
"""Where each public name lives; those of "toolspeak" are its modules."""


def read(text: str, tools: "ToolsInput", dialect: str = "any", options: "ReadOptions | None" = None) -> "Turn":
    """Read a model's whole text; `any` reads whatever comes, a model's own dialect reads it best.

    The tools may be functions and dicts too, as in `Client.chat`.
    """
    from toolspeak.dialects import ReadOptions, load  # noqa: PLC0415 - loaded on first use
    from toolspeak.ir.tool import Tool  # noqa: PLC0415 - as above

    known = [one for one in tools if isinstance(one, Tool)]
    if len(known) != len(tools):  # the client's reader of tools takes longer to load than a dialect
        from toolspeak.client.request import to_tools  # noqa: PLC0415 - as above

        known = [*to_tools(tools)]
    return load(dialect).read(text, known, options or ReadOptions())


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
