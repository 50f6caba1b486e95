"""One model has many names; written alike they are one."""

import pytest

from toolspeak.facts.families import LONGEST, plain_name

LLAMA = [
    "llama3.1:8b",
    "meta-llama/Llama-3.1-8B",
    "Meta-Llama-3.1-8B",
    "@cf/meta/llama-3.1-8b",
    "accounts/fireworks/models/llama-3.1-8b",
    "us.meta.llama3-1-8b",
    "C:\\models\\Meta-Llama-3.1-8B.gguf",
    "/models/llama_3.1_8b.gguf",
    "meta-llama_Llama-3.1-8B",
]


@pytest.mark.parametrize("name", LLAMA)
def test_the_names_of_one_model_are_one(name: str) -> None:
    assert plain_name(name) == "llama-3.1-8b"


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("models/gemma-3-4b-it", "gemma-3-4b-it"),
        ("Qwen_Qwen3-8B-Q4_K_M.gguf", "qwen-3-8b-q-4-k-m"),
        ("qwen-max", "qwen-max"),
        ("glm-4-9b", "glm-4-9b"),
        ("deepseek-r1-0528", "deepseek-r-1-0528"),
        ("command-r7b-12-2024", "command-r-7b-12-2024"),
        ("", ""),
        ("///", ""),
        ("meta-", "meta"),
    ],
)
def test_what_only_looks_like_a_version_or_a_publisher_stays(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_a_name_without_end_is_cut_p7() -> None:
    assert len(plain_name("a1" * 1_000_000)) <= 2 * LONGEST
