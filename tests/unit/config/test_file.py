"""The file: what it says is heard, and what is wrong with it is said, all at once, with its line and without keys."""

import os
import re
from dataclasses import fields
from hashlib import sha256
from pathlib import Path

import pytest

from toolspeak import config
from toolspeak.config.file import parse_config
from toolspeak.config.shape import (
    Access,
    Config,
    Durable,
    Jwt,
    Key,
    KeyPlace,
    Limits,
    McpServer,
    Model,
    Offer,
    Otel,
    RateLimits,
    Server,
    TenantRule,
    Traces,
    Up,
    UpModel,
    Upstream,
)
from toolspeak.engine.settings import Mode, Release, Settings, Strategy
from toolspeak.engine.verdict import Depth
from toolspeak.errors import BadConfig
from toolspeak.facts.model import Constrain, ModelFacts, Source, Support
from toolspeak.facts.strategy import Overrides
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.quirks import IdForm, Quirks
from toolspeak.runtime.outbound import Outbound
from toolspeak.runtime.transport import Timeouts
from toolspeak.upstreams import Auth
from toolspeak.wires.limits import RequestLimits

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
EXAMPLE = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
ENVIRON = {"BOX_KEY": "box-secret", "ANNA_KEY": "anna-secret", "GROQ_API_KEY": "groq-secret", "TICKETS_KEY": "t-secret"}
SAID = frozenset({"decides", "calls_in_reasoning", "starts_in_reasoning", "few_shot", "answer_tool", "system_role"})
CANARY = "sk-canary-5f3e2d1c"
JWT, JWKS = "[access.jwt]\nissuer = 'i'\naudience = 'a'", "\njwks_url = 'https://idp/keys'"


def read(text: str, **environ: str) -> Config:
    return parse_config(text, "t.toml", environ)


def problems(text: str, **environ: str) -> list[str]:
    with pytest.raises(BadConfig) as caught:
        read(text, **environ)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return list(caught.value.problems)


# ---------------------------------------------------------------- what is heard

VLLM = Quirks(constraint=ConstraintForm.VLLM)
BOX = ModelFacts(
    Support.LEAKS,
    "hermes",
    context_tokens=32768,
    images=True,
    constraint=Constrain.TEXT,
    quirks=VLLM,
    leaks_as="hermes",
    said=SAID | {f"quirks.{quirk.name}" for quirk in fields(Quirks)},
)


FILES = McpServer(
    "files",
    "npx",
    ("-y", "@modelcontextprotocol/server-filesystem", "/srv/papers"),
    (("DEBUG", "1"),),
    "/srv/papers",
    tools=("read_text_file", "write_file"),
    reads=("read_text_file",),
    network=True,
    folders=("/srv/papers",),
    read=("/srv/dictionary",),
    missing=("LANG",),
)
CODER = UpModel("coder", "hf:Qwen/Qwen2.5-Coder-7B-Instruct-GGUF:Q4_K_M", 16384, ("--flash-attn", "on"))
TICKETS = McpServer(
    "tickets",
    url="https://tickets.example.com/mcp",
    headers=(("x-team", "blue"), ("authorization", "Bearer t-secret")),
)


