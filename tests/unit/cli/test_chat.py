"""`toolspeak chat`: text streams as it comes, calls show collapsed (RUN-8), model text cannot steer the terminal."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.scripted_model import Refuses, Says, Scripted, called, text, thought
from toolspeak.cli import main
from toolspeak.cli.chat.conversation import AnswerScreen, call_lines, rejected_lines
from toolspeak.cli.terminal import Paint, visible
from toolspeak.ir.complaint import Complaint, Fix, Problem
from toolspeak.ir.event import CallRejected, TextDelta
from toolspeak.ir.message import Call

NOBODY = "http://127.0.0.1:9/v1"
WEATHER = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
}
OSLO = ("get_weather", '{"city": "Oslo", "days": 3}')
FENCED = 'Let me see.\n```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": "3"}}\n```'


@pytest.fixture
def tools(tmp_path: Path) -> str:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([WEATHER]))
    return str(file)


def status_of(*args: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["chat", *args])
    return ended.value.code


def piped(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(body), encoding="utf-8"))


# ---------------------------------------------------------------- one question


def test_the_answer_goes_to_stdout_and_how_it_was_got_to_stderr(
    upstream: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream.says(text("\n\nIt is ", "noon.\n", "\nReally.", "\n\n"))
    assert status_of("--upstream", upstream.url, "--system", "Be short.", "What time is it?") == 0
    captured = capsys.readouterr()
    assert captured.out == "It is noon.\n\nReally.\n"
    plan, requests, tokens, seconds = captured.err.strip().strip("[]").split(" · ")
    assert (plan, requests, tokens) == ("plain checked", "1 request", "21 tokens in, 13 out")
    assert seconds.endswith(" s")
    assert float(seconds.removesuffix(" s")) >= 0
    (body,) = upstream.bodies
    assert body["model"] == "tiny"
    assert body["stream"] is True
    assert [(one["role"], one["content"]) for one in body["messages"]] == [
        ("system", "Be short."),
        ("user", "What time is it?"),
    ]


def test_the_model_that_is_named_is_asked(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(text("Yes."), text("Yes."))
    assert status_of("--upstream", upstream.url, "--model", "large", "Well?") == 0
    assert status_of("--upstream", upstream.url, "--model", "unlisted", "Well?") == 0
    assert [body["model"] for body in upstream.bodies] == ["large", "unlisted"]
    assert capsys.readouterr().out == "Yes.\nYes.\n"


@pytest.mark.parametrize("args", [(), ("-",)])
def test_what_is_piped_in_is_the_prompt(
    upstream: Scripted, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]
) -> None:
    piped(monkeypatch, "Grüße\n".encode() + b"\xff")
    upstream.says(text("Hello."))
    assert status_of("--upstream", upstream.url, *args) == 0
    assert upstream.bodies[0]["messages"] == [{"role": "user", "content": "Grüße\n\ufffd"}]


def test_an_argument_that_is_no_utf8_is_still_asked(upstream: Scripted) -> None:
    upstream.says(text("Hello."))
    assert status_of("--upstream", upstream.url, "Gr\udcfc\udcdfe") == 0
    assert upstream.bodies[0]["messages"] == [{"role": "user", "content": "Gr\ufffd\ufffde"}]


@pytest.mark.parametrize(
    ("args", "body", "said"),
    [
        (("",), b"", "The prompt is empty. Pass it as an argument, or pipe it in."),
        ((), b" \n", "The prompt is empty. Pass it as an argument, or pipe it in."),
        (
            (),
            b"x" * (16 * 1024 * 1024 + 1),
            "The prompt on standard input is longer than 16777216 bytes, which is the limit. Shorten it.",
        ),
    ],
)
def test_a_prompt_must_be_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], body: bytes, said: str
) -> None:
    piped(monkeypatch, body)
    assert status_of("--upstream", NOBODY, *args) == 2
    assert capsys.readouterr().err == f"toolspeak: {said}\nTry 'toolspeak chat --help'.\n"


def test_reasoning_is_told_apart(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(thought("\nHe asks for the time.\n", "\n\nNoon."), thought("Hm.", "Noon."))
    assert status_of("--upstream", upstream.url, "Time?") == 0
    captured = capsys.readouterr()
    assert captured.out == "Noon.\n"
    assert captured.err.startswith("[reasoning] He asks for the time.\n\n[plain checked")
    assert status_of("--upstream", upstream.url, "--color", "always", "Time?") == 0
    assert capsys.readouterr().err.startswith("\x1b[2mHm.\x1b[0m\n\n")


def test_a_call_is_one_line_and_is_not_run(upstream: Scripted, tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(called(OSLO))
    assert status_of("--upstream", upstream.url, "--tools", tools, "Is it cold in Oslo?") == 0
    captured = capsys.readouterr()
    assert captured.out == '▸ get_weather(city="Oslo", days=3)\n'
    assert captured.err.startswith("[native checked · 1 request · ")
    assert [tool["function"]["name"] for tool in upstream.bodies[0]["tools"]] == ["get_weather"]


def test_an_emulated_call_tells_its_fixes(upstream: Scripted, tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(Refuses(400, "tiny does not support tools"), text(*FENCED))
    assert status_of("--upstream", upstream.url, "--tools", tools, "Is it cold in Oslo?") == 0
    captured = capsys.readouterr()
    assert captured.out == 'Let me see.\n▸ get_weather(city="Oslo", days=3)  1 fix\n'
    assert captured.err.startswith("[native checked, then emulated · 2 requests · ")


def test_expand_shows_arguments_fixes_and_the_text(
    upstream: Scripted, tools: str, capsys: pytest.CaptureFixture[str]
) -> None:
    upstream.says(text(FENCED))
    args = ("--upstream", upstream.url, "--tools", tools, "--mode", "force", "--expand", "Is it cold in Oslo?")
    assert status_of(*args) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:4] == [
        "Let me see.",
        '▸ get_weather(city="Oslo", days=3)  1 fix',
        '    {"city": "Oslo", "days": 3}',
        "    fixed: string to integer /days",
    ]
    assert '"days": "3"' in captured.out, "the model's own text"
    done, why = captured.err.splitlines()
    assert done.startswith("[force inline fenced checked · 1 request · ")
    assert why == "[the mode is force]"


def test_attempts_that_failed_are_counted(upstream: Scripted, tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(called(("get_wether", '{"town": 1}')), called(OSLO))
    assert status_of("--upstream", upstream.url, "--tools", tools, "Is it cold in Oslo?") == 0
    captured = capsys.readouterr()
    assert captured.out == '▸ get_weather(city="Oslo", days=3)\n'
    assert "2 requests · 1 complaint · " in captured.err


def test_expand_shows_the_text_of_complaints(
    upstream: Scripted, tools: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a call that the model has mended since: no event of the answer shows it."""
    upstream.says(called(("get_wether", '{"town": 1}')), called(OSLO))
    assert status_of("--upstream", upstream.url, "--tools", tools, "--expand", "Is it cold in Oslo?") == 0
    assert "get_wether  unknown tool: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("reason", "said"),
    [("length", "cut off: the answer reached the token limit"), ("content_filter", "cut off by a content filter")],
)
def test_an_answer_that_is_cut_says_so(
    upstream: Scripted, capsys: pytest.CaptureFixture[str], reason: str, said: str
) -> None:
    upstream.says(text("Once upon", reason=reason))
    assert status_of("--upstream", upstream.url, "Tell!") == 0
    assert capsys.readouterr().err.startswith(said)


