"""The strategy of a model of which only the name is known (CAP-2)."""

import pytest

import toolspeak
from toolspeak import strategy_for
from toolspeak.errors import BadField
from toolspeak.facts.strategy import PROVIDERS, Capability, Overrides


@pytest.mark.parametrize(
    ("name", "native"),
    [("deepinfra:deepseek-ai/DeepSeek-V3-0324", True), ("openai:gpt-4", True), ("ollama:llama3.2:latest", False)],
)
def test_the_examples_of_the_specification_cap2(name: str, native: bool) -> None:
    assert strategy_for(name).native is native


@pytest.mark.parametrize("key", ["deepinfra", "deepinfra:new-model", "deepinfra:new-*"])
def test_a_provider_or_a_model_can_be_overridden_at_run_time_cap1(key: str) -> None:
    chosen = strategy_for("deepinfra:new-model", {key: "none"})
    assert (chosen.native, chosen.capability) == (False, Capability.NONE)
    assert chosen.why == f"{key} is said to be none: calls are written as text (fenced)"
    assert strategy_for("deepinfra:new-model").native


@pytest.mark.parametrize("name", ["someprovider:model", "gpt-4", "", ":", "ollama", "llama3.2:latest", "a:b:c"])
def test_an_unknown_provider_degrades_to_text_cap1(name: str) -> None:
    chosen = strategy_for(name)
    assert (chosen.native, chosen.capability) == (False, Capability.NONE)
    assert chosen.dialect in ("fenced", "pythonic")


def test_an_override_makes_a_provider_known_cap1() -> None:
    said = Overrides.of({"mine:qwen3*": "advanced"})
    chosen = strategy_for("mine:qwen3:8b", said)
    assert (chosen.native, chosen.capability, chosen.dialect) == (True, Capability.ADVANCED, "hermes")
    assert not strategy_for("mine:other", said).native


def test_only_what_is_known_stands_before_the_colon_cap2() -> None:
    assert strategy_for("llama3.2:latest").dialect == strategy_for("ollama:llama3.2:latest").dialect == "pythonic"
    assert strategy_for("openai:qwen3-coder:30b").dialect == "qwen_xml"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_choice_says_why_in_one_line_cap2(provider: str) -> None:
    chosen = strategy_for(f"{provider}:m")
    assert chosen.why.startswith(f"{provider} ")
    assert chosen.why.endswith(": tools are sent" if chosen.native else ": calls are written as text (fenced)")
    assert chosen.native is (PROVIDERS[provider] is not Capability.NONE)


def test_an_override_that_makes_no_sense_is_an_error_cap1() -> None:
    with pytest.raises(BadField, match="'yes' is not one of none, openai, advanced"):
        strategy_for("groq:m", {"groq": "yes"})


def test_it_is_a_public_name_cap2() -> None:
    assert toolspeak.strategy_for is strategy_for
