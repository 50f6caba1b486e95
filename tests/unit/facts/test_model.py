"""Facts are sparse and know who says them: what is said beats what is not, the user beats a measurement (CAP-3)."""

from dataclasses import fields

import pytest

from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Source, Support
from toolspeak.ir.quirks import IdForm, Quirks

EVERYTHING = ModelFacts(
    Support.LEAKS,
    "hermes",
    "/models/m/tokenizer_config.json",
    decides=True,
    calls_in_reasoning=True,
    starts_in_reasoning=True,
    few_shot=True,
    answer_tool=True,
    context_tokens=4096,
    images=True,
    constraint=Constrain.TEXT,
    quirks=Quirks(IdForm.KIMI, null_content=False, image_results=True, reasoning_history=False),
    leaks_as="harmony",
    system_role=False,
)
KINDS = {field.name for field in fields(ModelFacts)} - {"quirks", "source", "said"}


def test_what_is_no_default_was_said() -> None:
    assert UNKNOWN_MODEL.said == frozenset()
    assert ModelFacts(dialect="hermes", quirks=Quirks(ids=IdForm.KIMI)).said == {"dialect", "quirks.ids"}
    assert EVERYTHING.said >= KINDS


def test_who_says_something_is_heard_and_who_says_nothing_is_not() -> None:
    assert EVERYTHING.over(UNKNOWN_MODEL) == EVERYTHING == UNKNOWN_MODEL.over(EVERYTHING)
    merged = ModelFacts(dialect="glm").over(ModelFacts(dialect="hermes", few_shot=True))
    assert (merged.dialect, merged.few_shot) == ("glm", True)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_default_that_was_said_is_heard(name: str) -> None:
    merged = ModelFacts(said=frozenset({name})).over(EVERYTHING)
    assert getattr(merged, name) == getattr(UNKNOWN_MODEL, name)
    assert merged.quirks == EVERYTHING.quirks


def test_each_quirk_is_heard_by_itself() -> None:
    said = ModelFacts(quirks=Quirks(null_content=False), said=frozenset({"quirks.ids"}))
    merged = said.over(ModelFacts(quirks=Quirks(ids=IdForm.MISTRAL, reasoning_history=False)))
    assert merged.quirks == Quirks(IdForm.ANY, null_content=False, reasoning_history=False)


def test_merging_does_not_depend_on_the_order_of_pairs() -> None:
    a, b, c = ModelFacts(Support.NONE), ModelFacts(Support.NATIVE, "glm"), ModelFacts(dialect="react", decides=True)
    assert a.over(b).over(c) == a.over(b.over(c))


def test_facts_without_a_source_are_said_and_unknown_ones_are_nobody_s() -> None:
    assert ModelFacts(Support.NONE).source is Source.SAID
    assert ModelFacts(source=Source.TABLE).source is Source.NOBODY
    assert ModelFacts(Support.NATIVE, source=Source.TABLE).source is Source.TABLE


@pytest.mark.parametrize(
    ("before", "source", "after"),
    [
        (UNKNOWN_MODEL, Source.TABLE, Support.NONE),
        (UNKNOWN_MODEL, Source.MEASURED, Support.NONE),
        (ModelFacts(Support.NATIVE, source=Source.TABLE), Source.MEASURED, Support.NONE),
        (ModelFacts(Support.NATIVE, source=Source.MEASURED), Source.MEASURED, Support.NONE),
        (ModelFacts(Support.NATIVE, source=Source.MEASURED), Source.TABLE, Support.NATIVE),
        (ModelFacts(Support.NATIVE), Source.MEASURED, Support.NATIVE),
        (ModelFacts(Support.NATIVE), Source.SAID, Support.NONE),
    ],
)
def test_a_measurement_beats_a_table_and_never_the_user_cap3(
    before: ModelFacts, source: Source, after: Support
) -> None:
    assert before.with_tools(Support.NONE, source).tools is after


@pytest.mark.parametrize("source", Source)
def test_a_probe_that_failed_changes_nothing_cap4(source: Source) -> None:
    known = ModelFacts(Support.NATIVE, source=Source.TABLE)
    assert known.with_tools(Support.UNKNOWN, source) is known


def test_a_user_who_says_unknown_wants_it_measured_cap3() -> None:
    said = ModelFacts(said=frozenset({"tools"})).over(ModelFacts(Support.NATIVE, source=Source.TABLE))
    assert (said.tools, said.source) == (Support.UNKNOWN, Source.NOBODY)
    assert said.with_tools(Support.LEAKS, Source.MEASURED).tools is Support.LEAKS