# ---------------------------------------------------------------- safety


def test_model_text_cannot_write_to_the_terminal(
    upstream: Scripted, tools: str, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]52;c;AAAA\x07 \x9b2J \u202e"
    upstream.says(
        Says([{"reasoning_content": evil}, *({"content": char} for char in evil)]),
        called(("get_weather", json.dumps({"city": evil}))),
    )
    for _ in range(2):
        assert status_of("--upstream", upstream.url, "--tools", tools, "--color", "never", "--expand", "Hi") == 0
        captured = capsys.readouterr()
        both = captured.out + captured.err
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(both)
        assert "\\x1b" in captured.out or "\\u001b" in captured.out


@given(st.lists(st.text(st.sampled_from("a \n\t\x1b[3m\x9b\u202e\u200d東"), max_size=6)))
def test_chunk_borders_do_not_change_what_is_seen(pieces: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        shown = io.StringIO()
        patch.setattr("sys.stdout", shown)
        screen = AnswerScreen(Paint(), expand=False)
        for piece in pieces:
            screen.feed(TextDelta(piece))
        screen.finish()
    expected = visible("".join(pieces)).strip("\n")
    assert shown.getvalue() == (expected + "\n" if expected else "")


@pytest.mark.parametrize("arguments", ["[1, 2]", "{broken\n", '"text"'])
def test_arguments_that_are_no_object_are_shown_as_they_are(arguments: str) -> None:
    """With the mode `off` nothing is checked."""
    (line,) = call_lines(Call("1", "f", arguments), Paint(), expand=False)
    assert line == f"▸ f({arguments.strip()}{' ' if arguments.endswith(chr(10)) else ''})"


def test_a_long_call_fits_its_line() -> None:
    call = Call("1", "f", json.dumps({"a": "東京" * 100}), fixes=(Fix("x"), Fix("y")))
    (line,) = call_lines(call, Paint(width=40), expand=False)
    assert line.endswith("…)  2 fixes")
    assert 38 <= len(line) + line.count("東") + line.count("京") <= 40


def test_a_rejected_call_says_why() -> None:
    event = CallRejected(Complaint(Problem.UNKNOWN_TOOL, "get_\nwether", "no such tool"), "raw\x1b")
    assert list(rejected_lines(event, Paint(), expand=False)) == ["✗ get_ wether  unknown tool"]
    assert list(rejected_lines(event, Paint(), expand=True))[1:] == ["    no such tool", "    raw\\x1b"]


def test_a_terminal_without_the_signs_gets_others(
    upstream: Scripted, tools: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.says(called(OSLO))
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stdout)
    assert status_of("--upstream", upstream.url, "--tools", tools, "Hi") == 0
    assert stdout.buffer.getvalue() == b'> get_weather(city="Oslo", days=3)\n'


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (401, "wrong\nkey", "TOOLSPEAK_UPSTREAM_KEY"),
        (404, "no such model", "`toolspeak models` lists the models"),
        (400, "maximum context length is 10 tokens", "start a new conversation"),
    ],
)
def test_a_failure_is_one_line_with_a_hint(
    upstream: Scripted, capsys: pytest.CaptureFixture[str], status: int, message: str, hint: str
) -> None:
    upstream.says(Refuses(status, message))
    assert status_of("--upstream", upstream.url, "Hi") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("toolspeak: ")
    assert captured.err.count("\n") == 1
    assert message.replace("\n", " ") in captured.err
    assert hint in captured.err


