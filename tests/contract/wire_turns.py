"""Turns and requests for property tests, and what each wire can say of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.message import Call, Image, Message, Part, Reasoning, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Turn, TurnPart
from toolspeak.text.strict import dump, parse

TOOLS = tuple(
    Tool(name, f"What {name} does.", {"type": "object", "properties": {"a": {"type": "string"}}}, strict=False)
    for name in ("get_weather", "read_file", "x")
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(TEXTS, JSON, max_size=3).map(lambda value: dump(dict(value)))
NAMES = st.sampled_from([tool.name for tool in TOOLS])
PIECES = st.one_of(
    st.builds(Text, TEXTS),
    st.builds(Reasoning, TEXTS, st.sampled_from(("", "c2ln"))),
    st.builds(Call, st.just(""), NAMES, ARGUMENTS),
)


@dataclass(frozen=True)
class Can:
    """What a wire carries beyond text and calls."""

    order: bool = True
    """Parts come in the order in which the model wrote them; otherwise all reasoning, then text, then calls."""
    signatures: bool = True
    cache: bool = True
    """Counts of cached tokens."""


CAN = {
    "openai_chat": Can(order=False, signatures=False),
    "openai_responses": Can(),
    "anthropic": Can(),
    "gemini": Can(),
    "ollama": Can(order=False, signatures=False, cache=False),
}


def settled(parts: list[Text | Reasoning | Call]) -> tuple[TurnPart, ...]:
    """Give calls their ids, and melt neighbours as a fold does."""
    kept: list[TurnPart] = []
    for number, part in enumerate(parts):
        last = kept[-1] if kept else None
        if isinstance(part, Text) and isinstance(last, Text):
            kept[-1] = Text(last.text + part.text)
        elif isinstance(part, Reasoning) and isinstance(last, Reasoning):
            kept[-1] = Reasoning(last.text + part.text, part.signature or last.signature)
        else:
            kept.append(replace(part, id=f"call_{number}") if isinstance(part, Call) else part)
    return tuple(kept)


def _ended(parts: tuple[TurnPart, ...], cut: StopReason | None, usage: Usage) -> Turn:
    calls = any(isinstance(part, Call) for part in parts)
    return Turn(parts, cut or (StopReason.CALLS if calls else StopReason.END), usage)


USAGES = st.builds(Usage, st.integers(1, 99), st.integers(1, 99), st.just(0), st.just(0), st.just(0))
TURNS = st.builds(
    _ended,
    st.lists(PIECES, min_size=1, max_size=6).map(settled),
    st.none() | st.just(StopReason.LENGTH),
    USAGES,
)


def said(turn: Turn, can: Can) -> Turn:
    """Return what a wire can say of a turn, in its own order."""
    parts = [_plain(part) if isinstance(part, Call) else part for part in turn.parts]
    if not can.signatures:
        parts = [replace(part, signature="") if isinstance(part, Reasoning) else part for part in parts]
    if can.order:
        return replace(turn, parts=tuple(parts))
    thought = "".join(part.text for part in parts if isinstance(part, Reasoning))
    text = "".join(part.text for part in parts if isinstance(part, Text))
    calls = [part for part in parts if isinstance(part, Call)]
    whole = [*([Reasoning(thought)] if thought else []), *([Text(text)] if text else []), *calls]
    return replace(turn, parts=tuple(whole))


def _plain(call: Call) -> Call:
    """Forget the upstream's own id, and how the arguments were spelled."""
    return replace(call, native_id="", arguments=dump(parse(call.arguments)))


def streamed(turn: Turn, sizes: list[int], *, interleaved: bool) -> Iterator[Event]:
    """Tell a turn in small pieces; neighbouring calls may grow at the same time."""
    waiting: list[Call] = []
    size = 1 + sizes[0] if sizes else 4
    for part in turn.parts:
        if isinstance(part, Call):
            waiting.append(part)
            if interleaved:
                continue
        yield from _calls(waiting, size)
        waiting = []
        if isinstance(part, Text):
            yield from map(TextDelta, _cut(part.text, size))
        elif isinstance(part, Reasoning):
            yield from map(ReasoningDelta, _cut(part.text, size))
            if part.signature:
                yield ReasoningDelta("", part.signature)
    yield from _calls(waiting, size)
    yield Finished(turn.stop or StopReason.END, turn.usage, turn.stop_sequence)