def test_the_example_of_the_page_says_all_of_it() -> None:
    box, groq = (upstream.name for upstream in reversed(parse_config(EXAMPLE, "t.toml", ENVIRON).upstreams))
    assert parse_config(EXAMPLE, "t.toml", ENVIRON) == Config(
        server=Server(hosts=("tools.example.com",), origins=("https://chat.example.com",), probe=Depth.FULL),
        limits=Limits(),
        offer=Offer(folders=("/srv/site",)),
        runs=Durable(
            "postgresql://runs@db.example.com/toolspeak",
            cells=(("eu", "postgresql://runs@db-eu.example.com/toolspeak"),),
            concurrent_per_tenant=50,
            imports=("mytools:*",),
        ),
        network=Outbound("none"),
        traces=Traces(content=False, database="/var/lib/toolspeak/traces.sqlite"),
        otel=Otel("http://127.0.0.1:4318"),
        settings=Settings(
            Mode.AUTO,
            False,
            Strategy.INLINE,
            "fenced",
            Release.CHECKED,
            2,
            True,
            True,
            False,
            False,
            Constrain.RETRY,
            drop_unrelated_calls=False,
            request_missing_calls=False,
            confirm_tool_fit=False,
            unfit_probability=0.0,
            keyed=False,
            mark_results=False,
            detailed_tools=0,
        ),
        upstreams=(
            Upstream(
                groq,
                "https://api.groq.com/openai/v1",
                key="groq-secret",
                facts=ModelFacts(quirks=Quirks(reasoning_history=False, constraint=ConstraintForm.JSON_SCHEMA)),
                preset="groq",
            ),
            Upstream(
                box,
                "https://box.example.com/v1",
                key="box-secret",
                headers=(("x-team", "tools"),),
                facts=BOX,
                settings=Settings(retries=1),
                described=True,
                outbound=Outbound("http://proxy.example.com:3128"),
                preset="vllm",
            ),
        ),
        models=(
            Model("fast", "groq", "llama-3.3-70b-versatile", fallback=("box:qwen3-coder",), escalate_to="gpt-5.5"),
            Model(
                "gpt-5.5",
                "box",
                "qwen3-coder",
                Settings(Mode.FORCE, dialect="qwen_xml"),
                ModelFacts(Support.NONE),
                limits=RateLimits(600),
            ),
        ),
        default="fast",
        mcp=(FILES, TICKETS),
        redis="redis://127.0.0.1:6379/0",
        up=Up(1, 600.0, (CODER,)),
        capabilities=Overrides.of({"ollama:llama3.2*": "openai", "box": "none"}),
        access=Access(
            KeyPlace.FILE,
            "/var/lib/toolspeak/keys.json",
            "/var/lib/toolspeak/audit.jsonl",
            jwt=Jwt(
                "https://login.example.com/realms/main",
                "toolspeak",
                "https://login.example.com/realms/main/certs",
                models_claim="toolspeak_models",
                tenants=(TenantRule("team-*", limits=RateLimits(120)),),
            ),
        ),
        keys=(
            Key("anna", sha256(b"anna-secret").digest(), ("fast", "box:*"), RateLimits(60, 200_000, 20_000, 4)),
            Key("build", sha256(b"test").digest()),
        ),
    )


@pytest.mark.parametrize(
    "kind",
    [
        Server,
        Limits,
        RequestLimits,
        Settings,
        Timeouts,
        ModelFacts,
        Quirks,
        Outbound,
        Up,
        UpModel,
        Upstream,
        Model,
        Key,
        RateLimits,
        Jwt,
        TenantRule,
    ],
)
def test_the_example_leaves_no_field_out(kind: type) -> None:
    other_words = {"name", "digest", "facts", "settings", "tools", "quirks", "key", "leaks_as", "source", "said"}
    other_words.update(("described", "request", "outbound", "more_urls", "more_outbound", "id", "pattern", "tenants"))
    said = {match[1] for match in re.finditer(r"^(\w+) = ", EXAMPLE, re.MULTILINE)}
    said |= {match[1] for match in re.finditer(r"^\[\S*?(\w+)\]", EXAMPLE, re.MULTILINE)}
    said |= {*re.findall(r"^# (\w+) = ", EXAMPLE, re.MULTILINE)}  # their files would have to exist
    assert {field.name for field in fields(kind)} - other_words <= said


def test_several_servers_of_an_upstream_share_its_key_and_its_settings_pool1() -> None:
    text = '[upstreams.box]\nurls = ["http://127.0.0.1:1/v1/", "http://10.0.0.2:1/v1"]\nkey = "k"'
    (box,) = read(text).upstreams
    assert (box.url, box.more_urls, box.urls) == (
        box.urls[0],
        box.urls[1:],
        ("http://127.0.0.1:1/v1", "http://10.0.0.2:1/v1"),
    )
    (one,) = read('[upstreams.box]\nurls = ["http://127.0.0.1:1/v1"]').upstreams
    assert one == read('[upstreams.box]\nurl = "http://127.0.0.1:1/v1"').upstreams[0]


