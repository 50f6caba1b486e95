"""Who is believed about one model: its family, its upstream, the user (CAP-1, CAP-3)."""

import pytest

from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Source, Support
from toolspeak.facts.strategy import Overrides, facts_of
from toolspeak.ir.quirks import IdForm, Quirks

KIMI = "moonshotai/kimi-k2-instruct"


def test_a_family_speaks_where_nobody_else_does_inl2() -> None:
    facts = facts_of("qwen3:8b")
    assert (facts.dialect, facts.tools, facts.source) == ("hermes", Support.UNKNOWN, Source.NOBODY)
    assert facts_of("nobody-knows-it") is UNKNOWN_MODEL


def test_what_is_said_of_the_upstream_is_heard_before_the_family_cap1() -> None:
    said = ModelFacts(dialect="react", quirks=Quirks(reasoning_history=False))
    facts = facts_of(KIMI, said)
    assert (facts.dialect, facts.quirks) == ("react", Quirks(IdForm.KIMI, reasoning_history=False))


def test_a_default_that_is_said_silences_the_family_cap1() -> None:
    said = ModelFacts(said=frozenset({"dialect", "quirks.ids", "calls_in_reasoning"}))
    assert facts_of("qwen3:8b", said).dialect == ""
    assert facts_of(KIMI, said).quirks.ids is IdForm.ANY
    assert not facts_of("arcee-ai/Trinity-Mini", said).calls_in_reasoning


@pytest.mark.parametrize(("key", "tools"), [("box", Support.NONE), ("vllm:qwen*", Support.NONE), ("groq", None)])
def test_an_override_is_the_user_s_word_and_beats_a_table_and_a_measurement_cap3(
    key: str, tools: Support | None
) -> None:
    table = ModelFacts(Support.NATIVE, source=Source.TABLE)
    facts = facts_of("qwen3:8b", table, ("box", "vllm"), Overrides.of({key: "none"}))
    assert facts.tools is (tools or Support.NATIVE)
    measured = facts.with_tools(Support.LEAKS, Source.MEASURED)
    assert measured.tools is (tools or Support.LEAKS)


@pytest.mark.parametrize("provider", ["ollama", "cerebras", "openai"])
def test_of_an_upstream_that_can_be_asked_the_table_says_nothing_cap3(provider: str) -> None:
    assert facts_of("m", providers=(provider,)).tools is Support.UNKNOWN
