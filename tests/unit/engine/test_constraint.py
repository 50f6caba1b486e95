"""Which answers are asked to keep a form, which form that is, and what becomes of it (CHK-8)."""

import json
from dataclasses import replace
from random import Random

import pytest

from tests.unit.engine.scene import (
    ASK,
    BERGEN,
    CLOCK,
    DECISION,
    FORCE,
    NAMED,
    NATIVE,
    ONE,
    OSLO,
    REQUIRED,
    TOOLS,
    WRONG,
    Ran,
    ask,
    run,
    user,
    words,
    written,
)
from tests.unit.text.gbnf_matcher import Matcher
from toolspeak.dialects import load, names
from toolspeak.engine.constraint import AS_JSON, REFUSES_CONSTRAINT, AllowedCalls, grammar
from toolspeak.engine.effects import Kept
from toolspeak.engine.plan import decide
from toolspeak.engine.settings import Settings
from toolspeak.facts.model import Constrain, ModelFacts, Support
from toolspeak.ir.constraint import Constraint, ConstraintForm, TextGrammar, TextSchema, TextTags
from toolspeak.ir.event import Failed, Finished, StopReason, TextDelta
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, ToolChoice
from toolspeak.testing import Scripted
from toolspeak.text.schema import compile_schema
from toolspeak.toolset.toolset import ToolSet

SHAPES = {name: one.shape for name in names() if (one := load(name).writer) is not None and one.shape is not None}
SHAPED, FREE = [*SHAPES], [name for name, shape in SHAPES.items() if not shape.is_whole]
HAS_FORM = [form for form in ConstraintForm if form is not ConstraintForm.NONE]
WORDS = "It is cold there."
COMPILED = ToolSet.of(TOOLS)


def facts(form: ConstraintForm = ConstraintForm.LLAMACPP, constraint: Constrain | None = None) -> ModelFacts:
    return ModelFacts(constraint=constraint, quirks=Quirks(constraint=form))


def asked(
    constraint: Constrain | None,
    *answers: Scripted,
    request: Request = ASK,
    form: ConstraintForm = ConstraintForm.LLAMACPP,
    settings: Settings = FORCE,
    known: ModelFacts | None = None,
) -> Ran:
    known = replace(known or facts(), quirks=Quirks(constraint=form))
    return run(replace(settings, constraint=constraint), *answers, request=request, facts=known)


def constraints(ran: Ran) -> list[Constraint | None]:
    return [request.constraint for request in ran.sent]


def matcher(constraint: Constraint | None) -> Matcher:
    assert isinstance(constraint, TextGrammar)
    return Matcher(constraint.gbnf)


def first(request: Request = ASK, dialect: str = "fenced", constraint: Constrain = Constrain.TEXT) -> Matcher:
    ran = asked(constraint, WORDS, request=request, settings=replace(FORCE, dialect=dialect, retries=0))
    return matcher(ran.sent[0].constraint)


# ---------------------------------------------------------------- the plan


@pytest.mark.parametrize("said", [None, *Constrain])
def test_without_a_form_nothing_is_asked_chk8(said: Constrain | None) -> None:
    plan = decide(ASK, Settings(constraint=said), ModelFacts(constraint=Constrain.TEXT))
    assert plan.settings.constraint is Constrain.OFF
    assert plan.dialect == "fenced"


@pytest.mark.parametrize(
    ("said", "known", "expected"),
    [
        (None, None, Constrain.RETRY),
        (None, Constrain.TEXT, Constrain.TEXT),
        (Constrain.OFF, Constrain.TEXT, Constrain.OFF),
        (Constrain.JSON, Constrain.OFF, Constrain.JSON),
    ],
)
def test_who_asks_is_heard_before_the_facts_chk8(
    said: Constrain | None, known: Constrain | None, expected: Constrain
) -> None:
    plan = decide(ASK, Settings(constraint=said), facts(constraint=known))
    assert (plan.settings.constraint, plan.facts.quirks.constraint) == (expected, ConstraintForm.LLAMACPP)


def test_an_answer_in_json_has_its_own_dialect_and_the_answer_tool_chk8() -> None:
    plan = decide(ASK, Settings(constraint=Constrain.JSON, dialect="hermes", answer_tool=False), facts())
    assert (plan.dialect, plan.settings.answer_tool) == ("steps_json", True)
    assert decide(ASK, replace(DECISION, constraint=Constrain.JSON), facts()).dialect == "decision_json"


# ---------------------------------------------------------------- when


def test_tools_and_a_constraint_never_stand_together_chk8() -> None:
    for constraint in Constrain:
        for settings in (NATIVE, FORCE, DECISION):
            ran = asked(constraint, WORDS, WORDS, WORDS, request=ask(choice=AUTO), settings=settings)
            assert not [sent for sent in ran.sent if sent.constraint and (sent.tools or sent.output_schema is not None)]