def test_a_vendors_key_goes_to_no_server_of_a_pool_that_is_not_the_vendors_pool1() -> None:
    text = '[upstreams.openai]\nurls = ["https://api.openai.com/v1", "https://proxy.example.com/v1"]'
    assert read(text, OPENAI_API_KEY="vendor").upstreams[0].key == ""


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("urls = []", "2: upstreams.box.urls: is empty: name at least one server"),
        ("urls = ['box']", "upstreams.box.urls[0]: 'box' is not a URL such as"),
        ("urls = ['http://a:1/v1', 'http://A:1/v1/']", "upstreams.box.urls[1]: is there twice"),
        ("url = 'http://a:1'\nurls = ['http://b:1']", "upstreams.box.urls: is given together with url: remove one"),
        ("urls = 'http://a:1'", "upstreams.box.urls: 'http://a:1' is not an array of strings"),
    ],
)
def test_a_mistake_in_urls_is_named_pool1(line: str, problem: str) -> None:
    assert any(problem in each for each in problems(f"[upstreams.box]\n{line}"))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a", "3: models.a.fallback[0]: is the model itself: name another one"),
        ("grox:m", "3: models.a.fallback[0]: 'grox:m' is not one of [models], and does not name its upstream"),
    ],
)
def test_a_mistake_in_a_fallback_is_named_pool5(name: str, problem: str) -> None:
    text = f'[upstreams.groq]\n[models.a]\nfallback = ["{name}"]\n[models.b]\nfallback = ["a", "groq:m", "groq/m"]'
    assert any(problem in each for each in problems(text))
    right = text.replace(f'["{name}"]', '["b"]')
    assert [model.fallback for model in read(right).models] == [("b",), ("a", "groq:m", "groq/m")]


