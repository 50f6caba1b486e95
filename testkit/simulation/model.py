"""The simulated model: its answers and the calls that it meant, so that the simulation knows which calls are real."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from testkit.noncalls.quotes import block_quote, fence, indented_fence, inline, nested_fence, quoted_fence, tildes
from testkit.roundtrip import ROOM
from testkit.simulation.scenario import STOP, WRITING, Scenario, call_of, written
from testkit.simulation.tools import POOL, UNKNOWN, UNMISTAKABLE, token, wrong_arguments
from toolspeak.dialects import Dialect, load
from toolspeak.engine.answer import offered_name
from toolspeak.engine.plan import DECISION_DIALECT, Way
from toolspeak.engine.settings import Strategy
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Result, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.text.strict import dump


@dataclass(frozen=True)
class Meant:
    """A call that may be delivered, exactly so. `eager`: only with `Release.EAGER`, which delivers before the check."""

    name: str
    arguments: JsonObject
    eager: bool = False


@dataclass(frozen=True)
class Saying:
    """One answer of the model: its text, and which parts of it must, may and must not be delivered."""

    kind: str
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    """Native ones."""
    may: tuple[Meant, ...] = ()
    must: bool = False
    """All that may be delivered must be, if nothing goes wrong."""
    fine: bool = False
    """A good answer in text."""
    prose: tuple[str, ...] = ()
    """Parts of the visible text."""
    never: str = ""
    """Text that must not be shown."""
    cut: bool = False

    def until(self, stops: tuple[str, ...]) -> "Saying":
        """Return the rest if the server honours these stop sequences."""
        found = [at for stop in stops if (at := self.text.find(stop)) >= 0]
        if not found:
            return self
        text = self.text[: min(found)]
        prose = tuple(piece for piece in self.prose if piece in text)
        return replace(self, text=text, calls=(), must=False, fine=False, prose=prose)


@dataclass(frozen=True)
class Form:
    """How a call is written: natively (no dialect), or as text. `right`: in the requested form."""

    dialect: Dialect | None
    right: bool


REFUSALS: Final = (
    "I'm sorry, but I don't have access to any tools.",
    "As an AI language model, I cannot browse the internet.",
    "Leider habe ich keinen Zugriff auf das Internet.",
    "Je n'ai aucun outil à ma disposition.",
)
QUOTES: Final = (fence, tildes, nested_fence, indented_fence, block_quote, quoted_fence, inline)


class Model:
    """Generates an answer to each request of one scenario."""

    def __init__(self, scenario: Scenario, dice: Random) -> None:
        """Take chance from `dice`."""
        self._scenario, self._dice = scenario, dice
        self._tools = scenario.tools or POOL
        self._known = bool(scenario.tools) and all(tool in POOL for tool in scenario.tools)
        self._makers: dict[str, tuple[int, Callable[[Request], Saying]]] = {
            "answer": (14, self._answer),
            "calls": (26, self._calls),
            "wrong arguments": (8, self._wrong),
            "unknown tool": (4, self._unknown),
            "truncated call": (7, self._truncated),
            "refusal": (5, self._refusal),
            "empty": (4, self._empty),
            "reasoning only": (3, self._reasoning_only),
            "forged result": (6, self._forged),
            "quoted call": (7, self._quoted),
            "echo": (7, self._echo),
            "json answer": (5, self._json),
            "draft in reasoning": (6, self._draft),
            "answer tool": (3, self._answer_tool),
            "no decision": (3, self._nothing),
        }
        self._kinds = list(self._makers)
        self._weights = [weight for weight, _ in self._makers.values()]

    def think(self, request: Request) -> Saying:
        """Answer a request."""
        kind = self._dice.choices(self._kinds, self._weights)[0]
        said = replace(self._makers[kind][1](request), kind=kind)
        if self._scenario.facts.starts_in_reasoning and said.text:
            said = replace(said, text=f"Hm, {token(self._dice)}.</think>\n{said.text}", must=False, fine=False)
        return said.until(request.sampling.stop) if self._scenario.obeys_stops else said

    def is_emulated(self, request: Request) -> bool:
        """Tell whether a request teaches its tools: it then stops before a result that only we may write."""
        writer = self._scenario.taught.writer
        return not request.tools and writer is not None and request.sampling.stop == writer.stop[:4]

    # ---------------------------------------------------------------- words

    def _prose(self) -> str:
        halt = f" {STOP} " if self._scenario.request.sampling.stop and self._dice.random() < 0.3 else " "
        return self._dice.choice(
            (
                f"It is about {token(self._dice)}{halt}today.",
                f"Let me see what {token(self._dice)}{halt}says.",
                f"Here — {token(self._dice)},{halt}ø🙂: fine.",
            )
        )

    def _answer(self, request: Request) -> Saying:
        del request
        pieces = tuple(self._prose() for _ in range(self._dice.randint(1, 3)))
        thought = f"The user wants {token(self._dice)}." if self._dice.random() < 0.3 else ""
        return Saying("", "\n\n".join(pieces), thought, prose=self._shown(pieces), fine=True)

    def _json(self, request: Request) -> Saying:
        del request
        word = token(self._dice)
        text = json.dumps({"temperature": self._dice.randint(-9, 30), "place": word, "name": word})
        return Saying("", f"```json\n{text}\n```" if self._dice.random() < 0.4 else text, prose=(word,), fine=True)

    def _refusal(self, request: Request) -> Saying:
        del request
        return Saying("", self._dice.choice(REFUSALS))

    def _empty(self, request: Request) -> Saying:
        del request
        return Saying("", self._dice.choice(("", "", " ", "\n\n")))

    def _nothing(self, request: Request) -> Saying:
        del request
        return Saying("", '{"tools": []}')

    def _reasoning_only(self, request: Request) -> Saying:
        del request
        thought = f"I should look at {token(self._dice)}."
        return Saying("", f"<think>{thought}</think>" if self._dice.random() < 0.3 else "", thought)

    # ---------------------------------------------------------------- calls

    def _calls(self, request: Request) -> Saying:
        form, tools, obeyed = self._form(request), *self._picked(request)
        calls = [call_of(tool, self._dice) for tool in tools]
        said = self._said(form, calls)
        apart = len({call.id for call in said.calls}) == len(said.calls)
        return replace(said, may=_meant(calls), must=form.right and obeyed and self._known and apart)

    def _wrong(self, request: Request) -> Saying:
        tool = self._dice.choice(self._tools)
        calls = [Call("", tool.name, dump(wrong_arguments(tool, self._dice)))]
        loose = tool not in POOL  # made of a history: it has no schema to be wrong for
        return replace(self._said(self._form(request), calls), may=_meant(calls, eager=not loose))

    def _unknown(self, request: Request) -> Saying:
        calls = [Call("", self._dice.choice(UNKNOWN), dump({"target": token(self._dice)}))]
        return self._said(self._form(request), calls)

    def _truncated(self, request: Request) -> Saying:
        """Stop in the middle of a call; if its content is already complete, it may be delivered."""
        form, calls = self._form(request), [call_of(self._dice.choice(self._tools), self._dice)]
        text = self._written(form.dialect or self._scenario.taught, calls)
        text = text[: self._dice.randint(1, max(1, len(text) - 1))]
        return Saying("", text, may=_meant(calls), cut=self._dice.random() < 0.5)

    def _forged(self, request: Request) -> Saying:
        """Continue after the call, and invent its result."""
        form, tools, obeyed = self._form(request), *self._picked(request)
        calls = [call_of(tools[0], self._dice)]
        if form.dialect is None or form.dialect.writer is None:
            return replace(self._said(form, calls), may=_meant(calls))
        made_up = token(self._dice)
        result = form.dialect.writer.write_result(Result("call_0", (Text(f"It is {made_up}."),), calls[0].name))
        text = f"{self._written(form.dialect, calls)}\n{result}\nSo it is {made_up}."
        known = form.right and form.dialect.name not in ROOM
        must = obeyed and known and self._known
        return Saying("", text, may=_meant(calls), must=must, never=made_up if known else "")

    def _quoted(self, request: Request) -> Saying:
        """Explain how a call would look."""
        dialect = self._form(request).dialect or load(self._dice.choice(WRITING))
        calls = [call_of(self._dice.choice(self._quotable()), self._dice)]
        before, after = self._prose(), self._prose()
        quoted = self._dice.choice(QUOTES)(self._dice, self._written(dialect, calls))
        text = f"{before} For example:\n\n{quoted}\n\n{after}"
        # a request for only a decision leaves nothing to quote: text around the decision is tolerated (DEC-3)
        may = _meant(calls) if decides(self._scenario) and dialect.name == DECISION_DIALECT else ()
        return Saying("", text, may=may, prose=self._shown((before, after)), fine=True)

    def _echo(self, request: Request) -> Saying:
        """Repeat a planted call."""
        if not self._scenario.planted:
            return self._answer(request)
        before, after = self._prose(), self._prose()
        text = "\n".join(filter(None, (before, *self._scenario.planted, after)))
        alone = self._scenario.planted[0]
        return self._dice.choice((Saying("", text, prose=self._shown((before, after))), Saying("", alone)))

    def _draft(self, request: Request) -> Saying:
        """Draft a call in reasoning, and do not make it."""
        dialect = self._form(request).dialect or self._scenario.taught
        calls = [call_of(self._dice.choice(self._quotable()), self._dice)]
        thought = f"I could write:\n{self._written(dialect, calls)}\nbut I need not."
        may = _meant(calls) if self._scenario.facts.calls_in_reasoning else ()
        said = self._prose()
        if self._dice.random() < 0.5:
            return Saying("", said, thought, may=may, prose=self._shown((said,)), fine=True)
        return Saying("", f"<think>\n{thought}\n</think>\n\n{said}", may=may, prose=self._shown((said,)))

    def _answer_tool(self, request: Request) -> Saying:
        if not (self._scenario.plan.settings.answer_tool and self.is_emulated(request)):
            return self._answer(request)
        said = self._prose()
        name = offered_name([tool.name for tool in self._scenario.tools])
        text = self._written(self._scenario.taught, [Call("", name, dump({"text": said}))], Tool(name))
        return Saying("", text, prose=self._shown((said,)))

    # ---------------------------------------------------------------- forms and tools

    def _form(self, request: Request) -> Form:
        chance, plan = self._dice.random(), self._scenario.plan
        other = load(self._dice.choice(WRITING))
        if request.tools:
            if chance < 0.75 or not plan.settings.rescue:
                return Form(None, right=chance < 0.95)
            rescued = load(plan.rescue_dialect)
            leaks = rescued if rescued.writer is not None and chance < 0.9 else other
            return Form(leaks, right=leaks is rescued and plan.way in (Way.NATIVE, Way.FALLBACK))
        if self.is_emulated(request):
            return (
                Form(self._scenario.taught, right=True)
                if chance < 0.85
                else Form(other if chance < 0.95 else None, right=False)
            )
        return Form(None if chance < 0.3 else other, right=False)

    def _picked(self, request: Request) -> tuple[list[Tool], bool]:
        """Pick tools to call, mostly as the tool choice says."""
        choice = self._scenario.request.choice
        count = self._dice.choice((1, 1, 1, 2, 3))
        tools = [self._dice.choice(self._tools) for _ in range(count)]
        named = [tool for tool in self._tools if tool.name == choice.name]
        if choice.mode is ChoiceMode.NAMED and named and self._dice.random() < 0.85:
            tools = named
        elif not choice.parallel and self._dice.random() < 0.85:
            tools = tools[:1]
        single = len(tools) == 1 or (choice.parallel and choice.mode is not ChoiceMode.NAMED)
        del request
        return tools, single and (choice.mode is not ChoiceMode.NAMED or tools == named)

    def _said(self, form: Form, calls: list[Call]) -> Saying:
        """Write calls in a form, mostly with words around them."""
        thought = f"I need {token(self._dice)}." if self._dice.random() < 0.2 else ""
        before = self._prose() if self._dice.random() < 0.5 else ""
        after = self._prose() if self._dice.random() < 0.2 else ""
        if form.dialect is None:
            native = tuple(replace(call, id=self._id()) for call in calls)
            return Saying("", before, thought, native, prose=self._shown((before,)))
        room = ROOM.get(form.dialect.name, (True, True))
        before, after = before if room[0] else "", after if room[1] else ""
        text = "\n".join(filter(None, (before, self._written(form.dialect, calls), after)))
        choice = self._scenario.request.choice
        over = len(calls) > 1 and not (choice.parallel and choice.mode is not ChoiceMode.NAMED)
        # what follows one call too many is set aside (Why.LIMIT)
        return Saying("", text, thought, prose=self._shown((before, "" if over else after)))

    def _id(self) -> str:
        """Make the id of a native call; some servers count from zero in each answer, so that ids repeat."""
        chance = self._dice.random()
        return "call_h0" if chance < 0.05 else "call_same" if chance < 0.1 else f"call_{token(self._dice)}"

    def _written(self, dialect: Dialect, calls: list[Call], *more: Tool) -> str:
        """Write calls; a dialect without a writer is replaced by the default one."""
        known = {tool.name: tool for tool in (*self._tools, *more)} | {
            call.name: Tool(call.name) for call in calls if call.name in UNKNOWN
        }
        return written(dialect if dialect.writer is not None else load("fenced"), calls, tuple(known.values()))

    def _quotable(self) -> tuple[Tool, ...]:
        named = {tool.name for tool in UNMISTAKABLE}
        return tuple(tool for tool in self._tools if tool.name in named) or UNMISTAKABLE

    def _shown(self, pieces: tuple[str, ...]) -> tuple[str, ...]:
        """Return the text that must be seen: the text before the client's stop sequence."""
        return tuple(piece for piece in pieces if piece and STOP not in piece)


def _meant(calls: list[Call], *, eager: bool = False) -> tuple[Meant, ...]:
    return tuple(Meant(call.name, json.loads(call.arguments), eager) for call in calls)


def decides(scenario: Scenario) -> bool:
    """Tell whether calls are requested separately from the answer."""
    return scenario.plan.settings.strategy is Strategy.DECISION