def test_retry_asks_first_without_and_then_only_for_the_call_that_was_bad_chk8() -> None:
    ran = asked(Constrain.RETRY, written(WRONG), written(OSLO))
    before, after = constraints(ran)
    assert before is None
    grammar = matcher(after)
    assert grammar.accepts(written(OSLO))
    assert not any(map(grammar.accepts, (written(CLOCK), WORDS, written(WRONG), written(OSLO) * 2)))
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert ran.outcome.constraint is Kept.KEPT


def test_retry_leaves_words_to_a_model_that_called_what_is_not_there_chk8() -> None:
    unknown = replace(OSLO, name="teleport")
    ran = asked(Constrain.RETRY, written(unknown), WORDS)
    assert matcher(constraints(ran)[1]).accepts(WORDS)
    assert ran.turn.text == WORDS


def test_retry_asks_at_once_where_a_call_must_come_chk8() -> None:
    ran = asked(Constrain.RETRY, written(CLOCK), request=ask(choice=REQUIRED))
    grammar = matcher(constraints(ran)[0])
    assert grammar.accepts(written(CLOCK))
    assert not grammar.accepts(WORDS)


def test_off_asks_for_nothing_chk8() -> None:
    ran = asked(Constrain.OFF, written(WRONG), written(OSLO), request=ask(choice=REQUIRED))
    assert constraints(ran) == [None, None]
    assert ran.outcome.constraint is Kept.UNASKED


def test_who_repeats_a_call_is_asked_for_words_without_a_constraint_chk8() -> None:
    history = (user("Weather in Oslo?"), *ask().messages)
    ran = asked(Constrain.TEXT, "", WORDS, request=ask(*history))
    assert all(matcher(constraint).accepts(WORDS) for constraint in constraints(ran))


def test_a_decision_may_be_held_to_its_form_chk8() -> None:
    ran = asked(Constrain.TEXT, written(OSLO, dialect="decision_json"), settings=DECISION)
    grammar = matcher(constraints(ran)[0])
    assert grammar.accepts('{"tools": []}')
    assert grammar.accepts(written(OSLO, CLOCK, dialect="decision_json"))
    assert not grammar.accepts(WORDS)
    assert ran.outcome.constraint is Kept.KEPT


# ---------------------------------------------------------------- grammars


@pytest.mark.parametrize("dialect", SHAPED)
def test_what_a_dialect_writes_its_grammar_accepts_chk8(dialect: str) -> None:
    grammar = first(dialect=dialect)
    if dialect == "steps_json":
        assert grammar.accepts('{"thought": "x", "calls": [{"name": "now", "arguments": {}}]}')
        return
    for calls in ((OSLO,), (CLOCK, BERGEN)):
        assert grammar.accepts(written(*calls, dialect=dialect))
    assert not grammar.accepts(written(WRONG, dialect=dialect))
    assert not grammar.accepts(written(replace(OSLO, name="teleport"), dialect=dialect))


@pytest.mark.parametrize("dialect", FREE)
def test_text_stays_free_chk8(dialect: str) -> None:
    grammar = first(dialect=dialect)
    assert all(map(grammar.accepts, ("", WORDS, "if a < b:\n```py\nx = {}\n```\n{ok}", "<tool", "``")))
    if dialect != "llama_json":
        assert grammar.accepts(f"I look.\n{written(OSLO, dialect=dialect)}")


@pytest.mark.parametrize("dialect", FREE)
def test_a_call_that_is_begun_can_only_be_right_chk8(dialect: str) -> None:
    whole = written(OSLO, dialect=dialect)
    grammar = first(dialect=dialect)
    assert not any(map(grammar.accepts, (whole[:-1], whole.replace("get_w", "get w"), whole + " Done.")))
    assert grammar.accepts(whole.replace("Oslo", "Os\nlo")) is (dialect == "qwen_xml")


@pytest.mark.parametrize("dialect", SHAPED)
@pytest.mark.parametrize("forced", [True, False])
def test_whatever_a_grammar_allows_its_dialect_reads_as_valid_calls_chk8(dialect: str, forced: bool) -> None:
    described = Matcher(grammar(SHAPES[dialect], AllowedCalls(COMPILED, COMPILED.names, 3, forced=forced)).gbnf)
    for seed in range(30):
        text = described.example(Random(seed))
        turn = load(dialect).read(text, COMPILED)
        assert not turn.complaints, text
        assert not forced or turn.calls, text