def test_the_messages_of_the_page_are_those_that_come() -> None:
    text = """
[upstreams.box]
url = "http://127.0.0.1:9/v1"


[upstreams.groq]
wire = "opnai_chat"

api_key = "x"

[models.fast]
upstream = "grog"
"""
    shown = re.findall(r"```\n(toolspeak\.toml:.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    with pytest.raises(BadConfig) as caught:
        parse_config(text, "toolspeak.toml", {})
    assert str(caught.value) == shown


def test_an_empty_file_says_nothing() -> None:
    assert read("") == Config()


def test_the_name_of_a_preset_is_enough() -> None:
    (groq,) = read("[upstreams.groq]", GROQ_API_KEY="g\n").upstreams
    assert (groq.url, groq.wire, groq.key) == ("https://api.groq.com/openai/v1", "openai_chat", "g")


def test_a_preset_may_have_another_name_and_place() -> None:
    (mine,) = read('[upstreams.mine]\npreset = "mistral"\nurl = "http://127.0.0.1:1/v1/"\n').upstreams
    assert (mine.name, mine.url, mine.facts.quirks.ids) == ("mine", "http://127.0.0.1:1/v1", IdForm.MISTRAL)


def test_a_default_that_is_said_counts_as_said() -> None:
    text = "[upstreams.groq]\nsupport = 'unknown'\nfacts = { few_shot = false }\nquirks = { ids = 'any' }"
    (groq,) = read(text).upstreams
    assert groq.facts.said == {"tools", "few_shot", "quirks.ids", "quirks.reasoning_history", "quirks.constraint"}
    assert read("[upstreams.groq]\n[models.m.facts]\nfew_shot = false").models[0].facts.said == {"few_shot"}


def test_a_preset_is_a_table_and_the_file_is_the_user_s_word_cap3() -> None:
    (one,) = read("[upstreams.anthropic]").upstreams
    (other,) = read("[upstreams.anthropic]\nsupport = 'native'").upstreams
    assert (one.facts.source, other.facts.source) == (Source.TABLE, Source.SAID)


def test_the_key_of_a_vendor_goes_to_that_vendor_only() -> None:
    """SAFE-6."""
    (mine,) = read('[upstreams.openai]\nurl = "https://proxy.example.com/v1"', OPENAI_API_KEY="vendor").upstreams
    assert mine.key == ""
    text = '[upstreams.openai]\nurl = "https://proxy.example.com/v1"\nkey_env = "OPENAI_API_KEY"'
    assert read(text, OPENAI_API_KEY="vendor").upstreams[0].key == "vendor"


def test_another_wire_brings_its_headers() -> None:
    (box,) = read('[upstreams.box]\nurl = "http://127.0.0.1:1/v1"\nwire = "anthropic"').upstreams
    assert (box.wire, box.auth) == ("anthropic", Auth.X_API_KEY)
    assert box.headers == (("anthropic-version", "2023-06-01"),)
    assert box.facts.tools is Support.UNKNOWN


def test_what_is_said_of_headers_is_heard_before_the_preset() -> None:
    text = '[upstreams.anthropic]\nauth = "bearer"\nheaders = { Anthropic-Version = "2099-01-01", a = "b" }'
    (upstream,) = read(text).upstreams
    assert upstream.auth is Auth.BEARER
    assert upstream.headers == (("anthropic-version", "2099-01-01"), ("a", "b"))


def test_settings_stand_at_three_places_mode1() -> None:
    text = """
[tools]
mode = "off"
[upstreams.groq.tools]
mode = "force"
[models.a.tools]
mode = "fallback"
"""
    found = read(text)
    assert found.settings.mode is Mode.OFF
    assert found.upstreams[0].settings.mode is Mode.FORCE
    assert found.models == (Model("a", "groq", settings=Settings(Mode.FALLBACK)),)


def test_every_setting_can_be_written() -> None:
    """MODE-1; `key` is made for each conversation (SAFE-4)."""
    text = """
[tools]
mode = "force"
chat = true
strategy = "decision"
dialect = "hermes"
release = "eager"
retries = 0
rescue = false
keep_system = false
few_shot = true
answer_tool = true
constraint = "json"
drop_unrelated_calls = true
request_missing_calls = true
confirm_tool_fit = true
unfit_probability = 0.3
keyed = true
mark_results = true
detailed_tools = 8
"""
    said = read(text).settings
    assert {field.name for field in fields(said) if getattr(said, field.name) is None} == {"key"}
    expected = (Mode.FORCE, True, Strategy.DECISION, "hermes", Release.EAGER, 0, False, False, True, True)
    guardrails = Settings(
        drop_unrelated_calls=True,
        request_missing_calls=True,
        confirm_tool_fit=True,
        unfit_probability=0.3,
        keyed=True,
        mark_results=True,
        detailed_tools=8,
    )
    assert said == guardrails.over(Settings(*expected, constraint=Constrain.JSON))


def test_a_default_may_say_its_upstream() -> None:
    assert read('default = "groq:llama"\n[upstreams.groq]\n[upstreams.ollama]').default == "groq:llama"
    assert read('default = "llama"\n[upstreams.groq]').default == "llama"


# ---------------------------------------------------------------- what is wrong

WRONG = [
    (
        "port = 1",
        (
            "1: port: is no field here; there are "
            "access, capabilities, dashboard, default, keys, limits, mcp, models, network, otel, profiles, redis, "
            "responses, runs, server, tools, traces, unknown_models, up, upstreams"
        ),
    ),
    ('server.probe = "deep"', "1: server.probe: 'deep' is not one of off, look, tokens, full"),
    ('redis.url = "http://:secret@r"', "1: redis.url: is not a URL such as redis://127.0.0.1:6379/0 (it is not shown)"),
    ("[servr]", "1: servr: is no field here; did you mean 'server'?"),
    ("server = 3", "1: server: 3 is not a table"),
    ("[server]\nport = 70000", "2: server.port: 70000 is not an integer from 0 to 65535"),
    ("[server]\nport = true", "2: server.port: true is not an integer from 0 to 65535"),
    ("[server]\nport = 1.5", "2: server.port: 1.5 is not an integer from 0 to 65535"),
    ("[server]\nhost = ''", "2: server.host: '' is not a string with something in it"),
    ("[server]\nhost = 'a/b'", "2: server.host: 'a/b' is not an address such as 127.0.0.1, ::1 or localhost"),
    ("[server]\nhosts = 'a'", "2: server.hosts: 'a' is not an array of strings"),
    (
        "[server]\nhosts = ['a',\n'b:80']",
        "3: server.hosts[1]: 'b:80' is not a host such as tools.example.com, without a port",
    ),
    (
        "[server]\norigins = ['*']",
        "2: server.origins[0]: '*' is not an origin such as https://chat.example.com",
    ),
    ("[server]\nkeep_alive = 0", "2: server.keep_alive: 0 is not a number of seconds above 0"),
    ("[server]\nkeep_alive = inf", "2: server.keep_alive: inf is not a number of seconds above 0"),
    ("[server]\nkeep_alive = nan", "2: server.keep_alive: nan is not a number of seconds above 0"),
    ("[limits]\nconcurrent = 0", "2: limits.concurrent: 0 is not an integer of at least 1"),
    ("[tools]\nchat = 1", "2: tools.chat: 1 is not true or false"),
    (
        "[tools]\nmode = 'forced'",
        "2: tools.mode: 'forced' is not one of off, fallback, force, auto; did you mean 'force'?",
    ),
    ("[tools]\nmode = 2020-01-02", "2: tools.mode: 2020-01-02 is not a string with something in it"),
    ("[tools]\nretries = 11", "2: tools.retries: 11 is not an integer from 0 to 10"),
    ("[upstreams.box]\nurl = 'box'", "2: upstreams.box.url: 'box' is not a URL such as http://127.0.0.1:8080/v1 or"),
    ("[upstreams.compatible]", "1: upstreams.compatible.url: is missing: this preset has none"),
    ("[upstreams.a]\npreset = 'compatible'", "1: upstreams.a.url: is missing: this preset has none"),
    ("[upstreams.a]\npreset = 'olama'", "2: upstreams.a.preset: 'olama' is not one of anthropic, "),
    ("[upstreams.'a b']\npreset = 'groq'", '1: upstreams."a b": an upstream\'s name is letters, digits and . _ -'),
    (
        "[upstreams.groq]\nkey = 'a'\nkey_env = 'A'",
        "2: upstreams.groq.key: is given together with key_env: remove one of the two",
    ),
    ("[upstreams.groq]\nkey_env = 'NOPE'", "2: upstreams.groq.key_env: the environment variable NOPE is not set"),
    ("[upstreams.groq]\nkey_env = 'ODD'", "2: upstreams.groq.key_env: the environment variable ODD is not a string of"),
    ("[upstreams.groq.headers]\nhost = 'a'", "2: upstreams.groq.headers.host: is a header that is written for each"),
    ("[upstreams.groq.headers]\n'a b' = 'a'", '2: upstreams.groq.headers."a b": is not the name of a header'),
    (
        "[upstreams.groq]\nsupport = 'yes'",
        "2: upstreams.groq.support: 'yes' is not one of native, none, leaks, unknown",
    ),
    (
        "[capabilities]\n'ollama:llama3.2*' = 'opnai'",
        "2: capabilities.\"ollama:llama3.2*\": 'opnai' is not one of none, openai, advanced; did you mean 'openai'?",
    ),
    ("[capabilities]\nbox = true", "2: capabilities.box: true is not a string with something in it"),
    ("[capabilities]\n':m' = 'none'", '2: capabilities.":m": is neither a provider, such as ollama, nor models of one'),
    ("[capabilities.box]\nm = 'none'", "1: capabilities.box: "),
    ("[upstreams.groq.facts]\ndialect = 'hermess'", "2: upstreams.groq.facts.dialect: 'hermess' is not one of"),
    ("[upstreams.groq.quirks]\nids = 'nine'", "2: upstreams.groq.quirks.ids: 'nine' is not one of any, mistral, kimi"),
    ("[upstreams.groq]\nbase_url = 'x'", "2: upstreams.groq.base_url: is no field here; did you mean 'url'?"),
    ("[models.a]", "1: models.a.upstream: is missing: whose model it is"),
    (
        "[models.a]\nupstream = 'groq'",
        "2: models.a.upstream: 'groq' is a preset, but no upstream yet: add [upstreams.groq]",
    ),
    ("[models.a]\nupstream = 'x'", "2: models.a.upstream: 'x' is no upstream: there is no [upstreams.x]"),
    ("[models.a.quirks]\nids = 'any'\n[upstreams.groq]", "1: models.a.quirks: is no field here; there are"),
    (
        "default = 'a'\n[upstreams.groq]\n[upstreams.ollama]",
        "1: default: 'a' is not one of [models], and does not name its upstream, such as 'groq:a'",
    ),
    ("[up.models.a]", '1: up.models.a.model: is missing: a GGUF file, a name of a local store, or "hf:ORG/REPO:QUANT"'),
    ("[up]\nloaded = 0", "2: up.loaded: 0 is not an integer of at least 1"),
    ("[up.models.a]\nmodel = 'm'\npath = 'x'", "3: up.models.a.path: is no field here"),
    ("[access.jwt]\naudience = 'a'" + JWKS, "1: access.jwt.issuer: is missing: the claim `iss` of your tokens"),
    ("[access.jwt]\nissuer = 'i'" + JWKS, "1: access.jwt.audience: is missing: the claim `aud` of tokens for this"),
    (JWT, "1: access.jwt.jwks_url: one of jwks_url and jwks_file is needed, and only one"),
    (JWT + JWKS + "\nalgorithms = []", "5: access.jwt.algorithms: is empty: name at least one"),
    (JWT + JWKS + "\nalgorithms = ['none']", "5: access.jwt.algorithms[0]: 'none' is not one of RS256"),
    (JWT + JWKS + "\nalgorithms = ['HS256']", "5: access.jwt.algorithms[0]: 'HS256' is not one of RS256"),
    (JWT + "\njwks_url = 'http://idp.example.com'", "4: access.jwt.jwks_url: 'http://idp.example.com' is not https"),
    (JWT + "\njwks_url = 'https://a:b@idp'", "4: access.jwt.jwks_url: holds a user name, a password, a query or"),
    (JWT + "\njwks_file = 'jwks.json'", "4: access.jwt.jwks_file: 'jwks.json' is not an absolute path"),
    (
        JWT + JWKS + "\nmodels_claim = 'm'\ntenants.a.models = ['x']",
        "5: access.jwt.models_claim: is given together with models of tenants: remove one of the two",
    ),
    (JWT + JWKS + "\ntenants.a.model = 'x'", "5: access.jwt.tenants.a.model: is no field here; did you mean 'models'?"),
    ("keys = 1", "1: keys: 1 is not an array of tables: write [[keys]]"),
    ("keys = [1]", "1: keys[0]: 1 is not a table"),
    ("[[keys]]\nkey = 'a'", "1: keys[0].tenant: is missing: whose key it is"),
    ("[[keys]]\ntenant = 'a'", "1: keys[0].key: is missing: set key, key_env or sha256"),
    ("[[keys]]\ntenant = 'a b'\nkey = 'k'", "2: keys[0].tenant: 'a b' is not 1 to 64 letters, digits and . _ @ -"),
    ("[[keys]]\ntenant = 'a'\nsha256 = 'ab'", "3: keys[0].sha256: is not the SHA-256 of a key: 64 hexadecimal digits"),
    (
        "[[keys]]\ntenant = 'a'\nkey = 'k'\nsha256 = 'ab'",
        "3: keys[0].key: is given together with sha256: remove one of the two",
    ),
    (
        "[[keys]]\ntenant = 'a'\nkey = 'k'\n[[keys]]\ntenant = 'b'\nkey = 'k'",
        "5: keys[1].tenant: has the same key as 'a'",
    ),
    ("a = ", "1: Invalid value"),
    ("\n\na b", "3: Expected '=' after a key in a key/value pair"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    found = problems(text, ODD="a\x01b")
    assert any(problem.startswith(f"t.toml:{message}") for problem in found), found


@pytest.mark.parametrize("text", [text for text, _ in WRONG if "key = 'k'\nsha256" not in text])
def test_one_mistake_is_said_once(text: str) -> None:
    assert len(problems(text, ODD="a\x01b", A="b")) == 1


def test_all_mistakes_are_said_at_once_in_the_order_of_the_file() -> None:
    text = """
default = 1
[server]
port = -1
nope = 1
[upstreams.grok]
[models.a]
upstream = "grog"
[[keys]]
"""
    found = problems(text)
    assert [problem.split(": ")[1] for problem in found] == [
        "default",
        "server.port",
        "server.nope",
        "upstreams.grok.url",
        "models.a.upstream",
        "keys[0].key",
        "keys[0].tenant",
    ]
    assert "did you mean 'groq'?" in found[3]
    assert "did you mean 'grok'?" in found[4]


def test_a_file_that_is_nested_too_deeply_is_refused() -> None:
    assert problems("a = " + "[" * 100_000 + "]" * 100_000) == ["t.toml: is nested too deeply"]


# ---------------------------------------------------------------- keys are not shown

LEAKS = [
    "[upstreams.groq]\nkey = ['{}']",
    "[upstreams.groq]\nkey = '{}\\u0001'".replace("'", '"'),
    "[upstreams.groq]\nkey_env = '{}'",
    "[upstreams.groq]\nauth = '{}'",
    "[upstreams.groq]\nauth = 'Bearer {}'",
    "[upstreams.groq]\napi_key = '{}'",
    "[upstreams.groq]\nkey = '{}'\nkey_env = 'NOPE'",
    "[upstreams.groq.headers]\nhost = '{}'",
    "[upstreams.groq.headers]\na = ['{}']",
    "[upstreams.groq]\nurl = 'https://u:{}@h/v1'",
    "[upstreams.groq]\nurl = 'https:u:{}@h'",
    "[upstreams.groq]\nurl = 'https://h/v1?key={}'",
    "[upstreams.groq]\nurl = 'https://h/v1#{}'",
    "[[keys]]\nkey = '{}'",
    "[[keys]]\ntenant = 'a'\nkey_env = '{}'",
    "[[keys]]\ntenant = 'a'\nsha256 = '{}'",
    "[[keys]]\ntenant = 'a'\nkey = '{}'\n[[keys]]\ntenant = 'b'\nkey = '{}'",
    "[upstreams.groq]\nkey_env = 'ODD'",
]


@pytest.mark.parametrize("text", LEAKS)
@pytest.mark.parametrize("canary", [CANARY, CANARY.replace("-", "_")])
def test_no_message_shows_a_key(text: str, canary: str) -> None:
    """SAFE-6."""
    found = "\n".join(problems(text.replace("{}", canary), ODD=f"{canary}\x01"))
    assert canary not in found
    assert "t.toml:" in found


def test_no_configuration_shows_a_key() -> None:
    """SAFE-6."""
    text = f"""
[upstreams.groq]
key = "{CANARY}"
headers = {{ a = "{CANARY}" }}
[[keys]]
tenant = "a"
key = "{CANARY}"
"""
    found = read(text)
    assert found.upstreams[0].key == CANARY
    assert CANARY not in repr(found)
    assert sha256(CANARY.encode()).hexdigest() not in repr(found)
    assert repr(sha256(CANARY.encode()).digest()) not in repr(found)


# ---------------------------------------------------------------- which file


def written(path: Path, text: str = "default = 'found'", mode: int = 0o600) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_file_is_the_one_that_is_named(tmp_path: Path) -> None:
    named = written(tmp_path / "named.toml", "default = 'named'")
    meant = written(tmp_path / "meant.toml", "default = 'meant'")
    written(tmp_path / "toolspeak" / "toolspeak.toml", "default = 'xdg'")
    written(tmp_path / ".config" / "toolspeak" / "toolspeak.toml", "default = 'home'")
    environ = {"HOME": str(tmp_path)}
    assert config.load(None, {}).default == ""
    assert config.load(None, environ).default == "home"
    environ["XDG_CONFIG_HOME"] = str(tmp_path)
    assert config.load(None, environ).default == "xdg"
    environ["TOOLSPEAK_CONFIG"] = str(meant)
    assert config.load(None, environ).default == "meant"
    assert config.load(named, environ).default == "named"


def test_the_current_folder_is_never_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SAFE-6: a cloned project names no upstreams."""
    for place in ("toolspeak.toml", ".toolspeak.toml", "toolspeak/toolspeak.toml", ".config/toolspeak/toolspeak.toml"):
        written(tmp_path / place)
    monkeypatch.chdir(tmp_path)
    for environ in ({}, {"HOME": ""}, {"HOME": "."}, {"XDG_CONFIG_HOME": "."}, {"XDG_CONFIG_HOME": ""}):
        assert config.load(None, environ) == Config()
    with pytest.raises(BadConfig, match=r"TOOLSPEAK_CONFIG: 'toolspeak.toml' is not an absolute path"):
        config.load(None, {"TOOLSPEAK_CONFIG": "toolspeak.toml"})
    assert config.load("toolspeak.toml", {}).default == "found"


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    for path in (tmp_path / "nope.toml", tmp_path):
        with pytest.raises(BadConfig, match=r"cannot be read: (No such file|Is a directory)"):
            config.load(path, {})


def test_a_file_must_be_text_of_a_reasonable_size(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_bytes(b"# a\n# \xff\n")
    with pytest.raises(BadConfig, match=r"t\.toml:2: is not UTF-8"):
        config.load(file, {})
    file.write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(BadConfig, match="is over 1048576 bytes"):
        config.load(file, {})


@pytest.mark.skipif(os.name != "posix", reason="permissions of this kind are those of POSIX")
@pytest.mark.parametrize(
    ("text", "mode", "doubted"),
    [
        ("[upstreams.groq]\nkey = 'a'", 0o644, True),
        ("[upstreams.groq]\nkey = 'a'", 0o640, True),
        ("[upstreams.groq]\nkey = 'a'", 0o600, False),
        ("[upstreams.groq]\nheaders = { a = 'b' }", 0o604, True),
        ("[[keys]]\ntenant = 'a'\nkey = 'a'", 0o644, True),
        ("[[keys]]\ntenant = 'a'\nkey_env = 'HOME'", 0o644, False),
        ("[upstreams.groq]\n[models.key]", 0o644, False),
    ],
)
def test_a_file_with_keys_that_others_can_open_is_doubted(tmp_path: Path, text: str, mode: int, doubted: bool) -> None:
    file = written(tmp_path / "t.toml", text, mode)
    found = config.doubts(config.load(file, {"HOME": "/", "GROQ_API_KEY": "g"}))
    assert [
        doubt.startswith(f"{file}: holds keys, and other users may open it (mode {mode:o})") for doubt in found
    ] == [True] * doubted
    assert all("'a'" not in doubt for doubt in found)


def test_mistakes_of_the_file_and_of_the_environment_come_together(tmp_path: Path) -> None:
    file = written(tmp_path / "t.toml", "a = 1")
    with pytest.raises(BadConfig) as caught:
        config.load(file, {"TOOLSPEAK_PORT": "x", "TOOLSPEAK_WIRE": "y"})
    assert len(caught.value.problems) == 3


def test_what_is_wrong_with_runs_is_said_without_the_password() -> None:
    text = '[runs]\ndatabase = "mysql://me:canary@db/x"\nlease = 0\nkeep_days = -1\nconcurrent = 0\n'
    found = problems(f"{text}concurrent_per_tenant = 0\n")
    assert [each.split(" ")[1] for each in found] == [
        "runs.database:",
        "runs.lease:",
        "runs.keep_days:",
        "runs.concurrent:",
        "runs.concurrent_per_tenant:",
    ]
    assert "canary" not in "".join(found)


def test_what_is_wrong_with_cells_is_said_without_the_password() -> None:
    text = (
        '[runs]\ndatabase = "postgresql://db/x"\n[runs.cells.EU]\ndatabase = "mysql://me:canary@db/x"\n'
        "[runs.cells.default]\n[runs.cells.us]\nurl = 1\n"
    )
    found = problems(text)
    assert [each.split(" ")[1] for each in found] == [
        "runs.cells.EU:",
        "runs.cells.EU.database:",
        "runs.cells.default:",
        "runs.cells.default.database:",
        "runs.cells.us.database:",
        "runs.cells.us.url:",
    ]
    assert "canary" not in "".join(found)


def test_cells_need_the_default_cell(tmp_path: Path) -> None:
    file = written(tmp_path / "t.toml", '[runs.cells.eu]\ndatabase = "postgresql://db/x"\n')
    with pytest.raises(BadConfig, match=r"runs\.database: is missing: it is the default cell"):
        config.load(file, {})
    assert config.load(file, {"TOOLSPEAK_RUNS_DATABASE": "postgresql://db/y"}).runs.cells
