"""What holds for every preset, and that the page says the same."""

import re
from pathlib import Path

import pytest

from toolspeak import upstreams, wires
from toolspeak.config.addresses import reaches_this_machine_only, url_problem
from toolspeak.config.assemble import _headers
from toolspeak.config.file import parse_config
from toolspeak.errors import BadConfig, UnknownName
from toolspeak.facts.strategy import CONSTRAINTS
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.quirks import IdForm
from toolspeak.ir.request import Request
from toolspeak.upstreams import Auth

PAGE = Path(__file__).parents[3] / "docs" / "upstreams.md"
NAMES = upstreams.names()
OWN_ADDRESS = {"azure", "bedrock", "vertex"}
"""Each customer has a host of their own."""
REMOTE = [name for name in NAMES if upstreams.load(name).key_env]
WHERE = {
    "openai_chat": "/chat/completions",
    "openai_responses": "/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}
"""How the vendors' own paths end."""


def test_all_are_there() -> None:
    local = {"ollama", "llamacpp", "vllm", "lmstudio", "sglang"}
    vendors = {"openai", "anthropic", "gemini", "deepseek", "mistral", "moonshot"}
    hosts = {"openrouter", "groq", "together", "cerebras", "deepinfra", "compatible"}
    assert set(NAMES) == local | vendors | hosts | OWN_ADDRESS


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_can_be_used(name: str) -> None:
    preset = upstreams.load(name)
    assert preset.wire in wires.names()
    assert preset.title
    assert (preset.url == "") == (name in {"compatible", *OWN_ADDRESS})
    assert (preset.url_form != "") == (name in OWN_ADDRESS)
    assert preset.quirks.constraint is CONSTRAINTS.get(name, ConstraintForm.NONE), "a probe would say otherwise"
    assert not preset.url.endswith("/")
    assert preset.url == "" or url_problem(preset.url) is None


@pytest.mark.parametrize("name", REMOTE)
def test_a_remote_preset_is_encrypted_and_has_a_key(name: str) -> None:
    preset = upstreams.load(name)
    assert preset.url.startswith("https://")
    assert re.fullmatch(r"[A-Z]+_API_KEY", preset.key_env)
    assert preset.auth is not Auth.NONE
    assert not preset.local


@pytest.mark.parametrize("name", sorted({*NAMES} - {*REMOTE, *OWN_ADDRESS, "compatible"}))
def test_a_local_preset_is_on_this_machine(name: str) -> None:
    preset = upstreams.load(name)
    assert preset.local
    assert reaches_this_machine_only(preset.url)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "compatible"])
def test_the_url_and_the_path_of_the_wire_fit_together(name: str) -> None:
    preset = upstreams.load(name)
    url = preset.url or preset.url_form
    request = Request("m", (Message(Role.USER, (Text("hi"),)),), stream=True)
    path = wires.load(preset.wire).encode_request(request, preset.quirks).path
    assert f"{url}/{path}".endswith(WHERE[preset.wire])


@pytest.mark.parametrize("name", sorted(OWN_ADDRESS))
def test_a_preset_whose_address_is_the_customer_s_own_says_its_form_and_takes_no_key_unasked(name: str) -> None:
    preset = upstreams.load(name)
    assert preset.url_form.startswith("https://")
    assert (preset.key_env, preset.local) == ("", False)
    with pytest.raises(BadConfig, match=re.escape(f"it looks like {preset.url_form}")):
        parse_config(f"[upstreams.{name}]\n", "t.toml", {})


def test_the_key_of_azure_has_a_header_of_its_own() -> None:
    text = '[upstreams.azure]\nurl = "https://r.openai.azure.com/openai/v1"\nkey = "k-secret"\n'
    upstream = parse_config(text, "t.toml", {}).upstreams[0]
    assert _headers(upstream) == (("api-key", "k-secret"),)


def test_no_two_presets_share_a_url_or_a_variable() -> None:
    presets = [upstreams.load(name) for name in NAMES]
    urls = [preset.url or preset.url_form for preset in presets]
    assert len({*urls}) == len(urls)
    variables = [preset.key_env for preset in presets if preset.key_env]
    assert len({*variables}) == len(variables)


def test_what_vendors_demand() -> None:
    assert upstreams.load("mistral").quirks.ids is IdForm.MISTRAL
    assert upstreams.load("moonshot").quirks.ids is IdForm.KIMI
    strict = {name for name in NAMES if not upstreams.load(name).quirks.reasoning_history}
    assert strict == {"cerebras", "groq", "mistral"}
    assert upstreams.load("anthropic").headers == (("anthropic-version", "2023-06-01"),)


def test_an_unknown_preset_is_named_with_those_that_are_known() -> None:
    with pytest.raises(UnknownName, match=r"upstream 'grok' is not one of .*groq"):
        upstreams.load("grok")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_the_same(name: str) -> None:
    preset = upstreams.load(name)
    form = f"say it: `{preset.url_form}`" if preset.url_form else "say it"
    url = f"`{preset.url}`" if preset.url else form
    variable = f" `{preset.key_env}` |" if preset.key_env else " |"
    row = f"| {name} | {preset.title} | {url} | {preset.wire} |{variable}"
    assert row in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_has_no_other_rows() -> None:
    rows = re.findall(r"^\| (\w+) \|.*\|.*\|.*\|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == ["preset", *NAMES]
