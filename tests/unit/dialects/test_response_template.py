"""Templates that are translated, and those that are refused; the reader of transformers judges in tests/contract."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from testkit.timing import BAR, growth
from toolspeak import dialects
from toolspeak.cli import main
from toolspeak.config.templates import register_template, template_problem
from toolspeak.dialects.core.patterns import UnreadPattern, alternatives
from toolspeak.dialects.response_template import template_dialect
from toolspeak.errors import BadField
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import fold

Template = dict[str, Any]
TOOL = Tool("f", parameters={"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}})
TEMPLATE: Template = {
    "version": 1,
    "start_anchor": "<|bot|>",
    "fields": {
        "thinking": {"open": "<|ponder|>", "close": "<|done|>"},
        "content": {"close": "<|over|>"},
        "tool_calls": {
            "open_pattern": r"<\|act\|>(?P<tool>\w+)<\|with\|>",
            "close": ["<|acted|>", "<|stop|>"],
            "repeats": True,
            "content": "xml-inline",
            "content_args": {"tag_pattern": r'<\|arg name="(?P<key>[^"]+)"\|>(?P<value>.*?)<\|end\|>'},
            "transform": {"type": "function", "function": {"name": "{tool}", "arguments": "{content}"}},
        },
    },
}
CALL = '<|act|>f<|with|><|arg name="k"|>v<|end|><|acted|>'


def changed(**fields: object) -> Template:
    """Return the template with other keys of its calls; None removes one."""
    template = deepcopy(TEMPLATE)
    calls = template["fields"]["tool_calls"]
    for key, value in fields.items():
        calls.pop(key, None)
        if value is not None:
            calls[key] = value
    return template


def read(template: Template, text: str) -> list[tuple[str, Any]]:
    return [
        (call.name, json.loads(call.arguments)) for call in template_dialect(template, "t").read(text, [TOOL]).calls
    ]


# ---------------------------------------------------------------- translated


def test_tags_that_no_dialect_of_ours_has_are_read() -> None:
    text = f'So: {CALL} {CALL.replace("<|acted|>", "<|stop|>")}<|act|>f<|with|><|arg name="n"|>3<|end|><|acted|>'
    assert read(TEMPLATE, text) == [("f", {"k": "v"}), ("f", {"k": "v"}), ("f", {"n": 3})]


def test_markup_of_its_own_in_a_value_is_kept_or_refused_p2() -> None:
    inner = f"a file:\n{CALL}\nits end"
    turn = template_dialect(TEMPLATE, "t").read(f'<|act|>f<|with|><|arg name="k"|>{inner}<|end|><|acted|>', [TOOL])
    assert [json.loads(call.arguments) for call in turn.calls] in ([{"k": inner}], [])
    assert turn.calls or turn.complaints


def test_every_cut_gives_the_same_turn() -> None:
    text = f'<|ponder|>Hm.<|done|>Yes <|arg name="x {CALL} and <|act|> <|arg\n{CALL}<|over|>'
    dialect = template_dialect(TEMPLATE, "t")
    whole = dialect.read(text, [TOOL])
    assert whole.reasoning == "Hm."
    for at in range(len(text)):
        reader = dialect.reader([TOOL])
        assert fold((*reader.feed(text[:at]), *reader.feed(text[at:]), *reader.finish())) == whole


@pytest.mark.parametrize(
    ("function", "body"),
    [
        ("{content}", '{"name": "f", "arguments": {"k": "v"}}'),
        ({"name": "{content.tool}", "arguments": "{content.args}"}, '{"tool": "f", "args": {"k": "v"}}'),
        (
            {"name": "{content.function.name}", "arguments": "{content.function.arguments}"},
            '{"function": {"name": "f", "arguments": {"k": "v"}}}',
        ),
    ],
)
def test_json_is_read_where_the_transform_finds_it(function: object, body: str) -> None:
    template = changed(
        open_pattern=None, open="<|act|>", content="json", content_args=None, transform={"function": function}
    )
    assert read(template, f"<|act|>{body}<|acted|>") == [("f", {"k": "v"})]


HOSTILE = (CALL[:-1], '<|arg name="', "<|act|>f<|with|>", '<|act|>f<|with|><|arg name="k"|>', "<|act|>" + "x" * 100)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_time_is_linear_p8(hostile: str) -> None:
    dialect = template_dialect(TEMPLATE, "t")
    size = 40_000 // len(hostile)
    assert growth(lambda text: dialect.read(text, [TOOL]), hostile * size, hostile * size * 2) < BAR


# ---------------------------------------------------------------- refused

REFUSED: list[tuple[str, str, Template]] = [
    ("", "fields", {"fields": {}}),
    ("", "version", TEMPLATE | {"version": 2}),
    ("", "more", TEMPLATE | {"more": 1}),
    ("", "fields.citations", TEMPLATE | {"fields": TEMPLATE["fields"] | {"citations": {"open": "["}}}),
    ("hide", "fields.thinking", TEMPLATE | {"fields": TEMPLATE["fields"] | {"thinking": {"open": "<|ponder|>"}}}),
    (
        "any text",
        "fields.thinking.open",
        TEMPLATE | {"fields": TEMPLATE["fields"] | {"thinking": {"open": "analysis", "close": "final"}}},
    ),
    ("kv-lines", "fields.tool_calls.content", changed(content="kv-lines")),
    ("no open", "fields.tool_calls", changed(open_pattern=None)),
    ("together", "fields.tool_calls.open", changed(open="x")),
    (
        "any text",
        "fields.tool_calls.open",
        changed(open_pattern=r"call (?P<tool>\w+):", content="json", content_args=None),
    ),
    ("literal", "fields.tool_calls.open_pattern", changed(open_pattern=r"(?P<tool>\w+)\(")),
    ("translate", "fields.tool_calls.open_pattern", changed(open_pattern=r"(<\|act\|>)+(?P<tool>\w+)")),
    ("nothing|transform", "fields.tool_calls.transform", changed(transform=None)),
    (
        "elsewhere",
        "fields.tool_calls.transform",
        changed(transform={"function": {"name": "{tool}", "arguments": "{x}"}}),
    ),
    ("group", "fields.tool_calls.content_args.tag_pattern", changed(content_args={"tag_pattern": r"(?P<key>\w+)="})),
    (
        "keys",
        "fields.tool_calls.transform",
        changed(content="json", transform={"function": {"name": "{content.who}", "arguments": "{content.what}"}}),
    ),
    (
        "string_delims",
        "fields.tool_calls.content_args",
        changed(content="json", content_args={"string_delims": [["«", "»"]]}),
    ),
    (
        "string_delims",
        "fields.tool_calls.content_args",
        changed(content="json", content_args={"unquoted_keys": True, "string_delims": 3}),
    ),
    (
        "describes calls",
        "fields.tool_calls",
        changed(
            open_pattern=r"<\|act\|>do:(?P<tool>\w+)",
            content="json",
            content_args={"unquoted_keys": True, "string_delims": [["<escape>", "<escape>"]]},
        ),
    ),
]


@pytest.mark.parametrize(("words", "field", "template"), REFUSED)
def test_what_cannot_be_translated_is_refused_with_the_field_cap8(words: str, field: str, template: Template) -> None:
    with pytest.raises(BadField) as refused:
        template_dialect(template, "t")
    assert refused.value.field == field
    assert any(word in str(refused.value) for word in words.split("|"))


@pytest.mark.parametrize("template", [None, [], "x", 1, {"fields": []}, {"fields": {"tool_calls": []}}])
def test_what_is_no_template_is_refused(template: Any) -> None:  # noqa: ANN401 -- as JSON may be
    with pytest.raises(BadField):
        template_dialect(template, "t")


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(?:a|a)*b",
        r"(?P<name>(\w+\s?)+)x",
        "a{1,999}",
        "^a",
        r"\bfoo",
        "(?<=a)b",
        "(?!a)b",
        "(a",
        "a)",
        "[a-",
        "\\",
        "a" * 3000,
        "(?:" * 50 + ")" * 50,
        "(?:a|b)?" * 9,
        r"\w+" * 6,
        "(?P<>a)",
        "*",
    ],
)
def test_other_patterns_are_refused_at_once_safe5(pattern: str) -> None:
    with pytest.raises(UnreadPattern):
        alternatives(pattern)


# ---------------------------------------------------------------- the file and the command


def test_a_file_has_the_template_alone_or_among_others_cap8(tmp_path: Path) -> None:
    alone, among = tmp_path / "alone.json", tmp_path / "tokenizer_config.json"
    alone.write_text(json.dumps(TEMPLATE))
    among.write_text(json.dumps({"eos_token": "<|over|>", "response_template": TEMPLATE}))
    name = register_template(str(alone))
    assert register_template(str(among)) == name
    assert dialects.load(name).read(CALL, [TOOL]).calls
    assert name not in dialects.names()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read"),
        ("{", "EOF|end|object"),
        ('{"eos_token": "x"}', "response_template: is missing"),
        ("\xff", ""),
    ],
)
def test_a_file_without_a_template_is_a_problem_of_the_configuration_cap8(
    tmp_path: Path, content: str | None, says: str
) -> None:
    file = tmp_path / "tokenizer_config.json"
    if content is not None:
        file.write_bytes(content.encode("latin-1"))
    problem = template_problem(str(file))
    assert problem is not None
    assert str(file) in problem
    assert any(word in problem for word in says.split("|"))


def test_the_command_prints_what_tokenizer_config_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dialects", "export", "hermes", "--start-anchor", r"<|im_start|>assistant\n"])
    assert ended.value.code in (None, 0)
    template = json.loads(capsys.readouterr().out)["response_template"]
    assert template["start_anchor"] == "<|im_start|>assistant\n"
    assert read(template, '<tool_call>{"name": "f", "arguments": {"k": "v"}}</tool_call>') == [("f", {"k": "v"})]


def test_the_command_says_why_a_dialect_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dialects", "export", "pythonic", "--start-anchor", "x"])
    assert ended.value.code == 2
    assert "no opening mark" in capsys.readouterr().err


def test_the_command_lists_all_dialects(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dialects", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*dialects.names()]
