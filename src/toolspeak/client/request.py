"""Builds requests and runs from the arguments of a caller.

Messages and tools may also be dicts in the form of OpenAI Chat.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, cast

import msgspec

from toolspeak import wires
from toolspeak.agent.runs.events import RunEvent, Watch
from toolspeak.agent.runs.preparation import built_in_actions
from toolspeak.agent.runs.steps import AskPermission
from toolspeak.agent.tools.action import OUTPUT, Action, Workplace
from toolspeak.agent.tools.functions import Function, actions_of, run_in_thread
from toolspeak.agent.tools.toolbox import Toolbox
from toolspeak.config.environment import current, journal_folder
from toolspeak.config.shape import Approval
from toolspeak.engine.agent import ROUNDS, Ending
from toolspeak.engine.settings import NOTHING_SAID, Mode, Settings
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice

MessagesInput: TypeAlias = str | Message | Mapping[str, Any] | Sequence[str | Message | Mapping[str, Any]]
"""A text of the user, one message, or a conversation, in which a text is the user's."""
ToolsInput: TypeAlias = Sequence[Tool | Function | Action | Mapping[str, Any]]
"""Tools: functions, whose signature and docstring become the schema, Actions, `Tool`s, and dicts, which may have their
schema as `parameters`, or as Anthropic's `input_schema` or MCP's `inputSchema`."""
T = TypeVar("T")
_CHAT = "openai_chat"
_MODES = {mode.value: ToolChoice(mode) for mode in ChoiceMode if mode is not ChoiceMode.NAMED}
_SCHEMA, _SCHEMAS_ELSEWHERE = "parameters", ("input_schema", "inputSchema")
_INDEX = re.compile(r"\[(\d+)\]")


class ChatOptions(TypedDict, total=False):
    """Keyword arguments of `chat`, `stream` and `plan`."""

    model: str
    """Default: the model of the client."""
    choice: str | ToolChoice
    """`auto`, `none`, `required`, or the name of the tool that must be called."""
    mode: Mode | Literal["off", "fallback", "force", "auto"]
    """Whether calls are emulated."""
    max_tokens: int | None
    temperature: float | None
    stop: str | Sequence[str]
    sampling: Sampling
    """All sampling parameters, such as `top_p` and `effort`; the three above override it."""
    output_schema: JsonObject | None
    """The JSON Schema of the answer; an empty one asks for any JSON object."""
    settings: Settings
    """All settings, such as `dialect` and `release`; `mode` overrides it."""


def build_request(messages: MessagesInput, tools: ToolsInput, options: ChatOptions, *, stream: bool = False) -> Request:
    """Return the request; raises `BadField`, and `TypeError` for an unknown option."""
    if unknown := options.keys() - ChatOptions.__annotations__.keys():
        known = ", ".join(ChatOptions.__annotations__)
        raise TypeError(f"{min(unknown)!r} is not an option; the options are: {known}")
    offered = to_tools(tools)
    return Request(
        options.get("model", ""),
        read_messages(messages),
        offered,
        to_choice(options.get("choice", AUTO), offered),
        _read_sampling(options),
        stream,
        options.get("output_schema"),
    )


def settings_from_options(options: ChatOptions) -> Settings:
    """Return the settings; raises `BadField` for an unknown mode."""
    settings = options.get("settings", NOTHING_SAID)
    mode = options.get("mode")
    if mode is None:
        return settings
    if mode not in list(Mode):
        raise BadField("mode", f"{mode!r} is not one of {', '.join(Mode)}")
    return replace(settings, mode=Mode(mode))


def read_messages(said: MessagesInput) -> tuple[Message, ...]:
    """Return the messages. Adjacent dicts are read as one conversation, because results refer to calls by their ids."""
    conversation = [said] if isinstance(said, str | Message | Mapping) else said
    ours = [Message(Role.USER, (Text(one),)) if isinstance(one, str) else one for one in conversation]
    return tuple(_read_dicts(ours, Message, "messages", lambda request: request.messages))


def to_tools(offered: ToolsInput) -> tuple[Tool, ...]:
    """Return the tools, in their order; raises `BadField`. Functions become what `run` makes of them."""
    ours = [_in_our_form(one, place) for place, one in enumerate(offered)]
    return tuple(_read_dicts(ours, Tool, "tools", lambda request: request.tools))


def to_choice(choice: "str | ToolChoice", tools: Iterable[Tool]) -> ToolChoice:
    """Return the choice: `auto`, `none`, `required`, or the name of the tool that must be called. Raises `BadField`."""
    if isinstance(choice, ToolChoice):
        return choice
    if choice in _MODES:
        return _MODES[choice]
    names = [tool.name for tool in tools]
    if choice not in names:
        raise BadField("choice", f"{choice!r} is neither one of {', '.join(_MODES)} nor a tool ({', '.join(names)})")
    return ToolChoice(ChoiceMode.NAMED, choice)


def _read_sampling(options: ChatOptions) -> Sampling:
    sampling = options.get("sampling", Sampling())
    if "max_tokens" in options:
        sampling = replace(sampling, max_tokens=options["max_tokens"])
    if "temperature" in options:
        sampling = replace(sampling, temperature=options["temperature"])
    if "stop" in options:
        stop = options["stop"]
        sampling = replace(sampling, stop=(stop,) if isinstance(stop, str) else tuple(stop))
    return sampling