def _calls(calls: list[Call], size: int) -> Iterator[Event]:
    for call in calls:
        yield CallStarted(call.id, call.name)
    growing = [_cut(call.arguments, size) for call in calls]
    for step in range(max(map(len, growing), default=0)):
        for call, pieces in zip(calls, growing, strict=True):
            if step < len(pieces):
                yield ArgsDelta(call.id, pieces[step])
    for call in calls:
        yield CallEnded(call.id)


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


# ---------------------------------------------------------------- requests

PNG = "iVBORw0KGgo="
SAMPLINGS = st.builds(
    Sampling,
    max_tokens=st.integers(1, 9999),
    temperature=st.none() | st.sampled_from((0.0, 0.5, 1.0)),
    top_p=st.none() | st.just(0.9),
    stop=st.sampled_from(((), ("END",), ("a", "b"))),
)
CHOICES = st.one_of(
    st.just(ToolChoice()),
    st.just(ToolChoice(ChoiceMode.NONE)),
    st.just(ToolChoice(ChoiceMode.REQUIRED)),
    st.builds(ToolChoice, st.just(ChoiceMode.NAMED), NAMES),
    st.just(ToolChoice(parallel=False)),
)
SAID = TEXTS.filter(str.strip)
"""Blank text says nothing, and Anthropic refuses it."""


@st.composite
def rounds(draw: st.DrawFn) -> list[Message]:
    """Draw a user's message, and maybe calls with their results."""
    user: list[Part] = [Text(draw(SAID))]
    if draw(st.booleans()):
        user.append(Image("image/png", PNG))
    messages = [Message(Role.USER, tuple(user))]
    arguments = draw(st.lists(ARGUMENTS, max_size=3))
    if not arguments:
        return [*messages, Message(Role.ASSISTANT, (Text(draw(SAID)),))]
    calls = [Call("", draw(NAMES), text) for text in arguments]
    before = [Text(draw(SAID))] if draw(st.booleans()) else []
    results = [Result("", (Text(draw(SAID)),), call.name) for call in calls]
    return [*messages, Message(Role.ASSISTANT, (*before, *calls)), Message(Role.TOOL, tuple(results))]


def _numbered(drawn: list[list[Message]]) -> tuple[Message, ...]:
    """Give each call an id, and its result the same."""
    numbered: list[Message] = []
    for number, message in enumerate(message for some in drawn for message in some):
        turn = number if message.role is Role.ASSISTANT else number - 1
        parts = [_with_id(part, f"call_{turn}_{index}") for index, part in enumerate(_aligned(message, numbered))]
        numbered.append(Message(message.role, tuple(parts)))
    return tuple(numbered)


def _aligned(message: Message, before: list[Message]) -> list[Part]:
    """Let results stand at the same index as their calls, behind the same text."""
    if message.role is Role.TOOL and isinstance(before[-1].parts[0], Text):
        return [Text(""), *message.parts]
    return list(message.parts)


def _with_id(part: Part, id: str) -> Part:
    if isinstance(part, Call):
        return replace(part, id=id)
    return replace(part, call_id=id) if isinstance(part, Result) else part


def _clean(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(
        Message(m.role, tuple(part for part in m.parts if m.role is not Role.TOOL or isinstance(part, Result)))
        for m in messages
    )


HISTORIES = st.lists(rounds(), min_size=1, max_size=3).map(_numbered).map(_clean)


def _request(
    system: str, history: tuple[Message, ...], choice: ToolChoice, sampling: Sampling, stream: bool
) -> Request:
    return Request("m", (Message(Role.SYSTEM, (Text(system),)), *history), TOOLS, choice, sampling, stream)


REQUESTS = st.builds(
    _request,
    SAID,
    HISTORIES,
    CHOICES,
    SAMPLINGS,
    st.booleans(),
)
