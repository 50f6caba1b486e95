"""What the command line says, over the environment, over the file."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from toolspeak import config
from toolspeak.config import Config, Options
from toolspeak.config.file import parse_config
from toolspeak.engine.settings import Mode, Release, Settings, Strategy
from toolspeak.errors import BadConfig
from toolspeak.facts.model import Support
from toolspeak.ir.quirks import IdForm
from toolspeak.upstreams import Auth

TWO = """
default = "fast"
[upstreams.groq]
key = "file-key"
retries = 5
[upstreams.box]
url = "http://127.0.0.1:9/v1"
[models.fast]
upstream = "groq"
model = "llama"
[models.slow]
upstream = "box"
"""
ONE = '[upstreams.box]\nurl = "http://127.0.0.1:9/v1"\nkey = "file-key"'


def laid(text: str = "", environ: Mapping[str, str] | None = None, **said: str) -> Config:
    """Do it in both ways in which it can be done."""
    environ, options = environ or {}, Options(**said)  # pyright: ignore[reportArgumentType] # strings only
    first = config.with_options(parse_config(text, "t.toml", environ), options, environ)
    again = config.with_options(
        config.with_options(parse_config(text, "t.toml", environ), Options(), environ), options, environ
    )
    assert first == again
    return first


def refusal(text: str = "", environ: Mapping[str, str] | None = None, **said: str) -> str:
    with pytest.raises(BadConfig) as caught:
        laid(text, environ, **said)
    return str(caught.value)


def test_nothing_said_changes_nothing() -> None:
    assert laid(TWO) == parse_config(TWO, "t.toml", {})


# ---------------------------------------------------------------- the upstream


def test_a_url_alone_is_an_upstream() -> None:
    found = laid(upstream="http://127.0.0.1:9000/v1")
    (upstream,) = found.upstreams
    assert (upstream.name, upstream.url, upstream.wire) == ("127.0.0.1:9000", "http://127.0.0.1:9000/v1", "openai_chat")
    assert (upstream.key, upstream.facts.tools, found.default, found.models) == ("", Support.UNKNOWN, "", ())


@pytest.mark.parametrize("url", ["http://127.0.0.1:11434", "http://localhost:11434/"])
def test_a_url_may_be_that_of_a_preset(url: str) -> None:
    (upstream,) = laid(upstream=url).upstreams
    assert (upstream.name, upstream.wire) == ("ollama", "ollama")


def test_the_key_of_a_preset_comes_from_its_variable() -> None:
    environ = {"MISTRAL_API_KEY": "m"}
    for said in ({"preset": "mistral"}, {"upstream": "https://api.mistral.ai/v1"}):
        (upstream,) = laid("", environ, **said).upstreams
        assert (upstream.name, upstream.key, upstream.facts.quirks.ids) == ("mistral", "m", IdForm.MISTRAL)


def test_the_key_of_a_vendor_does_not_go_elsewhere() -> None:
    """SAFE-6."""
    (upstream,) = laid("", {"OPENAI_API_KEY": "o"}, preset="openai", upstream="https://evil.example.com/v1").upstreams
    assert (upstream.name, upstream.url, upstream.key) == ("openai", "https://evil.example.com/v1", "")


def test_a_wire_brings_its_own_way_to_show_a_key() -> None:
    (upstream,) = laid(upstream="http://127.0.0.1:9/v1", wire="anthropic", upstream_key="k").upstreams
    assert (upstream.auth, upstream.key) == (Auth.X_API_KEY, "k")
    assert upstream.headers == (("anthropic-version", "2023-06-01"),)
    (upstream,) = laid(upstream="http://127.0.0.1:9/v1beta", wire="gemini").upstreams
    assert (upstream.auth, upstream.headers) == (Auth.X_GOOG_API_KEY, ())
    (upstream,) = laid(preset="anthropic", wire="openai_chat").upstreams
    assert upstream.auth is Auth.BEARER


def test_a_named_upstream_becomes_the_only_one() -> None:
    found = laid(TWO, upstream="http://127.0.0.1:7/v1")
    assert [upstream.name for upstream in found.upstreams] == ["127.0.0.1:7"]
    assert (found.models, found.default) == ((), "")


def test_the_file_knows_the_upstream_that_is_named() -> None:
    for said in ({"preset": "groq"}, {"upstream": "https://api.groq.com/openai/v1/"}):
        found = laid(TWO, None, **said)
        (upstream,) = found.upstreams
        assert (upstream.name, upstream.key, upstream.retries) == ("groq", "file-key", 5)
        assert [model.name for model in found.models] == ["fast"]
        assert found.default == "fast"
    assert laid(TWO, upstream="http://127.0.0.1:9/v1").default == ""


def test_wire_and_key_may_be_said_of_the_only_upstream() -> None:
    (upstream,) = laid(ONE, wire="openai_responses", upstream_key="said").upstreams
    assert (upstream.name, upstream.wire, upstream.key) == ("box", "openai_responses", "said")
    assert "there are several upstreams (groq, box); pass --upstream URL" in refusal(TWO, upstream_key="said")


def test_what_is_said_of_an_upstream_waits_for_one() -> None:
    options = Options(wire="openai_chat", model="m", upstream_key="k")
    nothing = config.with_options(Config(), options)
    assert (nothing.upstreams, nothing.default) == ((), "m")
    found = config.with_options(nothing, replace(options, upstream="http://127.0.0.1:11434", preset="ollama"))
    (upstream,) = found.upstreams
    assert (upstream.name, upstream.wire, upstream.key, found.default) == ("ollama", "openai_chat", "k", "m")


# ---------------------------------------------------------------- over the environment

HERE = {"TOOLSPEAK_UPSTREAM": "http://127.0.0.1:8/v1", "TOOLSPEAK_WIRE": "anthropic", "TOOLSPEAK_UPSTREAM_KEY": "here"}


def test_the_command_line_is_heard_before_the_environment_and_that_before_the_file() -> None:
    text, environ = "[server]\nport = 1", {"TOOLSPEAK_PORT": "2"}
    assert parse_config(text, "t", {}).server.port == 1
    assert laid(text, environ).server.port == 2
    assert config.with_options(laid(text, environ), Options(port=3), environ).server.port == 3


def test_the_key_of_one_upstream_does_not_go_to_another() -> None:
    """SAFE-6."""
    (upstream,) = laid("", HERE, upstream="http://127.0.0.1:7/v1").upstreams
    assert (upstream.url, upstream.wire, upstream.key) == ("http://127.0.0.1:7/v1", "openai_chat", "")
    (upstream,) = laid("", HERE, preset="ollama").upstreams
    assert (upstream.name, upstream.wire, upstream.key) == ("ollama", "ollama", "")


def test_a_key_without_an_upstream_is_that_of_the_one_that_is_named() -> None:
    (upstream,) = laid("", {"TOOLSPEAK_UPSTREAM_KEY": "k"}, upstream="http://127.0.0.1:7/v1").upstreams
    assert upstream.key == "k"


def test_the_upstream_of_the_environment_may_get_another_wire() -> None:
    (upstream,) = laid("", HERE, wire="openai_chat").upstreams
    assert (upstream.wire, upstream.auth, upstream.key) == ("openai_chat", Auth.BEARER, "here")


# ---------------------------------------------------------------- the rest


def test_what_is_said_of_tools_is_meant_for_all_mode1() -> None:
    text = (
        ONE
        + '\n[tools]\nmode = "off"\nretries = 1\n[upstreams.box.tools]\nmode = "off"\n[models.a.tools]\nmode = "off"'
    )
    found = laid(text, mode="force", dialect="hermes", strategy="decision", release="eager")
    said = Settings(Mode.FORCE, dialect="hermes", strategy=Strategy.DECISION, release=Release.EAGER)
    assert found.settings == replace(said, retries=1)
    assert [each.settings for each in (*found.upstreams, *found.models)] == [said, said]


def test_a_key_stands_instead_of_those_of_the_file() -> None:
    text = '[[keys]]\ntenant = "a"\nkey = "a"'
    assert [key.tenant for key in laid(text).keys] == ["a"]
    assert [key.tenant for key in laid(text, key="k").keys] == ["default"]
    assert laid(text, key="k").keys == laid(key="k").keys != laid(key="other").keys


def test_a_default_model_must_be_clear() -> None:
    assert laid(TWO, model="slow").default == "slow"
    assert laid(TWO, model="box:qwen:7b").default == "box:qwen:7b"
    assert laid(TWO, model="box/qwen").default == "box/qwen"
    assert laid(ONE, model="qwen").default == "qwen"
    message = refusal(TWO, model="slw")
    assert message == (
        "--model: 'slw' is not one of [models], and does not name its upstream, such as 'groq:slw'; "
        "did you mean 'slow'?"
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"upstream": "ollama"}, "--upstream: 'ollama' is not a URL but a preset: pass --preset ollama"),
        ({"upstream": "http://u:sk-canary@h"}, "--upstream: holds a user name or password"),
        ({"preset": "olama"}, "--preset: 'olama' is not one of"),
        ({"preset": "compatible"}, "--preset: 'compatible' has no URL of its own; pass --upstream URL"),
        ({"wire": "chat"}, "--wire: 'chat' is not one of anthropic, gemini, ollama, openai_chat, openai_responses"),
        ({"mode": "chat"}, "--mode: 'chat' is not one of off, fallback, force, auto"),
        ({"strategy": "x"}, "--strategy: 'x' is not one of inline, decision"),
        ({"release": "x"}, "--release: 'x' is not one of eager, checked, buffered"),
        ({"dialect": "x"}, "--dialect: 'x' is not one of"),
        ({"model": ""}, "--model: is empty"),
        ({"key": "sk-canary\n"}, "--key: is not a string of visible ASCII characters"),
        ({"upstream_key": ""}, "--upstream-key: is not a string of visible ASCII characters"),
    ],
)
def test_what_is_wrong_is_said_with_its_option(said: dict[str, str], message: str) -> None:
    found = refusal("", None, **said)
    assert found.startswith(message)
    assert "canary" not in found


def test_options_show_no_key() -> None:
    """SAFE-6."""
    assert "canary" not in repr(Options(key="canary", upstream_key="canary"))


# ---------------------------------------------------------------- doubts


def test_a_vendor_without_a_key_is_doubted() -> None:
    assert config.doubts(laid(preset="groq")) == [
        "upstream 'groq' has no key: set GROQ_API_KEY, or set key or key_env in the file"
    ]
    assert config.doubts(laid("", {"GROQ_API_KEY": "g"}, preset="groq")) == []
    assert config.doubts(laid(preset="ollama")) == []


def test_a_key_over_plain_http_is_doubted() -> None:
    (doubt,) = config.doubts(laid(upstream="http://box.example.com/v1", upstream_key="sk-canary"))
    assert doubt.startswith("upstream 'box.example.com' gets its key over http")
    assert "canary" not in doubt
    assert config.doubts(laid(upstream="https://box.example.com/v1", upstream_key="k")) == []
    assert config.doubts(laid(upstream="http://127.0.0.1:8/v1", upstream_key="k")) == []


def test_a_key_that_no_header_can_carry_is_refused() -> None:
    message = refusal("", {"GROQ_API_KEY": "sk\x01canary"}, preset="groq")
    assert message.startswith("GROQ_API_KEY: is not a string of visible ASCII characters")
    assert "canary" not in message
