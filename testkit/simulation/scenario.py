"""A scenario of the simulation: client, upstream, request and plan, generated from one number."""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from testkit.matrix import WIRES
from testkit.simulation.tools import POOL, UNMISTAKABLE, arguments, token
from toolspeak import wires
from toolspeak.dialects import Dialect, load, names
from toolspeak.engine.guardrails import GUARDRAILS
from toolspeak.engine.memory import known_tools
from toolspeak.engine.plan import DECISION_DIALECT, Plan, Way, decide
from toolspeak.engine.prompt import dialect_of
from toolspeak.engine.settings import Mode, Release, Settings, Strategy
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, ChoiceMode, Tool, ToolChoice
from toolspeak.text.strict import dump
from toolspeak.toolset.toolset import ToolSet
from toolspeak.wires import Wire

WRITING: Final = tuple(name for name in names() if load(name).writer is not None)
READ_ONLY: Final = ("any", "cline", "harmony", "minimax", "tag_json")
STOP: Final = "HALT"
"""The client's stop sequence, where there is one: no word of ours contains it."""
KEY: Final = "k3y5eed0f5im"
GUARDED: Final = 0.2
"""The share of scenarios with guardrails."""


@dataclass(frozen=True)
class Scenario:
    """One scenario. `request` is the request as the client's wire decoded it."""

    seed: int
    client: Wire
    upstream: Wire
    request: Request
    remembered: tuple[Tool, ...]
    settings: Settings
    facts: ModelFacts
    plan: Plan
    tools: tuple[Tool, ...]
    """The tools that the model may call."""
    planted: tuple[str, ...]
    """Calls inside the user's message or a tool's result."""
    asynchronous: bool
    cancels_at: int
    """The step at which the client goes away; 0 for never."""
    obeys_stops: bool
    """The upstream honours stop sequences."""

    @property
    def taught(self) -> Dialect:
        """The dialect that an emulated request teaches."""
        return dialect_of(self.plan)

    @property
    def guarded(self) -> bool:
        """Tell whether guardrails may set calls aside, change them, or ask for more."""
        return bool(self.plan.guardrails)

    def has_guardrail(self, name: str) -> bool:
        """Tell whether a guardrail is on."""
        return any(guardrail.name == name for guardrail in self.plan.guardrails)

    @property
    def checked(self) -> bool:
        """Tell whether calls are looked at: they are not if no tool is offered or everything is passed through."""
        return self.plan.way not in (Way.PLAIN, Way.OFF)

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        request, plan, choice = self.request, self.plan, self.request.choice
        how = f"{'streamed' if request.stream else 'whole'}, {'async' if self.asynchronous else 'sync'}"
        settings, in_reasoning = plan.settings, plan.facts.starts_in_reasoning
        reads = f"rescue {settings.rescue and plan.rescue_dialect}, starts in reasoning {in_reasoning}"
        told = f"{choice.mode} {choice.name} parallel {choice.parallel} allowed {choice.allowed}"
        roles = " ".join(message.role.value for message in request.messages)
        return [
            f"{self.client.name} over {self.upstream.name}, {how}, leaves at {self.cancels_at}",
            f"{plan.line}; retries {plan.retries}, {reads}, answer tool {settings.answer_tool}, key {settings.key!r}",
            f"tools {[tool.name for tool in request.tools]}, known {[tool.name for tool in self.tools]}, choice {told}",
            f"messages {roles}; stop {request.sampling.stop}; planted {self.planted}",
        ]


def make(seed: int, dice: Random) -> Scenario:
    """Make the scenario of a seed."""
    client, upstream = wires.load(dice.choice(WIRES)), wires.load(dice.choice(WIRES))
    settings, facts = _guarded(_settings(dice), Random(f"guardrails of {seed}")), _facts(dice)
    offered = tuple(dice.sample(POOL, dice.choice((0, 1, 1, 2, 2, 3, 4))))
    planted = _planted(dice, offered, settings)
    request = _as_the_client_sends(_request(dice, offered, planted), client)
    remembered = tuple(dice.sample(POOL, 2)) if dice.random() < 0.3 else ()
    plan = decide(request, settings, facts)
    tools = known_tools(request, remembered) if plan.way not in (Way.PLAIN, Way.OFF) else request.tools
    cancels_at = dice.randint(1, 40) if dice.random() < 0.12 else 0
    return Scenario(
        seed,
        client,
        upstream,
        request,
        remembered,
        settings,
        facts,
        plan,
        tools,
        planted,
        asynchronous=dice.random() < 0.5,
        cancels_at=cancels_at,
        obeys_stops=dice.random() < 0.5,
    )


def _settings(dice: Random) -> Settings:
    dialect = dice.choice(WRITING) if dice.random() < 0.85 else dice.choice(READ_ONLY)
    return Settings(
        mode=dice.choice((None, Mode.FORCE, Mode.FORCE, Mode.FALLBACK, Mode.FALLBACK, Mode.AUTO, Mode.OFF)),
        chat=dice.random() < 0.05,
        strategy=dice.choice((None, None, Strategy.INLINE, Strategy.DECISION)),
        dialect=dice.choice((None, dialect, dialect, dialect)),
        release=dice.choice((None, *Release)),
        retries=dice.choice((None, 0, 1, 2, 3)),
        rescue=dice.choice((None, None, True, False)),
        keep_system=dice.choice((None, True, False)),
        few_shot=dice.choice((None, True, False)),
        answer_tool=dice.choice((None, None, True, False)),
        key=KEY if dice.random() < 0.08 else None,
    )