def test_a_named_tool_is_the_only_one_and_comes_once_chk1() -> None:
    grammar = first(ask(choice=NAMED))
    assert grammar.accepts(written(OSLO))
    assert not any(map(grammar.accepts, (written(CLOCK), written(OSLO, BERGEN), WORDS)))


def test_one_call_at_a_time_is_one_call_chk1() -> None:
    grammar = first(ask(choice=ONE))
    assert grammar.accepts(written(OSLO))
    assert not grammar.accepts(written(OSLO, BERGEN))


def test_only_tools_that_may_be_called_are_in_it_chk1() -> None:
    grammar = first(ask(choice=ToolChoice(ChoiceMode.REQUIRED, allowed=("now",))))
    assert grammar.accepts(written(CLOCK))
    assert not grammar.accepts(written(OSLO))


def test_the_answer_tool_is_in_it_where_it_is_offered_inl6() -> None:
    settings = replace(FORCE, answer_tool=True, retries=0)
    ran = asked(Constrain.TEXT, WORDS, settings=settings)
    said = '```tool_call\n{"name": "answer", "arguments": {"text": "Cold."}}\n```'
    assert matcher(constraints(ran)[0]).accepts(said)


def test_an_answer_that_begins_in_a_thought_ends_it_first_chk8() -> None:
    ran = asked(
        Constrain.RETRY,
        f"Hm.</think>\n{written(OSLO)}",
        request=ask(choice=REQUIRED),
        known=ModelFacts(starts_in_reasoning=True),
    )
    grammar = matcher(constraints(ran)[0])
    assert grammar.accepts(f"Hm < hm.</think>\n\n{written(OSLO)}")
    assert not grammar.accepts(written(OSLO))
    assert ran.outcome.constraint is Kept.KEPT


def test_the_same_tools_give_the_same_grammar_inl8() -> None:
    assert first().text == first().text


# ---------------------------------------------------------------- json


def test_an_answer_in_json_is_shown_as_text_chk8() -> None:
    said = '{"thought": "I know.", "calls": [{"name": "answer", "arguments": {"text": "Cold."}}]}'
    ran = asked(Constrain.JSON, said)
    assert matcher(constraints(ran)[0]).accepts(said)
    assert (ran.turn.text, ran.calls, ran.outcome.constraint) == ("Cold.", [], Kept.KEPT)


def test_a_call_in_json_is_a_call_chk8() -> None:
    said = '{"thought": "Look.", "calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}'
    ran = asked(Constrain.JSON, said, form=ConstraintForm.OLLAMA)
    (constraint,) = constraints(ran)
    assert isinstance(constraint, TextSchema)
    assert constraint.schema["required"] == ["thought", "calls"]
    assert compile_schema(constraint.schema).accepts(json.loads(said))
    assert not compile_schema(constraint.schema).accepts({"thought": "x", "calls": []})
    assert ran.calls == [("get_weather", {"city": "Oslo"})]


# ---------------------------------------------------------------- other forms


@pytest.mark.parametrize("form", [ConstraintForm.VLLM, ConstraintForm.SGLANG])
def test_tags_leave_text_free_and_bind_calls_chk8(form: ConstraintForm) -> None:
    ran = asked(Constrain.TEXT, WORDS, form=form, settings=replace(FORCE, dialect="hermes"))
    (constraint,) = constraints(ran)
    assert constraint == TextTags(
        {
            "type": "triggered_tags",
            "triggers": ["<tool_call>"],
            "tags": [
                {
                    "type": "tag",
                    "begin": f'<tool_call>\n{{"name": "{tool.name}", "arguments": ',
                    "content": {"type": "json_schema", "json_schema": tool.parameters},
                    "end": "}\n</tool_call>",
                }
                for tool in TOOLS
            ],
            "at_least_one": False,
            "stop_after_first": False,
        }
    )


def test_tags_that_must_come_have_nothing_between_them_chk8() -> None:
    ran = asked(Constrain.RETRY, written(OSLO), request=ask(choice=NAMED), form=ConstraintForm.VLLM)
    (constraint,) = constraints(ran)
    assert isinstance(constraint, TextTags)
    assert constraint.format["type"] == "tags_with_separator"
    assert (constraint.format["at_least_one"], constraint.format["stop_after_first"]) == (True, True)
    tags = constraint.format["tags"]
    assert isinstance(tags, list)
    assert len(tags) == 1