def _in_our_form(tool: Tool | Function | Action | Mapping[str, Any], place: int) -> Tool | Mapping[str, Any]:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Action) or callable(tool):
        return actions_of((tool,))[0].tool
    if isinstance(tool, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] # callers without a type checker
        return _with_parameters(tool)
    named = " names of built-in tools are for `run`," if isinstance(tool, str) else ""
    raise BadField(f"tools[{place}]", f"{tool!r:.80} is no tool:{named} pass a function, an Action, a Tool or a dict")


def _with_parameters(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    elsewhere = next((name for name in _SCHEMAS_ELSEWHERE if name in tool), None)
    if elsewhere is None or _SCHEMA in tool:
        return tool
    return {_SCHEMA if name == elsewhere else name: value for name, value in tool.items()}


def _read_dicts(
    all_: Iterable[T | Mapping[str, Any]], kind: type[T], field: str, part: Callable[[Request], tuple[T, ...]]
) -> Iterator[T]:
    """Yield values of our own type as they are; read the dicts between them as a body of OpenAI Chat."""
    start = 0
    for _, group in groupby(all_, lambda one: isinstance(one, kind)):
        together = list(group)
        ours = [one for one in together if isinstance(one, kind)]
        yield from ours or part(_read(field, together, start))
        start += len(together)


def _read(field: str, values: Sequence[object], start: int) -> Request:
    """Read some values. Indexes in an error are those of the caller's whole list: the values begin at `start`."""
    try:
        written = msgspec.json.encode({"model": "", "messages": [], field: values})
        return wires.load(_CHAT).decode_request(written, "")
    except (TypeError, ValueError) as error:
        raise BadField(field, f"it cannot be written as JSON: {error}") from None
    except BadField as error:
        problem = str(error).removeprefix(f"{error.field}: ")
        place = _INDEX.sub(lambda index: f"[{int(index[1]) + start}]", error.field, count=1)
        raise BadField(place, problem) from None


# ---------------------------------------------------------------- runs

RunnableTools: TypeAlias = Sequence[Function | Action | str]
"""Tools that can run: functions, Actions, and names of built-in tools (`files`, `shell`, `final_output`)."""


class RunOptions(ChatOptions, total=False):
    """Keyword arguments of `run`."""

    folder: str | Path
    """The folder of the built-in tools, and the only one that they change."""
    approval: Approval | str
    """`read-only`, `ask`, `auto` or `off`. Default: `ask` with an `ask` function, else `off`, because a caller that
    passes a function wants it to run."""
    rounds: int
    """How many times the model may call tools before it must answer."""
    output: int
    """Bytes of a tool's result; a longer one is cut in the middle."""
    history: Ending | MessagesInput
    """The conversation before the task: the `Ending` of the run that this one continues, or messages."""
    agent_prompt: bool
    """Whether the system prompt begins with how an agent works: plan, one tool at a time, verify. Default: yes."""


def with_history(task: MessagesInput, options: RunOptions) -> MessagesInput:
    """Return the messages of a run: its history, then its task."""
    before = options.get("history", ())
    said = before.messages if isinstance(before, Ending) else read_messages(before)
    return (*said, *read_messages(task)) if said else task


def build_toolbox(tools: RunnableTools, options: RunOptions) -> Toolbox:
    """Return the tools, ready to run; raises `BadField`."""
    output = options.get("output", OUTPUT)
    named = (
        built_in_actions(each, _workplace(options, output)) if isinstance(each, str) else actions_of((each,))
        for each in tools
    )
    return Toolbox([action for actions in named for action in actions], output)


def read_approval(options: RunOptions, *, can_ask: bool) -> Approval:
    """Return the approval mode; raises `BadField`."""
    mode = options.get("approval", Approval.ASK if can_ask else Approval.OFF)
    if mode not in list(Approval):
        raise BadField("approval", f"{mode!r} is not one of {', '.join(Approval)}")
    return Approval(mode)


def read_rounds(options: RunOptions) -> int:
    """Return the most rounds; raises `BadField`."""
    rounds = options.get("rounds", ROUNDS)
    if rounds < 0:
        raise BadField("rounds", f"{rounds} is not a number from 0 on")
    return rounds


def chat_options(options: RunOptions) -> ChatOptions:
    """Return those of a run's options that apply to each of its turns."""
    runs_own = RunOptions.__annotations__.keys() - ChatOptions.__annotations__.keys()
    return cast("ChatOptions", {name: value for name, value in options.items() if name not in runs_own})


def _workplace(options: RunOptions, output: int) -> Workplace:
    folder = Path(options.get("folder", ""))
    if "folder" not in options or not folder.is_dir():
        raise BadField("folder", f"{str(folder)!r} is not a folder; built-in tools need one: pass folder=")
    return Workplace(folder.resolve(), output, journal=journal_folder(current()))


def async_watch(see: Callable[[RunEvent], object]) -> Watch:
    """Return a `Watch` of a run that calls a synchronous function. It runs on the event loop, so it must be quick."""

    async def watch(event: RunEvent) -> None:
        see(event)

    return watch


def async_ask(ask: Callable[[Call], bool]) -> AskPermission:
    """Return an `AskPermission` that calls a synchronous function, in a thread, because it may wait for a person."""
    return lambda call: run_in_thread(ask, call)
