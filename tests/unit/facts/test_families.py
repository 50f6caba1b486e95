"""The table of families: every row is about its own models only, and says nothing that would make a turn worse."""

import json
from dataclasses import fields
from pathlib import Path

import pytest

import toolspeak
from testkit.golden import Case, samples
from testkit.golden import cases as cases_of_the_corpus
from toolspeak import dialects
from toolspeak.facts.families import Family, families, families_of, family_facts
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Support
from toolspeak.ir.quirks import IdForm
from toolspeak.text.strict import parse

FAMILIES = families()
DATA = Path(toolspeak.__file__).parent / "facts" / "data" / "families.json"
NAMES = [family.name for family in FAMILIES]
EXAMPLES = [(family, example) for family in FAMILIES for example in family.examples]
SPECIAL = {
    "qwen3-coder": ["qwen3"],
    "mistral-first": ["mistral"],
    "nemotron3": ["nemotron"],
    "nemotron": ["llama3.1"],
    "step3.5": ["step3"],
    "k-exaone2": ["exaone4"],
    "deepseek-dsml": ["deepseek"],
    "deepseek-v3.2-exp": ["deepseek", "deepseek-dsml"],
}
"""Families, and the more general ones whose rows speak of their models as well."""


@pytest.mark.parametrize(("family", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_a_name_belongs_to_its_own_family_and_to_more_general_ones_only_inl2(family: Family, example: str) -> None:
    *others, last = families_of(example)
    assert last is family
    assert {other.name for other in others} <= {*SPECIAL.get(family.name, ())}


def test_the_special_ones_are_special_inl2() -> None:
    for name, others in SPECIAL.items():
        (family,) = (family for family in FAMILIES if family.name == name)
        seen = {other.name for example in family.examples for other in families_of(example)}
        assert seen == {name, *others}


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_a_row_names_dialects_that_exist_and_teaches_only_what_can_be_written_inl2(family: Family) -> None:
    for name in (family.trained, family.taught, family.leaks_as):
        assert name is None or dialects.load(name).name == name
    assert family.taught is None or dialects.load(family.taught).writer is not None


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_a_row_says_something_in_one_line_and_why(family: Family) -> None:
    assert family.why
    assert "\n" not in family.why
    assert family.facts != UNKNOWN_MODEL
    assert family.examples


def test_the_file_has_only_fields_of_a_row_and_no_empty_ones() -> None:
    """A misspelled field would be ignored, and its fact lost."""
    rows = json.loads(DATA.read_text())
    known = {field.name for field in fields(Family)}
    assert [row["name"] for row in rows] == NAMES
    for row in rows:
        assert row.keys() <= known
        assert all(value not in ("", [], None) for value in row.values())


def test_no_two_rows_have_one_name_or_one_pattern() -> None:
    patterns = [pattern for family in FAMILIES for pattern in family.patterns]
    assert len({*NAMES}) == len(NAMES)
    assert len({*patterns}) == len(patterns)


STRANGERS = [
    "",
    "m",
    "gpt-4",
    "claude-sonnet-4-5",
    "llama3:8b",
    "llama-30b",
    "llama-2-7b-chat",
    "dolphin-llama3.1",
    "gemma:9b",
    "qwen-max",
    "qwen:7b",
    "qwen-32b",
    "openhermes-2.5",
    "smollm2:135m",
    "glm-4-9b-chat",
    "phi-4",
    "kimi-latest",
    "*",
    "qwen[3",
]


@pytest.mark.parametrize("name", STRANGERS)
def test_of_a_name_that_nobody_knows_nothing_is_known_inl2(name: str) -> None:
    assert families_of(name) == ()
    assert family_facts(name) is UNKNOWN_MODEL


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("qwen2.5-coder:0.5b", "hermes"),
        ("Qwen/Qwen3-8B-GGUF", "hermes"),
        ("qwen3-coder:30b", "qwen_xml"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama_json"),
        ("nvidia/Llama-3.3-Nemotron-Super-49B-v1.5", ""),
        ("models/gemma-3-4b-it", ""),
        ("mistral:7b", ""),
    ],
)
def test_the_more_special_row_decides_what_is_taught_inl2(name: str, dialect: str) -> None:
    assert family_facts(name).dialect == dialect


def test_ids_are_those_that_the_family_wants_wire6() -> None:
    wanted = {family.name: family.facts.quirks.ids for family in FAMILIES if family.ids}
    assert wanted == {"mistral": IdForm.MISTRAL, "kimi-k2": IdForm.KIMI}


def test_only_measured_or_said_facts_speak_of_tools_cap3() -> None:
    assert {family.facts.tools for family in FAMILIES} == {Support.UNKNOWN}


def test_no_row_says_that_answers_start_in_their_reasoning_p6() -> None:
    """A server that sets reasoning apart sends plain answers: taken for reasoning, they would be empty."""
    assert not [family.name for family in FAMILIES if family.facts.starts_in_reasoning]
    turn = dialects.load("hermes").read("Hello.", (), dialects.ReadOptions(starts_in_reasoning=True))
    assert turn.text == ""


def test_a_row_can_say_only_what_facts_have() -> None:
    own = {field.name for field in fields(Family)} - {"name", "patterns", "examples", "why", "trained", "taught", "ids"}
    assert own <= {field.name for field in fields(ModelFacts)}


# ---------------------------------------------------------------- rescue


def calls_in(case: Case, dialect: str) -> list[tuple[str, object]]:
    turn = dialects.load(dialect).read(case.raw, case.tools, case.options)
    return [(call.name, parse(call.arguments)) for call in turn.calls]


def leaks(family: Family) -> list[Case]:
    return [case for case in samples() if case.dialect.name == family.trained]


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
def test_what_a_family_leaks_is_read_mode8(family: Family) -> None:
    reads = family.facts.leaks_as or "any"
    for case in leaks(family):
        assert calls_in(case, reads) == [(call["name"], call["arguments"]) for call in case.calls], case.id


@pytest.mark.parametrize("family", [family for family in FAMILIES if family.leaks_as], ids=lambda family: family.name)
def test_a_dialect_of_its_own_reads_what_any_cannot_mode8(family: Family) -> None:
    cases = [case for case in cases_of_the_corpus() if case.dialect.name == family.leaks_as and case.calls]
    wanted = [[(call["name"], call["arguments"]) for call in case.calls] for case in cases]
    assert [calls_in(case, family.leaks_as or "") for case in cases] == wanted
    assert [calls_in(case, "any") for case in cases] != wanted


BARE = '{"name": "find_bus", "arguments": {"stop": "Oslo S"}}'
LEAKED = [BARE, f"```json\n{BARE}\n```", f"<tool_call>\n{BARE}\n</tool_call>", f"```tool_call\n{BARE}\n```"]


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
@pytest.mark.parametrize("text", LEAKED)
def test_no_family_is_rescued_worse_than_a_stranger_mode8(family: Family, text: str) -> None:
    tools = samples()[0].tools
    read = dialects.load(family.facts.leaks_as or "any").read(text, tools)
    assert [call.name for call in read.calls] == ["find_bus"]