@pytest.mark.parametrize("form", [form for form in HAS_FORM if form not in ("llamacpp", "vllm", "sglang")])
def test_a_schema_is_asked_for_only_where_there_is_nothing_to_say_beside_the_call_chk8(form: ConstraintForm) -> None:
    decided = written(OSLO, dialect="decision_json")
    ran = asked(Constrain.TEXT, written(WRONG), decided, form=form)
    before, after = constraints(ran)
    assert before is None
    assert isinstance(after, TextSchema)
    assert compile_schema(after.schema).accepts(
        {"tools": [{"name": "get_weather", "arguments": {"city": "Oslo", "days": 1}}]}
    )
    assert AS_JSON in words(ran.sent[1])
    assert ran.calls == [("get_weather", {"city": "Oslo"})]


def test_a_dialect_without_a_shape_gets_a_decision_where_a_call_must_come_chk8() -> None:
    settings = replace(FORCE, dialect="pythonic")
    ran = asked(Constrain.TEXT, written(OSLO, dialect="decision_json"), request=ask(choice=REQUIRED), settings=settings)
    assert matcher(constraints(ran)[0]).accepts(written(OSLO, dialect="decision_json"))
    assert AS_JSON in words(ran.sent[0])
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert constraints(asked(Constrain.TEXT, WORDS, settings=settings)) == [None]


# ---------------------------------------------------------------- servers that do not obey


@pytest.mark.parametrize("said", ["I call it.", "<tool_call>x</tool_call>", '{"name": "now"}'])
def test_a_server_that_ignores_a_demand_is_noticed_chk8(said: str) -> None:
    ran = asked(Constrain.RETRY, said, request=ask(choice=REQUIRED), settings=replace(FORCE, retries=0))
    assert ran.outcome.constraint is Kept.IGNORED


def test_a_server_that_ignores_free_text_with_calls_is_noticed_chk8() -> None:
    settings = replace(FORCE, dialect="hermes", retries=0)
    assert (
        asked(Constrain.TEXT, "<tool_call>\nhello\n</tool_call>", settings=settings).outcome.constraint is Kept.IGNORED
    )
    assert asked(Constrain.TEXT, "a < b <tool_", settings=settings).outcome.constraint is Kept.KEPT


def test_an_answer_that_is_cut_off_is_not_held_against_the_server_chk8() -> None:
    cut = [TextDelta('```tool_call\n{"name": "get'), Finished(StopReason.LENGTH)]
    ran = asked(Constrain.RETRY, cut, request=ask(choice=REQUIRED), settings=replace(FORCE, retries=0))
    assert ran.outcome.constraint is Kept.KEPT


def test_a_server_that_ignores_a_schema_is_noticed_chk8() -> None:
    ran = asked(Constrain.RETRY, written(WRONG), WORDS, form=ConstraintForm.OLLAMA, settings=replace(FORCE, retries=1))
    assert ran.outcome.constraint is Kept.IGNORED


@pytest.mark.parametrize("kind", sorted(REFUSES_CONSTRAINT))
@pytest.mark.parametrize("settings", [FORCE, DECISION])
def test_a_server_that_refuses_is_asked_once_more_without_chk8(kind: FailureKind, settings: Settings) -> None:
    call = written(OSLO, dialect="fenced" if settings is FORCE else "decision_json")
    failed = [Failed(Failure(kind, "failed to parse grammar", 400))]
    ran = asked(Constrain.TEXT, failed, call, settings=settings)
    assert [constraint is None for constraint in constraints(ran)] == [False, True]
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert (ran.outcome.constraint, ran.outcome.requests) == (Kept.REFUSED, 2)


def test_a_server_that_refused_is_not_asked_for_form_again_in_this_turn_chk8() -> None:
    failed = [Failed(Failure(FailureKind.INVALID_REQUEST, "no", 400))]
    ran = asked(Constrain.TEXT, failed, written(WRONG), written(OSLO))
    assert [constraint is None for constraint in constraints(ran)] == [False, True, True]


@pytest.mark.parametrize("kind", [FailureKind.AUTH, FailureKind.RATE_LIMITED, FailureKind.CONTEXT_LENGTH])
def test_what_has_nothing_to_do_with_it_stays_a_failure_chk8(kind: FailureKind) -> None:
    ran = asked(Constrain.TEXT, [Failed(Failure(kind, "no", 400))])
    assert (len(ran.sent), ran.failure) == (1, "no")


def test_without_a_constraint_a_failure_is_a_failure_chk8() -> None:
    ran = asked(Constrain.RETRY, [Failed(Failure(FailureKind.INVALID_REQUEST, "no", 400))])
    assert (len(ran.sent), ran.failure, ran.outcome.constraint) == (1, "no", Kept.UNASKED)


def test_native_calls_are_never_constrained_chk8() -> None:
    ran = asked(Constrain.TEXT, WORDS, settings=NATIVE, known=ModelFacts(Support.NATIVE))
    assert constraints(ran) == [None]
    assert ran.sent[0].tools == TOOLS
