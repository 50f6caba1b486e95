"""`toolspeak trace`: five questions about a turn, answered on one page."""

import json
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from toolspeak.cli import main, toolspeak
from toolspeak.engine.settings import Mode, Settings

BAD = Answer('Let me see.\n```tool_call\n{"name": "get_weather", "arguments": {"town": 7}}\n```')
CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
QUESTION = question("openai_chat")


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("m",)) as scripted:
        yield scripted


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Generator[Served]:
    settings = Settings(mode=Mode.FORCE, dialect="fenced")
    with serving(config_of(towards(upstream), settings=settings)) as served:
        upstream.answers(answering(BAD), answering(CALL))
        assert served.post(QUESTION.path, QUESTION.body).status == 200
        assert soon(lambda: bool(served.ask("GET", "/traces").json["traces"]), 5)
        yield served


def run(gateway: Served, *words: str) -> Result:
    return CliRunner().invoke(toolspeak, ["trace", *words, "--url", f"http://127.0.0.1:{gateway.port}"])


def page(gateway: Served, *words: str) -> str:
    result = run(gateway, *words)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_names_model_calls_requests_tokens_and_time(gateway: Served) -> None:
    (line,) = page(gateway).splitlines()
    for word in (" 200 ", "m → up:m", "force", "get_weather", "2 requests", "1 complaint", "tokens"):
        assert word in line


@pytest.mark.parametrize(
    ("asks", "answer"),
    [
        ("why was this emulated?", "plan      force inline fenced"),
        ("what did the model really write?", '"town": 7'),
        ("why was it asked again?", "asked again: its calls cannot run: get_weather"),
        ("what did it cost?", "tokens in 2 requests"),
        ("what eats my context?", "tool get_weather"),
    ],
    ids=lambda each: each[:20],
)
def test_one_page_answers_five_questions(gateway: Served, asks: str, answer: str) -> None:
    assert answer in page(gateway, "last"), asks


def test_a_trace_is_found_by_the_beginning_of_its_id(gateway: Served) -> None:
    id = json.loads(page(gateway, "last", "--as", "json"))["id"]
    assert f"trace {id}" in page(gateway, id[:6])


def test_a_trace_goes_into_a_file_and_comes_back(gateway: Served, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(page(gateway, "last", "--as", "json"))
    assert page(gateway, "--file", str(file)) == page(gateway, "last")


def test_a_case_for_the_corpus_is_one_line(gateway: Served) -> None:
    (line,) = page(gateway, "last", "--as", "case", "--attempt", "2").splitlines()
    assert msgspec.json.decode(line)["expect"] == {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}


def test_shrink_prints_a_smaller_text(gateway: Served) -> None:
    small = page(gateway, "last", "--shrink")
    assert 0 < len(small) < len(BAD.text)
    assert "Let me see" not in small


def test_a_replay_compares_then_and_now(gateway: Served) -> None:
    told = page(gateway, "last", "--mode", "off")
    assert told.splitlines()[-1] == "another answer"
    assert page(gateway, "last", "--mode", "force").splitlines()[-1] == "the same answer"


def test_other_forms(gateway: Served) -> None:
    assert page(gateway, "last", "--as", "markdown").startswith("# Trace ")
    assert page(gateway, "last", "--as", "curl").startswith("curl http://127.0.0.1:")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing-like-it"], "`toolspeak trace` lists those that are kept"),
        (["last", "--mode", "wild"], "It is one of off, fallback, force, auto"),
        (["last", "--as", "case", "--attempt", "9"], "the trace has 2 attempts, and no number 9"),
    ],
)
def test_a_mistake_says_what_to_do(
    gateway: Served, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["trace", *words, "--url", f"http://127.0.0.1:{gateway.port}"])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_without_a_gateway_it_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["trace", "--url", "http://127.0.0.1:9"])
    assert "Start one with `toolspeak serve`, or pass --url URL" in capsys.readouterr().err


def test_a_gateway_with_keys_wants_one(upstream: ScriptedUpstream, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(config_of(towards(upstream), keys=(key("sk-1234567", "anna"),))) as gateway:
        with pytest.raises(SystemExit):
            main(["trace", "--url", f"http://127.0.0.1:{gateway.port}"])
        assert "Pass --key KEY, or set TOOLSPEAK_KEY" in capsys.readouterr().err
        assert page(gateway, "--key", "sk-1234567").startswith("No traces yet")


def test_hostile_text_cannot_reach_the_terminal(upstream: ScriptedUpstream) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e hello"
    upstream.answers(answering(Answer(evil)))
    with serving(config_of(towards(upstream))) as gateway:
        gateway.post(QUESTION.path, QUESTION.body)
        assert soon(lambda: bool(gateway.ask("GET", "/traces").json["traces"]), 5)
        told = page(gateway, "last") + page(gateway) + page(gateway, "last", "--as", "json")
    assert not set(told) & set("\x1b\x07\u202e")


@pytest.mark.parametrize("wire", ["openai_chat", "gemini"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_live_asks_the_model_again_under_other_settings(wire: str, *, stream: bool) -> None:
    settings = Settings(mode=Mode.FORCE, dialect="fenced")
    with listening(("m", "large/n")) as upstream, serving(config_of(towards(upstream), settings=settings)) as gateway:
        upstream.answers(answering(Answer("I cannot.")))
        asked = question(wire, stream=stream)
        first = gateway.post(asked.path, asked.body)
        id = first.headers["x-toolspeak-trace"]
        hermes = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
        upstream.answers(answering(Answer(hermes)))
        output = page(gateway, id, "--live", "--dialect", "hermes", "--model", "large/n")
        assert upstream.asked[-1].json["model"] == "large/n"
    then, _, now = output.partition("\nnow ")
    assert "I cannot." in then
    assert 'get_weather(city="Oslo")' in now
    assert "hermes" in now
    assert output.splitlines()[-1] == "another answer"


def test_another_model_is_asked_only_live(gateway: Served, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["trace", "last", "--model", "n", "--url", f"http://127.0.0.1:{gateway.port}"])
    assert "Add --live." in capsys.readouterr().err
