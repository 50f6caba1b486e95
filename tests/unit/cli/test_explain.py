"""`toolspeak explain`: every character is labelled (P1), and people get something useful without any option."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from testkit.golden import BY_SAMPLE, CASES
from toolspeak import Tool
from toolspeak.cli import main
from toolspeak.cli.explain import LARGEST, explain
from toolspeak.cli.explain.explanation import Explanation, SpanKind, as_json_text, as_lines, explain_text
from toolspeak.cli.output import indented
from toolspeak.cli.terminal import Paint
from toolspeak.errors import BadRequest, ToolspeakError

TOOLS_ROW, *SAMPLES = [json.loads(line) for line in (CASES / "samples.jsonl").read_text("utf-8").splitlines()]
TOOLS = [Tool(**tool) for tool in TOOLS_ROW["tools"]]
NO_NAME = "BAD-M16-kimi-counter"
"""The only sample that does not say which tool it calls."""

EVERYTHING = (
    "<think>Look it up.</think>\nChecking.\n"
    '<tool_call>{"name": "functions.find_bus", "arguments": {"stop": "Oslo S", "limit": "2",}}</tool_call>\n'
    '<tool_call>{"name": "find_train", "arguments": {}}</tool_call>'
    "<tool_response>It is noon.\x1b[31m</tool_response>"
)


def run(text: str | bytes, *args: str) -> Result:
    return CliRunner().invoke(explain, args, input=text, catch_exceptions=False)


def said(text: str | bytes, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(text, "--json", *args).stdout)
    return found


@pytest.fixture
def tools_file(tmp_path: Path) -> str:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS_ROW))
    return str(file)


# for people


def test_the_text_comes_again_with_labels_then_calls_complaints_and_one_line_p1(tools_file: str) -> None:
    result = run(EVERYTHING, "--tools", tools_file)
    assert result.exit_code == 0
    assert result.stdout == (
        "    [debris] | <think>\n"
        " [reasoning] | Look it up.\n"
        "    [debris] | </think>\n"
        "      [text] | Checking.\n"
        '    [call 1] | <tool_call>{"name": "functions.find_bus", "arguments": {"stop": "Oslo S", "limit": "2",}}\n'
        "    [debris] | </tool_call>\n"
        ' [invalid 1] | <tool_call>{"name": "find_train", "arguments": {}}\n'
        "    [debris] | </tool_call>\n"
        "    [forged] | <tool_response>It is noon.\\x1b[31m</tool_response>\n"
        "\n"
        "               text: the answer   reasoning: the model's reasoning   call: a valid call\n"
        "               invalid: a rejected call   debris: leftover markup, dropped\n"
        "               forged: a tool result that the model invented, dropped\n"
        "\n"
        '    [call 1]   find_bus {"stop": "Oslo S", "limit": 2}\n'
        "               fixed: trailing comma at /arguments\n"
        "               fixed: name: namespace stripped\n"
        "               fixed: string to integer at /limit\n"
        " [invalid 1]   find_train is not one of the tools\n"
        "               available tools: find_bus, now, write_note\n"
        "\n"
        "1 call, 3 fixes, 1 complaint; no byte lost\n"
    )


def test_colours_take_the_place_of_brackets() -> None:
    shown = run("Hello.", "--color", "always").stdout
    assert "\x1b[1m        text\x1b[0m \x1b[2m│\x1b[0m Hello." in shown
    assert "[text]" not in shown


def test_with_colours_the_only_escapes_are_ours() -> None:
    shown = run(EVERYTHING, "--color", "always").stdout
    assert "\x1b[32m<tool_call>" in shown
    assert "\\x1b[31m" in shown
    assert "\x1b[31m" not in shown


def test_a_line_wraps_inside_its_margin_on_a_terminal() -> None:
    found = explain_text("0123456789" * 5, (), "any")
    rows = [line for line in as_lines(found, Paint(width=35)) if "|" in line]
    assert rows == [
        "      [text] | 01234567890123456789",
        "             | 01234567890123456789",
        "             | 0123456789",
    ]


def test_blanks_alone_are_shown_by_signs() -> None:
    assert "[text] |  ·" not in run(" \n\t").stdout
    assert "[text] | ·↵→" in run(" \n\t").stdout


def test_several_calls_out_of_one_text_are_told() -> None:
    lines = run('{"tools": [{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]}').stdout.splitlines()
    assert lines[1] == "    [call 2] | (in the text above)"


def test_an_empty_text_is_one_line() -> None:
    assert run("").stdout == "no calls, no fixes, no complaints; no byte lost\n"


def test_long_arguments_are_spread_over_lines_and_keep_their_numbers() -> None:
    text = '{"a":1.50,"b":{"c":[1,2,{"d":"x, y: {z}"}],"e":{}},"f":[]}'
    assert list(indented(text, 200)) == ['{"a": 1.50, "b": {"c": [1, 2, {"d": "x, y: {z}"}], "e": {}}, "f": []}']
    assert list(indented(text, 30)) == [
        "{",
        '  "a": 1.50,',
        '  "b": {',
        '    "c": [',
        "      1,",
        "      2,",
        '      {"d": "x, y: {z}"}',
        "    ],",
        '    "e": {}',
        "  },",
        '  "f": []',
        "}",
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.integers(0, 60))
def test_spread_arguments_are_the_same_value(value: object, width: int) -> None:
    assert json.loads("\n".join(indented(json.dumps(value), width))) == value


# for programs


def test_json_says_the_same_p1(tools_file: str) -> None:
    found = said(EVERYTHING, "--tools", tools_file)
    assert found["summary"] == "1 call, 3 fixes, 1 complaint; no byte lost"
    assert "".join(span["text"] for span in found["spans"]) == EVERYTHING
    assert all(EVERYTHING[span["start"] : span["end"]] == span["text"] for span in found["spans"])
    assert found["calls"] == [
        {
            "name": "find_bus",
            "arguments": {"stop": "Oslo S", "limit": 2},
            "fixes": [
                {"what": "trailing comma", "path": "/arguments"},
                {"what": "name: namespace stripped", "path": ""},
                {"what": "string to integer", "path": "/limit"},
            ],
        }
    ]
    assert found["complaints"] == [
        {"problem": "unknown_tool", "name": "find_train", "detail": "available tools: find_bus, now, write_note"}
    ]
    assert [span["index"] for span in found["spans"] if span["kind"] in ("call", "invalid")] == [0, 0]
    assert found["tools"] == ["find_bus", "now", "write_note"]
    assert found["tools_guessed"] is False


def test_json_is_safe_to_print_and_readable() -> None:
    shown = run("日本 \x1b \x9b \u202e \U000e0041", "--json").stdout
    assert "日本 \\u001b \\u009b \\u202e \\udb40\\udc41" in shown


def test_bytes_that_are_no_text_are_kept_p1() -> None:
    body = b'\xff <tool_call>{"name": "f", "arguments": {}}</tool_call>\xc3'
    found = said(body)
    assert "".join(span["text"] for span in found["spans"]).encode("utf-8", "surrogateescape") == body
    assert [call["name"] for call in found["calls"]] == ["f"]
    assert "\\udcff" in run(body).stdout


# without tools


@pytest.mark.parametrize("row", SAMPLES, ids=lambda row: str(row["dialect"]))
def test_without_options_every_sample_is_understood_or_its_dialect_is_named(row: dict[str, Any]) -> None:
    found = explain_text(row["text"], (), "any", chunk=3)
    wanted = [call["name"] for call in row["calls"]]
    if row["dialect"] == NO_NAME:
        assert [complaint.name for complaint in found.complaints] == [None]
    elif [call.name for call in found.calls] != wanted:
        own = next(name for key, name in BY_SAMPLE.items() if row["dialect"].startswith(key))
        assert own in found.better
        found = explain_text(row["text"], (), own)
        assert [call.name for call in found.calls] == wanted
    assert found.sound


@pytest.mark.parametrize("row", SAMPLES, ids=lambda row: str(row["dialect"]))
def test_with_tools_the_calls_are_those_of_the_sample(row: dict[str, Any]) -> None:
    own = next((name for key, name in BY_SAMPLE.items() if row["dialect"].startswith(key)), "any")
    found = explain_text(row["text"], TOOLS, own, chunk=2)
    assert found.sound
    assert [{"name": call["name"], "arguments": call["arguments"]} for call in object_of(found)["calls"]] == [
        {"name": call["name"], "arguments": call["arguments"]} for call in row["calls"]
    ]


def object_of(found: Explanation) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(as_json_text(found))
    return said


def test_a_guess_is_called_one() -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert "Guessed tools: f. Pass --tools FILE to check the arguments." in run(text).stdout
    assert said(text)["tools_guessed"] is True
    assert "guessed" not in run(text, "--tool", "f").stdout


def test_what_is_available_is_not_said_where_nobody_knows() -> None:
    shown = run('<|tool_call_begin|>3<|tool_call_argument_begin|>{"a": 2}<|tool_call_end|>').stdout
    assert "a call without a name cannot be parsed" in shown
    assert "available tools" not in shown
    assert "The tools are unknown. Pass --tools FILE or --tool NAME." in shown


@pytest.mark.parametrize(
    "text",
    [
        "Just words, and f(x) = 3.",
        '{"weather": {"city": "Oslo"}}',
        '```json\n{"user": {"id": 3}}\n```',
        'print("hello")',
        'Write `<tool_call>{"name": "f"}</tool_call>` like this.',
    ],
)
def test_no_call_is_guessed_where_an_answer_is_as_likely_p5(text: str) -> None:
    assert explain_text(text, (), "any").calls == ()


def test_another_dialect_is_suggested_where_this_one_finds_nothing() -> None:
    text = 'Action: search\nAction Input: {"query": "x"}\n'
    assert "This dialect finds no calls. Try --dialect langchain or --dialect react." in run(text).stdout
    assert "1 call," in run(text, "--dialect", "react").stdout
    assert "This dialect finds no calls. Try --dialect any." in run("[TOOL_CALLS]f[ARGS]{}", "--dialect", "glm").stdout


# tools


FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}


@pytest.mark.parametrize(
    "body",
    [
        [FUNCTION],
        FUNCTION,
        {"model": "m", "tools": [FUNCTION]},
        [{"type": "function", **FUNCTION}],
        [{"type": "function", "function": FUNCTION}],
        [{"name": "f", "input_schema": FUNCTION["parameters"]}],
        {"tools": [{"name": "f", "inputSchema": FUNCTION["parameters"]}]},
        [
            {
                "functionDeclarations": [
                    {**FUNCTION, "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}}}
                ]
            }
        ],
        [{"function_declarations": [{"name": "f", "parametersJsonSchema": FUNCTION["parameters"]}]}],
    ],
    ids=["array", "one", "request", "responses", "chat", "anthropic", "mcp", "gemini", "gemini, snake case"],
)
def test_tools_come_in_any_vendors_form(body: object, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(body))
    found = said('<tool_call>{"name": "f", "arguments": {"n": "4"}}</tool_call>', "--tools", str(file))
    assert found["tools"] == ["f"]
    assert found["calls"][0]["arguments"] == {"n": 4}


def test_tools_may_be_names_only(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text('["f", "g"]')
    found = said('<tool_call>{"name": "h", "arguments": {}}</tool_call>', "--tools", str(file), "--tool", "i")
    assert found["complaints"][0]["detail"] == "available tools: f, g, i"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "EOF while parsing"),
        ("3", "the file contains no tools; write an array of tools"),
        ("[]", "the file contains no tools"),
        ("[3]", "3 is not a tool"),
        ('[{"parameters": {}}]', r"tools\[0\].name: is required"),
    ],
)
def test_a_file_without_tools_is_named_in_the_error(body: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(body)
    with pytest.raises(BadRequest, match=f"tools.json: .*{problem}"):
        run("", "--tools", str(file))


def test_a_name_that_no_tool_can_have_is_an_error() -> None:
    with pytest.raises(ToolspeakError, match="'not a name' is not accepted"):
        run("", "--tool", "not a name")


# limits and chunks


def test_chunks_are_checked_against_the_whole() -> None:
    assert run(EVERYTHING, "--chunk", "1").stdout.endswith("; no byte lost, the same in chunks of 1 character\n")
    assert said(EVERYTHING, "--chunk", "4")["same_in_chunks"] is True
    assert said(EVERYTHING)["same_in_chunks"] is None


def test_what_a_reader_must_never_do_would_be_told() -> None:
    sound = explain_text(EVERYTHING, TOOLS, "any", 5)
    lost = Explanation(EVERYTHING + "!", "any", sound.tools, guessed=False, turn=sound.turn)
    assert not lost.sound
    assert lost.summary.endswith("BYTES LOST (a bug in toolspeak: please report it)")
    other = Explanation(EVERYTHING, "any", sound.tools, guessed=False, turn=sound.turn, chunk=5, same_in_chunks=False)
    assert not other.sound
    assert other.summary.endswith(
        "no byte lost, DIFFERENT (a bug in toolspeak: please report it) in chunks of 5 characters"
    )


def test_a_text_over_the_limit_is_refused_p7() -> None:
    with pytest.raises(BadRequest, match=f"longer than {LARGEST} bytes"):
        run(b" " * (LARGEST + 1))


def test_every_place_of_a_character_has_a_label_p1() -> None:
    calls = '<tool_call>{"name": "f", "arguments": {}}</tool_call>' * 130
    kinds = {span.kind for span in explain_text(EVERYTHING, TOOLS, "any").spans}
    assert kinds | {span.kind for span in explain_text(calls, (), "any").spans} == set(SpanKind)


PIECES = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<think>", "</think>", "<tool_response>", "<f>", "</f>", "```json\n", "```"),
        *('{"name": "f", "arguments": {}}', '{"f": {}}', "[f(a=1)]", "Action: f\n", "functions.f", "word"),
        *("\n", " ", "\x1b[0m", "\udc80"),
    ]
)


@settings(max_examples=100)
@given(
    st.lists(PIECES, max_size=12).map("".join), st.integers(1, 9), st.sampled_from(["any", "hermes", "react", "cline"])
)
def test_whatever_comes_is_explained_without_loss_p1(text: str, chunk: int, dialect: str) -> None:
    found = explain_text(text, (), dialect, chunk)
    assert found.sound
    assert "".join(span["text"] for span in object_of(found)["spans"]) == text
    assert all(char.isprintable() for line in as_lines(found, Paint()) for char in line)


def test_a_call_in_a_code_block_after_text_is_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`Sure!` and a fenced JSON call: no call is right, and the user is told why."""
    file = tmp_path / "output.txt"
    file.write_text('Sure!\n```json\n{"name": "weather", "arguments": {"city": "Oslo"}}\n```\n')
    with pytest.raises(SystemExit):
        main(["explain", "--tool", "weather", str(file)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "A code block reads as a call of weather, and there is text beside it" in shown
    assert "no calls, no fixes, no complaints" in shown


def test_a_code_block_that_calls_nothing_has_no_note(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "output.txt"
    file.write_text('Here:\n```json\n{"port": 8080}\n```\n')
    with pytest.raises(SystemExit):
        main(["explain", "--tool", "weather", str(file)])
    assert "code block" not in capsys.readouterr().out


def test_tools_that_are_no_json_say_what_is_accepted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("remember the milk")
    with pytest.raises(SystemExit):
        main(["explain", "--tools", str(tmp_path / "notes.txt"), str(tmp_path / "notes.txt")])
    assert "notes.txt: is not JSON (" in (said := capsys.readouterr().err)
    assert "; write an array of tools, an object with `tools`, or an array of names" in said
