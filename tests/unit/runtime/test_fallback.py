"""A turn that another model takes: when, to which one, and what the client sees of it (POOL-5)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from testkit.loopback import in_loop
from toolspeak.engine.effects import Outcome
from toolspeak.engine.plan import Plan
from toolspeak.engine.settings import NOTHING_SAID
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.event import Event, Failed, Finished, StopReason, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Image, Message, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import Tool
from toolspeak.runtime.directory import EmitEvents, Route
from toolspeak.runtime.drive import AsyncBatches
from toolspeak.runtime.fallback import FallbackTurn, Needs

WORDS = (TextDelta("It is cold."), Finished(StopReason.END))
REQUEST = Request("fast", (Message(Role.USER, (Text("Is it cold in Oslo?"),)),))
PICTURE = Image("image/png", data="aGk=")
MOVES = (
    FailureKind.TRANSIENT,
    FailureKind.TIMEOUT,
    FailureKind.DISCONNECTED,
    FailureKind.RATE_LIMITED,
    FailureKind.CONTEXT_LENGTH,
)


def failed(kind: FailureKind) -> tuple[Event, ...]:
    return (Failed(Failure(kind, "no", 503)),)


class Says:
    """An upstream that always answers the same, and counts."""

    def __init__(self, *events: Event) -> None:
        self.events = events
        self.asked: list[Request] = []

    async def open(self, request: Request) -> AsyncBatches:
        self.asked.append(request)
        yield list(self.events)


def route(name: str, says: Says, facts: ModelFacts | None = None, *fallbacks: Route) -> Route:
    return Route("up", says, name, facts or ModelFacts(context_tokens=8192), alias=name, fallbacks=fallbacks)


async def took(first: Route, request: Request = REQUEST) -> tuple[list[Event], list[tuple[str, str, str]]]:
    """Take a turn; return what the client gets, and the moves: to which model, why, and the plan's line."""
    events: list[Event] = []
    moves: list[tuple[str, str, str]] = []

    async def emit(more: Sequence[Event]) -> None:
        events.extend(more)

    async def take(route: Route, plan: Plan, emit: EmitEvents) -> Outcome:
        return await route.take(request, plan, emit)

    def moved(route: Route, plan: Plan, why: str) -> None:
        moves.append((route.identity, why, plan.line))

    turn = FallbackTurn(first, request, NOTHING_SAID, take, moved)
    await turn.run(first.plan(request), emit)
    return events, moves


@pytest.mark.parametrize("kind", MOVES)
@in_loop
async def test_a_failure_before_the_first_byte_moves_the_turn_pool5(kind: FailureKind) -> None:
    large = route("large", Says(*WORDS), ModelFacts(context_tokens=32768))
    events, moves = await took(route("fast", Says(*failed(kind)), None, large))
    assert events == [TextDelta("It is cold."), Finished(StopReason.END)]
    ((to, why, line),) = moves
    assert (to, why) == ("large", kind)
    assert line.endswith(f"fallback from fast to large ({kind})")


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in MOVES])
@in_loop
async def test_what_another_model_cannot_help_stays_pool5(kind: FailureKind) -> None:
    large = Says(*WORDS)
    events, moves = await took(route("fast", Says(*failed(kind)), None, route("large", large)))
    assert isinstance(events[-1], Failed)
    assert (moves, large.asked) == ([], [])


@in_loop
async def test_after_the_first_byte_the_turn_stays_pool5() -> None:
    large, broken = Says(*WORDS), (TextDelta("It is"), *failed(FailureKind.DISCONNECTED))
    events, moves = await took(route("fast", Says(*broken), None, route("large", large)))
    assert events[0] == TextDelta("It is")
    assert isinstance(events[-1], Failed)
    assert (moves, large.asked) == ([], [])


@in_loop
async def test_each_model_is_tried_once_and_the_last_failure_is_the_clients_pool5() -> None:
    first, second = Says(*failed(FailureKind.TRANSIENT)), Says(*failed(FailureKind.TIMEOUT))
    third = Says(*failed(FailureKind.RATE_LIMITED))
    chain = route("a", first, None, route("b", second), route("c", third))
    events, moves = await took(chain)
    assert [(to, why) for to, why, _ in moves] == [("b", "transient"), ("c", "timeout")]
    (last,) = events
    assert isinstance(last, Failed)
    assert last.failure.kind is FailureKind.RATE_LIMITED
    assert [len(each.asked) for each in (first, second, third)] == [1, 1, 1]


@in_loop
async def test_images_go_only_to_a_model_that_reads_them_pool5() -> None:
    blind, sees = Says(*WORDS), Says(*WORDS)
    seeing = route("sees", sees, ModelFacts(images=True))
    chain = route("a", Says(*failed(FailureKind.TRANSIENT)), None, route("blind", blind), seeing)
    for parts in ((Text("What is it?"), PICTURE), (Result("call_1", (PICTURE,)),)):
        request = replace(REQUEST, messages=(*REQUEST.messages, Message(Role.USER, parts)))
        _, moves = await took(chain, request)
        assert [to for to, _, _ in moves] == ["sees"]
    assert blind.asked == []


@in_loop
async def test_a_request_that_is_too_long_goes_only_to_a_model_with_a_longer_context_pool5() -> None:
    same, unknown, longer = Says(*WORDS), Says(*WORDS), Says(*WORDS)
    others = (
        route("same", same, ModelFacts(context_tokens=8192)),
        route("unknown", unknown, ModelFacts()),
        route("longer", longer, ModelFacts(context_tokens=32768)),
    )
    _, moves = await took(route("a", Says(*failed(FailureKind.CONTEXT_LENGTH)), None, *others))
    assert [to for to, _, _ in moves] == ["longer"]
    _, moves = await took(route("a", Says(*failed(FailureKind.TRANSIENT)), None, *others))
    assert [to for to, _, _ in moves] == ["same"]


@in_loop
async def test_a_model_without_tools_gets_a_plan_of_its_own_pool5() -> None:
    says = Says(TextDelta('```tool_call\n{"name": "get_weather", "arguments": {}}\n```'), Finished(StopReason.END))
    emulated = route("plain", says, ModelFacts(Support.NONE, dialect="fenced"))
    tools = (Tool("get_weather", "Weather", {"type": "object", "properties": {}}),)
    request = replace(REQUEST, tools=tools)
    first = route("a", Says(*failed(FailureKind.TRANSIENT)), ModelFacts(Support.NATIVE), emulated)
    events, moves = await took(first, request)
    assert moves[0][2].startswith("force inline fenced")
    assert says.asked[0].tools == ()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.stop is StopReason.CALLS


def test_the_answer_that_is_allowed_counts_for_the_context_pool5() -> None:
    needs = Needs.of(replace(REQUEST, sampling=Sampling(max_tokens=8000)))
    assert needs.tokens > 8000
    assert not needs.are_met_by(ModelFacts(context_tokens=8000))
    assert needs.are_met_by(ModelFacts(context_tokens=9000))
    assert needs.are_met_by(ModelFacts())
