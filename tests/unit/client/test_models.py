"""Where a client asks: at an upstream that is named, at those of the configuration, or at a server on this machine."""

from pathlib import Path

import pytest

from testkit.loopback import Got, Loopback, Out, in_loop
from tests.unit.client.scene import COLD, served
from toolspeak import AsyncClient, Client
from toolspeak.client.models import ModelSource
from toolspeak.config.shape import Config, Upstream
from toolspeak.engine.plan import Way
from toolspeak.errors import BadConfig
from toolspeak.runtime.transport import Timeouts

KEY = "canary-7f3a"


def test_a_url_is_an_upstream_under_the_name_of_its_host() -> None:
    only = ModelSource("http://127.0.0.1:9999/v1").load_config().upstreams[0]
    assert (only.name, only.url, only.wire) == ("127.0.0.1:9999", "http://127.0.0.1:9999/v1", "openai_chat")


def test_a_preset_is_an_upstream_with_the_key_of_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    only = ModelSource("groq").load_config().upstreams[0]
    assert (only.name, only.url, only.key) == ("groq", "https://api.groq.com/openai/v1", KEY)
    assert ModelSource("groq", key="another-key").load_config().upstreams[0].key == "another-key"


def test_a_wire_can_be_said() -> None:
    assert ModelSource("http://127.0.0.1:9999", wire="ollama").load_config().upstreams[0].wire == "ollama"


def test_waits_are_for_all_upstreams() -> None:
    timeouts = Timeouts(connect=1.0, first_byte=2.0)
    config = Config(upstreams=(Upstream("a", "http://a/v1"), Upstream("b", "http://b/v1")))
    assert [each.timeouts for each in ModelSource(config=config, timeouts=timeouts).load_config().upstreams] == [
        timeouts,
        timeouts,
    ]


def test_the_key_goes_to_the_upstream_and_shows_nowhere_safe6() -> None:
    with served(COLD) as server, Client(server.url, key=KEY) as client:
        client.chat("Hello")
        assert {got.headers["authorization"] for got in server.got} == {f"Bearer {KEY}"}
        assert KEY not in repr((client, vars(client), client._client._source))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (ModelSource("gorq"), "upstream: 'gorq' is not one of anthropic, .* did you mean 'groq'?"),
        (ModelSource("127.0.0.1:8080/v1"), "upstream: '127.0.0.1:8080/v1' is not a URL such as http://"),
        (ModelSource("ftp://box/v1"), "upstream: 'ftp://box/v1' is not a URL such as http://"),
        (ModelSource("compatible"), "upstream: 'compatible' has no URL of its own; pass the URL"),
        (ModelSource("http://box/v1", wire="opnai"), "wire: 'opnai' is not one of .* did you mean 'openai_chat'"),
        (ModelSource("http://box/v1", key="two\nlines"), "key: is not a string of visible ASCII characters"),
        (
            ModelSource("groq", config=Config()),
            "config: it has the upstreams already; leave out upstream, wire and key",
        ),
        (ModelSource(config=Path("/nowhere/toolspeak.toml")), "toolspeak.toml"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_python(where: ModelSource, message: str) -> None:
    with pytest.raises(BadConfig, match=message) as caught:
        where.load_config()
    assert "--" not in str(caught.value)


FILE = """
default = "fast"

[upstreams.box]
url = "{url}"
support = "none"

[upstreams.other]
url = "http://127.0.0.1:9/v1"

[models.fast]
upstream = "box"
model = "qwen"
"""


@pytest.mark.parametrize("as_path", [True, False])
def test_a_file_says_upstreams_names_and_facts(tmp_path: Path, as_path: bool) -> None:
    file = tmp_path / "toolspeak.toml"
    with served(COLD, COLD) as server:
        file.write_text(FILE.format(url=server.url))
        file.chmod(0o600)
        with Client(config=file if as_path else str(file)) as client:
            assert client.chat("Hello").text == COLD
            assert client.chat("Hello", model="box:large").text == COLD
            assert client.plan("Hello", [{"name": "look"}]).way is Way.FORCE
            client.override("fast", "native")
            assert client.plan("Hello", [{"name": "look"}]).way is Way.NATIVE
            assert client.plan("Hello", [{"name": "look"}], model="box:large").way is Way.FORCE
            assert client.models() == ["fast", "small", "large"]


def test_the_users_own_file_is_read_without_a_word(tmp_path: Path) -> None:
    with served(COLD) as server:
        file = tmp_path / "config" / "toolspeak" / "toolspeak.toml"
        file.parent.mkdir(parents=True)
        file.write_text(FILE.format(url=server.url))
        file.chmod(0o600)
        with Client() as client:
            assert client.chat("Hello").text == COLD


def look_at(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def places(environ: dict[str, str]) -> list[str]:
        del environ
        return [place]

    monkeypatch.setattr("toolspeak.config.local.local_places", places)


@in_loop
async def test_without_a_word_a_server_on_this_machine_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def say(_: Got, out: Out) -> None:
        await out.whole(200, b'{"data": [{"id": "local", "owned_by": "llamacpp"}]}')

    async with Loopback(say) as server:
        look_at(monkeypatch, server.url.removesuffix("/v1"))
        async with AsyncClient() as client:
            assert await client.models() == ["local"]
            client.override("llamacpp", "none")
            assert (await client.plan("Hello", [{"name": "look"}])).way is Way.FORCE


def test_without_a_word_and_without_a_server_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    look_at(monkeypatch, "http://127.0.0.1:9")
    with Client() as client, pytest.raises(BadConfig, match=r"no model server answers at .* name one, or start Ollama"):
        client.chat("Hello")