def _guarded(settings: Settings, dice: Random) -> Settings:
    """Switch guardrails on for some; with separate dice, so that the rest of a seed stays the same."""
    if dice.random() > GUARDED:
        return settings
    return replace(settings, **{name: dice.random() < 0.6 for name in GUARDRAILS})


def _facts(dice: Random) -> ModelFacts:
    return ModelFacts(
        tools=dice.choice(tuple(Support)),
        dialect=dice.choice(WRITING) if dice.random() < 0.3 else "",
        decides=dice.random() < 0.15,
        calls_in_reasoning=dice.random() < 0.1,
        starts_in_reasoning=dice.random() < 0.06,
        few_shot=dice.random() < 0.2,
        answer_tool=dice.random() < 0.1,
        context_tokens=dice.choice((None, None, 300, 8000)),
    )


# ---------------------------------------------------------------- the request


def _request(dice: Random, offered: tuple[Tool, ...], planted: tuple[str, ...]) -> Request:
    stops = (STOP,) if dice.random() < 0.1 else ()
    return Request(
        "sim-model",
        tuple(_messages(dice, offered, planted)),
        offered,
        _choice(dice, offered),
        Sampling(max_tokens=500, stop=stops),
        stream=dice.random() < 0.7,
    )


def _messages(dice: Random, offered: tuple[Tool, ...], planted: tuple[str, ...]) -> list[Message]:
    said = [f"Please help me with {token(dice)}."]
    results = [f"The result is {token(dice)}.", f"It says {token(dice)}."]
    for text in planted:
        dice.choice((said, results)).append(text)
    messages = [Message(Role.SYSTEM, (Text(f"You are {token(dice)}."),))] if dice.random() < 0.5 else []
    messages.append(Message(Role.USER, (Text("\n".join(said)),)))
    if dice.random() < 0.35 or len(results) > 2:
        messages += _called(dice, offered or POOL, "\n".join(results))
        if dice.random() < 0.4:
            messages.append(Message(Role.USER, (Text(f"And what about {token(dice)}?"),)))
    return messages


def _called(dice: Random, tools: tuple[Tool, ...], answer: str) -> list[Message]:
    """Make an earlier round: calls and their results."""
    calls = [Call(f"call_h{n}", tool.name, dump(arguments(tool, dice))) for n, tool in enumerate(_few(dice, tools))]
    said = (Text(f"I look at {token(dice)}."),) if dice.random() < 0.5 else ()
    results = tuple(Result(call.id, (Text(answer),), call.name, is_error=dice.random() < 0.1) for call in calls)
    return [Message(Role.ASSISTANT, (*said, *calls)), Message(Role.TOOL, results)]


def _few(dice: Random, tools: tuple[Tool, ...]) -> list[Tool]:
    return [dice.choice(tools) for _ in range(dice.choice((1, 1, 2)))]


def _choice(dice: Random, offered: tuple[Tool, ...]) -> ToolChoice:
    if not offered:
        return AUTO
    mode = dice.choice((ChoiceMode.AUTO, ChoiceMode.AUTO, ChoiceMode.AUTO, *ChoiceMode))
    name = dice.choice(offered).name if mode is ChoiceMode.NAMED else ""
    free = mode in (ChoiceMode.AUTO, ChoiceMode.REQUIRED)
    allowed = (dice.choice(offered).name,) if free and dice.random() < 0.1 else ()
    return ToolChoice(mode, name, parallel=dice.random() < 0.7, allowed=allowed)


def _planted(dice: Random, offered: tuple[Tool, ...], settings: Settings) -> tuple[str, ...]:
    """Write calls that are hidden in a user's message or a tool's result."""
    if dice.random() >= 0.3:
        return ()
    tools = [tool for tool in offered if tool in UNMISTAKABLE] or list(UNMISTAKABLE)
    taught = DECISION_DIALECT if settings.strategy is Strategy.DECISION else settings.dialect
    wanted = taught if taught in WRITING and dice.random() < 0.6 else dice.choice(WRITING)
    return (written(load(wanted or "fenced"), [call_of(dice.choice(tools), dice)], offered or POOL),)


def _as_the_client_sends(request: Request, client: Wire) -> Request:
    """Send it over the client's wire: fields that the wire lacks are lost, as in reality."""
    sent = client.encode_request(request, QUIRKS)
    return client.decode_request(sent.body, sent.path)


# ---------------------------------------------------------------- calls in text


def call_of(tool: Tool, dice: Random) -> Call:
    """Make a call with arguments that fit."""
    return Call("", tool.name, dump(arguments(tool, dice)))


def written(dialect: Dialect, calls: list[Call], tools: tuple[Tool, ...]) -> str:
    """Write calls in a dialect."""
    if dialect.writer is None:
        return ""
    numbered = [replace(call, id=f"call_{number}") for number, call in enumerate(calls)]
    return dialect.writer.write_calls(numbered, ToolSet.of(tools))
