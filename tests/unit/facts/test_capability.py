"""Classes, the table of providers, and what users say against it (CAP-1)."""

import pytest

from toolspeak import upstreams
from toolspeak.errors import BadField
from toolspeak.facts.model import Support
from toolspeak.facts.strategy import NO_OVERRIDES, PROVIDERS, Capability, Override, Overrides, key_problem

SAID = Overrides.of(
    {
        "ollama": "openai",
        "ollama:llama3*": "advanced",
        "ollama:llama3.2*": "none",
        "ollama:llama3.2:3b": "openai",
        "box:8000:small": "none",
    }
)


def test_the_table_begins_as_the_specification_says_cap1() -> None:
    start = ("openai", "groq", "deepseek", "deepinfra", "gemini", "ollama", "cerebras", "lambda")
    assert [PROVIDERS[name].value for name in start] == [*["openai"] * 4, "advanced", *["none"] * 3]


def test_every_preset_is_a_provider_and_none_contradicts_the_table_cap1() -> None:
    assert {*upstreams.names()} <= {*PROVIDERS}
    for name in upstreams.names():
        tools = upstreams.load(name).tools
        assert tools in (Support.UNKNOWN, PROVIDERS[name].support), name


def test_a_class_says_what_becomes_of_tools_cap1() -> None:
    assert [each.support for each in Capability] == [Support.NONE, Support.NATIVE, Support.NATIVE]


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("llama3.2:3b", "ollama:llama3.2:3b"),
        ("llama3.2:latest", "ollama:llama3.2*"),
        ("llama3.2", "ollama:llama3.2*"),
        ("Llama3.1:8B", "ollama:llama3*"),
        ("qwen3", "ollama"),
        ("", "ollama"),
    ],
)
def test_the_more_exact_row_wins_cap1(model: str, key: str) -> None:
    found = SAID.find(("ollama",), model)
    assert found is not None
    assert found.key == key
    assert found == Overrides(SAID.rows[::-1]).find(("ollama",), model), "whatever their order"


def test_latest_may_be_said_or_not_cap1() -> None:
    for key in ("ollama:m", "ollama:m:latest"):
        said = Overrides.of({key: "openai"})
        assert said.find(("ollama",), "m") == said.find(("ollama",), "m:latest") == Override(key, Capability.OPENAI)


def test_a_provider_may_have_several_names_and_colons_in_them_cap1() -> None:
    said = Overrides.of({"vllm:small": "openai", "vllm": "openai"}).over(SAID)
    assert said.find(("box:8000", "vllm"), "small") == Override("box:8000:small", Capability.NONE)
    assert said.find(("box:8000", "vllm"), "large") == Override("vllm", Capability.OPENAI)
    assert said.find(("", "box"), "small") is None


def test_who_says_it_later_is_heard_for_the_same_key_cap1() -> None:
    later = Overrides.of({"ollama": "none"}).over(SAID)
    assert later.find(("ollama",), "qwen3") == Override("ollama", Capability.NONE)
    assert len(later.rows) == len(SAID.rows)
    assert NO_OVERRIDES.over(SAID) is SAID


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("groq", "opnai", r"capabilities\['groq'\]: 'opnai' is not one of none, openai, advanced"),
        ("", "openai", r"capabilities\[''\]: is neither a provider"),
        (":llama", "openai", "is neither a provider, such as ollama, nor models of one"),
        ("groq:", "openai", "is neither a provider"),
    ],
)
def test_what_makes_no_sense_is_an_error_that_says_what_would_cap1(key: str, value: str, problem: str) -> None:
    with pytest.raises(BadField, match=problem):
        Overrides.of({key: value})


@pytest.mark.parametrize("key", ["groq", "groq:llama*", "box:8000:qwen/qwen3", "http://127.0.0.1:8080/v1"])
def test_these_are_keys_cap1(key: str) -> None:
    assert key_problem(key) is None