def test_no_server_is_one_line_with_a_hint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "test.toml"
    file.write_text(f'[upstreams.dead]\nurl = "{NOBODY}"\nretries = 0\n')
    assert status_of("--config", str(file), "Hi") == 2
    said = capsys.readouterr().err
    assert said.startswith("toolspeak: no connection to the upstream at 127.0.0.1:9")
    assert said.endswith("(is the server running, and is its URL right?)\n")


def test_tools_that_cannot_be_read_name_their_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tools.json"
    file.write_text("{}")
    assert status_of("--upstream", NOBODY, "--tools", str(file), "Hi") == 2
    assert capsys.readouterr().err.startswith(f"toolspeak: {file}: ")


# ---------------------------------------------------------------- JSON


def test_programs_get_json(upstream: Scripted, tools: str, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(Says([{"reasoning_content": "Hm \u202e."}, *called(OSLO).deltas], "tool_calls"))
    assert status_of("--upstream", upstream.url, "--tools", tools, "--json", "Is it cold in Oslo?") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "\u202e" not in captured.out
    found: dict[str, Any] = json.loads(captured.out)
    assert found.pop("seconds") >= 0
    assert found == {
        "text": "",
        "reasoning": "Hm \u202e.",
        "calls": [
            {
                "id": "call_0",
                "name": "get_weather",
                "arguments": {"city": "Oslo", "days": 3},
                "fixes": [],
                "raw": "",
            }
        ],
        "complaints": [],
        "stop": "calls",
        "plan": "native checked: nothing is known: native first, emulated if that is refused",
        "warnings": [],
        "requests": 1,
        "input_tokens": 61,
        "output_tokens": 13,
    }


def test_json_fails_like_text(upstream: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    upstream.says(Refuses(401, "no key"))
    assert status_of("--upstream", upstream.url, "--json", "Hi") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "TOOLSPEAK_UPSTREAM_KEY" in captured.err
