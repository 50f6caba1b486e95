"""A configuration becomes routes: who is heard about one model (CAP-1)."""

import pytest

from testkit.loopback import in_loop
from toolspeak.config.assemble import assemble
from toolspeak.config.file import parse_config
from toolspeak.facts.model import ModelFacts, Source, Support
from toolspeak.ir.quirks import IdForm
from toolspeak.runtime.http_transport import HttpTransport

FILE = """
[capabilities]
"ollama:qwen*" = "openai"
box = "none"
vllm = "openai"

[upstreams.ollama]
support = "leaks"

[upstreams.box]
preset = "vllm"
url = "http://127.0.0.1:9/v1"

[upstreams.twin]
preset = "vllm"
url = "http://127.0.0.1:10/v1"

[upstreams.twin.quirks]
ids = "any"

[models.mine]
upstream = "ollama"
model = "qwen3:8b"
support = "none"
facts = { few_shot = true }
"""


async def facts_of(name: str) -> ModelFacts:
    transport = HttpTransport()
    try:
        return (await assemble(parse_config(FILE, "t.toml", {}), transport).exactly(name)).facts
    finally:
        await transport.close()


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("mine", Support.NONE),  # the model's own word
        ("ollama:qwen3:8b", Support.NATIVE),  # a row of [capabilities]
        ("ollama:llama3.2", Support.LEAKS),  # the upstream's word
        ("box:m", Support.NONE),  # its name before its preset
        ("twin:m", Support.NATIVE),
    ],
)
@in_loop
async def test_the_nearest_word_is_heard_cap1(name: str, tools: Support) -> None:
    facts = await facts_of(name)
    assert (facts.tools, facts.source) == (tools, Source.SAID)


@in_loop
async def test_a_name_of_the_file_has_its_family_s_facts_and_its_own_inl2() -> None:
    mine = await facts_of("mine")
    assert (mine.dialect, mine.few_shot) == ("hermes", True)


@in_loop
async def test_the_file_can_take_a_family_s_ids_back_wire6() -> None:
    assert (await facts_of("box:kimi-k2")).quirks.ids is IdForm.KIMI
    assert (await facts_of("twin:kimi-k2")).quirks.ids is IdForm.ANY
