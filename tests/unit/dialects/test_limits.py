"""Everything that is held has a limit, tested one below it, at it and one above it, whole and by characters (P7)."""

from collections.abc import Callable

import pytest

from toolspeak.dialects import ReadOptions, load, names
from toolspeak.dialects.core.named_json import MAX_HEADER
from toolspeak.dialects.core.wrapper import WrapperBlock
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import Event, Why, raw_of
from toolspeak.ir.json import JsonObject
from toolspeak.ir.tool import Tool, ToolChoice
from toolspeak.ir.turn import Turn, fold
from toolspeak.text.jsonspan import MAX_BLANKS, MAX_DEPTH
from toolspeak.text.strict import parse

ANY: JsonObject = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
TOOLS = (Tool("now", "", {"type": "object", "properties": {}}), Tool("f", "", ANY))
DEFAULT = ReadOptions()
JSON = '{"name": "now", "arguments": {}}'
NOW = f"<tool_call>{JSON}</tool_call>"
AROUND = [-1, 0, 1]
"""One below the limit, at it, one above it."""


def read(text: str, dialect: str = "hermes", options: ReadOptions = DEFAULT) -> Turn:
    """Read a text whole and by characters: the result is the same, and no byte is lost (P1)."""
    turns: list[Turn] = []
    for pieces in ((text,), tuple(text), tuple(text[start : start + 7] for start in range(0, len(text), 7))):
        reader = load(dialect).reader(TOOLS, options=options)
        events: list[Event] = [event for piece in pieces for event in reader.feed(piece)] + reader.finish()
        assert "".join(map(raw_of, events)) == text
        turns.append(fold(events))
    assert turns[0] == turns[1] == turns[2]
    return turns[0]


def cut(text: str, dialect: str = "hermes", options: ReadOptions = DEFAULT) -> Why | None:
    """Tell why the reader of a text reads no more."""
    reader = load(dialect).reader(TOOLS, options=options)
    reader.feed(text)
    return reader.cut


# the number of calls

CALLS: dict[str, tuple[str, Callable[[int], str]]] = {
    "blocks": ("hermes", lambda count: NOW * count),
    "blocks on lines": ("hermes", lambda count: f"{NOW}\n" * count),
    "bodies in one block": ("hermes", lambda count: f"<tool_call>{JSON * count}</tool_call>"),
    "an array": ("hermes", lambda count: f"<tool_call>[{', '.join([JSON] * count)}]</tool_call>"),
    "bare objects": ("hermes", lambda count: "\n".join([JSON] * count)),
    "a bare array": ("llama_json", lambda count: f"[{', '.join([JSON] * count)}]"),
    "a Python list": ("pythonic", lambda count: f"[{', '.join(['now()'] * count)}]"),
    "an unclosed thought": ("hermes", lambda count: "<think>" + NOW * count),
    "tags": ("qwen_xml", lambda count: "<function=now></function>\n" * count),
    "sections": ("mistral", lambda count: "[TOOL_CALLS]now[ARGS]{}" * count),
    "a fence": ("fenced", lambda count: f"```tool_call\n{JSON}\n```\n" * count),
}


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("form", CALLS)
def test_the_number_of_calls_has_a_limit_p7(form: str, more: int) -> None:
    dialect, write = CALLS[form]
    options = ReadOptions(max_calls=4)
    assert len(read(write(4 + more), dialect, options).calls) == min(4, 4 + more)
    assert cut(write(4 + more), dialect, options) is (Why.LIMIT if more > 0 else None)


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("form", CALLS)
def test_without_parallel_calls_the_limit_is_one_p7(form: str, more: int) -> None:
    dialect, write = CALLS[form]
    turn = read(write(1 + more), dialect, ReadOptions(ToolChoice(parallel=False)))
    assert len(turn.calls) == min(1, 1 + more)


@pytest.mark.parametrize("more", AROUND)
def test_the_default_is_128_calls_p7(more: int) -> None:
    assert len(read(NOW * (128 + more)).calls) == min(128, 128 + more)


# the length of a block

BLOCKS: dict[str, tuple[str, Callable[[str], str]]] = {
    "JSON": ("hermes", lambda text: f'<tool_call>{{"name": "f", "arguments": {{"a": "{text}"}}}}'),
    "a broken JSON": ("hermes", lambda text: f'<tool_call>{{"name": "f", "arguments" {{"a": "{text}'),
    "a header and JSON": ("mistral", lambda text: f'[TOOL_CALLS]f[ARGS]{{"a": "{text}"}}'),
    "tags": ("qwen_xml", lambda text: f"<function=f><parameter=a>{text}</parameter></function>"),
    "pairs": ("glm", lambda text: f"<tool_call>f<arg_key>a</arg_key><arg_value>{text}</arg_value>"),
    "Python": ("lfm2", lambda text: f"<|tool_call_start|>[f(a='{text}')]"),
    "quote tokens": ("gemma", lambda text: f'<|tool_call>call:f{{a:<|"|>{text}<|"|>}}'),
    "a channel": ("harmony", lambda text: f'<|channel|>commentary to=f<|message|>{{"a": "{text}"}}'),
    "labels": ("react", lambda text: f'Action: f\nAction Input: {{"a": "{text}"}}'),
}


@pytest.mark.parametrize("form", BLOCKS)
def test_the_length_of_a_block_has_a_limit_p7(form: str) -> None:
    dialect, write = BLOCKS[form]
    for length in (200, 1_000):
        text, options = write("x" * length) + " and more", ReadOptions(max_block=500)
        within = len(text) < 500
        assert (cut(text, dialect, options) is Why.LIMIT) is not within
        assert read(text, dialect, options).calls == () or within


@pytest.mark.parametrize("more", AROUND)
def test_a_block_that_does_not_end_is_cut_at_its_limit_p7(more: int) -> None:
    text = ('<tool_call>{"name": "f", "arguments": {"a": "' + "x" * 200)[: 100 + more]
    options = ReadOptions(max_block=100)
    assert [complaint.problem for complaint in read(text, options=options).complaints] == [Problem.TRUNCATED]
    assert cut(text, options=options) is (Why.LIMIT if more > 0 else None)


@pytest.mark.parametrize("more", AROUND)
def test_a_whole_call_obeys_the_limit_as_a_streamed_one_p7(more: int) -> None:
    call = f"<tool_call>{JSON}"
    turn = read(f"{call}</tool_call>", options=ReadOptions(max_block=len(call) - more))
    assert (len(turn.calls) == 1) is (more <= 0)


@pytest.mark.parametrize("more", AROUND)
def test_what_waits_for_the_end_has_a_limit_p7(more: int) -> None:
    turn = read("<think>" + NOW * 4, options=ReadOptions(max_block=4 * len(NOW) - more))
    assert len(turn.calls) in ((0,) if more > 0 else (4,))


# blanks


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("blank", [" ", "\n", "\t"])
def test_blanks_in_a_calls_json_have_a_limit_p7(blank: str, more: int) -> None:
    text = f'<tool_call>{{"name": "now",{blank * (MAX_BLANKS + more)}"arguments": {{}}}}</tool_call>'
    assert len(read(text).calls) == (more <= 0)
    assert cut(text) is (Why.LIMIT if more > 0 else None)


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("bodies", [0, 1])
def test_blanks_between_bodies_have_a_limit_p7(bodies: int, more: int) -> None:
    turn = read(f"<tool_call>{JSON * bodies}{' ' * (MAX_BLANKS + more)}{JSON}</tool_call>")
    assert len(turn.calls) == bodies + (more <= 0)


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize("before", ["", NOW])
def test_blanks_before_text_are_held_up_to_a_limit_p7(before: str, more: int) -> None:
    reader = load("hermes").reader(TOOLS)
    reader.feed(before)
    shown = sum(len(raw_of(event)) for _ in range(MAX_BLANKS + more) for event in reader.feed(" "))
    assert shown == (MAX_BLANKS + more if more > 0 else 0)
    read(before + " " * (MAX_BLANKS + more) + "text")
    read(before + " " * (MAX_BLANKS + more) + NOW)


@pytest.mark.parametrize("more", AROUND)
@pytest.mark.parametrize(
    ("dialect", "before", "after"),
    [
        ("hermes", "[", '{"name": "now", "arguments": {}}]'),
        ("hermes", "<tool_call>[", '{"name": "now", "arguments": {}}]</tool_call>'),
        ("pythonic", "[", "now()]"),
        ("qwen_xml", "<function=f>{}", "</function>"),
        ("qwen_xml", "<function=f><parameter=a>x</parameter>", "</function>"),
        ("harmony", "<|channel|>commentary to=functions.now<|message|>{}", "<|call|>"),
        ("react", "Action: now\nAction Input:", "{}\n"),
        ("glm", "<tool_call>f<arg_key>a</arg_key>", "<arg_value>x</arg_value></tool_call>"),
    ],
)
def test_blanks_where_a_grammar_allows_them_are_read_alike_in_every_cut_p7(
    dialect: str, before: str, after: str, more: int
) -> None:
    read(before + " " * (MAX_BLANKS + more) + after, dialect)


# depth


NESTED = {
    "hermes": ('<tool_call>{"name": "f", "arguments": {"a": ', "}}</tool_call>"),
    "mistral": ('[TOOL_CALLS]f[ARGS]{"a": ', "}"),
    "lfm2": ("<|tool_call_start|>[f(a=", ")]<|tool_call_end|>"),
    "pythonic": ("[f(a=", ")]"),
    "gemma": ("<|tool_call>call:f{a:", "}<tool_call|>"),
    "qwen_xml": ("<function=f><parameter=a>", "</parameter></function>"),
    "glm": ("<tool_call>f<arg_key>a</arg_key><arg_value>", "</arg_value></tool_call>"),
    "harmony": ('<|channel|>commentary to=f<|message|>{"a": ', "}<|call|>"),
    "react": ('Action: f\nAction Input: {"a": ', "}\n"),
}


def arguments_at(depth: int, dialect: str) -> str | None:
    """Read a call whose argument is nested so deep that the arguments have this depth; None if it is refused."""
    before, after = NESTED[dialect]
    turn = read(before + "[" * (depth - 1) + "]" * (depth - 1) + after, dialect)
    return turn.calls[0].arguments if turn.calls else None


@pytest.mark.parametrize("depth", [MAX_DEPTH - 2, MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2])
@pytest.mark.parametrize("dialect", NESTED)
def test_nesting_has_a_limit_and_what_is_delivered_can_be_read_p7(dialect: str, depth: int) -> None:
    arguments = arguments_at(depth, dialect)
    assert arguments is None or parse(arguments)
    if depth < MAX_DEPTH:
        assert arguments is not None


@pytest.mark.parametrize("dialect", ["hermes", "pythonic", "gemma", "qwen_xml", "any"])
@pytest.mark.parametrize("piece", ["[", '{"a":', "(", "-", "[now(", "f(a=[", "<|tool_call>call:f{a:"])
def test_depth_without_end_is_no_call_and_no_error_p7(dialect: str, piece: str) -> None:
    assert read(piece * 3_000, dialect).calls == ()


# names, headers, tags


@pytest.mark.parametrize("more", AROUND)
def test_a_header_has_a_limit_p7(more: int) -> None:
    header = "now" + " " * (MAX_HEADER - 3 + more)
    turn = read(f"[TOOL_CALLS]{header}{{}}", "mistral")
    assert len(turn.calls) == (more <= 0)


@pytest.mark.parametrize("length", [100, 127, 128, 129, 255, 256, 257, 300, 301, 511, 512, 513, 600, 3_000])
@pytest.mark.parametrize(
    ("dialect", "write"),
    [
        ("qwen_xml", "<tool_call><function={}></function></tool_call>"),
        ("qwen_xml", "<tool_call><function=f><parameter={}>x</parameter></function></tool_call>"),
        ("qwen_xml", "<tool_call><function=f><parameter=a><{}></parameter></function></tool_call>"),
        ("invoke_xml", '<invoke name="f"><parameter name="a" {}="">x</parameter></invoke>'),
        ("glm", "<tool_call>{}</tool_call>"),
        ("glm", "<tool_call>f<arg_key>{}</arg_key><arg_value>x</arg_value></tool_call>"),
        ("kimi", "<|tool_call_begin|>{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"),
        ("kimi_k3", '<|open|>tools<|sep|><|open|>call tool="{}"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'),
        ("mistral", "[TOOL_CALLS]{}[ARGS]{{}}"),
        ("mistral", "[TOOL_CALLS]{} <function=now></function>"),
        ("harmony", "<|channel|>{}<|message|>text<|end|>"),
        ("harmony", "<|channel|>{}<|channel|>commentary to=now<|message|>{{}}<|call|>"),
        ("muse", "to={}<|message|>text"),
        ("react", "Action: {}\nAction Input: {{}}\n"),
        ("pythonic", "[{}(a=1)]"),
        ("gemma", "<|tool_call>call:{}{{}}<tool_call|>"),
        ("gemma", "<|tool_call>call:f{{{}:1}}<tool_call|>"),
        ("functionary", ">>>{}\n{{}}"),
        ("fenced", "```{}\ntext\n```\n"),
        ("hermes", "`{}` text"),
    ],
)
def test_long_names_are_read_alike_in_every_cut_p7(dialect: str, write: str, length: int) -> None:
    read(write.format("x" * length), dialect)


@pytest.mark.parametrize("length", [3, 40, 41, 42, 128, 129, 3_000])
@pytest.mark.parametrize("piece", ["`", "~", "</", "<", "> ", "\n```", "    ", "\t"])
def test_runs_of_one_kind_are_read_alike_in_every_cut_p7(piece: str, length: int) -> None:
    for before in ("", "a", f"{NOW}\n"):
        read(f"{before}{piece * length} text\n{NOW}")


# at rest


def held(dialect: str, text: str, size: int) -> int:
    """Feed a text in chunks; return the most that the reader ever held."""
    reader, most = load(dialect).reader(TOOLS), 0
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
        most = max(most, len(reader._cursor.window))
    return most


def longest_marker(dialect: str) -> int:
    """Return the length of the longest literal of a dialect."""
    grammar = load(dialect).grammar
    wrappers = [literal for wrapper in grammar.wrappers for literal in (*wrapper.openers, *wrapper.closers)]
    marks = [literal for mark in grammar.reasoning for literal in (mark.opener, *mark.closers, *mark.stops)]
    others = [label.literal for label in (*grammar.labels, *grammar.specials)]
    return max(map(len, [*wrappers, *marks, *others, *grammar.closers, *grammar.results, *grammar.result_lines]))


@pytest.mark.parametrize("dialect", names())
def test_in_plain_text_a_reader_holds_less_than_a_marker_p7(dialect: str) -> None:
    prose = "Words, 1 < 2, <b>bold</b>, `code` and {more} of it; a [link](x) (and so on).\n\n- next: line\n> quoted\n"
    for size in (1, 4, 64):
        assert held(dialect, prose * 40, size) <= longest_marker(dialect)


@pytest.mark.parametrize("piece", ["`", "~", "[ ", "[", " ", "\n", "<", "</a", "{", "a", "> ", "``` ", '"', "-"])
@pytest.mark.parametrize("before", ["", "a ", "[", f"{NOW}\n", "```\n"])
def test_no_flood_makes_a_reader_hold_more_than_its_limits_p7(before: str, piece: str) -> None:
    for dialect in ("hermes", "pythonic", "any"):
        assert held(dialect, before + piece * 20_000, 64) <= 2 * MAX_BLANKS + 64


@pytest.mark.parametrize("between", ["", "\n", "<think></think>", "```\n"])
@pytest.mark.parametrize("name", names())
def test_a_flood_of_openers_is_read_a_bounded_number_of_times_p8(
    name: str, between: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16,000 characters of `>` took 46 s with functionary: each opener was read again to the end (fuzzer)."""
    looked: list[int] = []
    markup = WrapperBlock._markup

    def counted(self: WrapperBlock, text: str, pos: int, *, final: bool) -> int | None:
        looked.append(pos)
        return markup(self, text, pos, final=final)

    monkeypatch.setattr(WrapperBlock, "_markup", counted)
    for wrapper in load(name).grammar.wrappers:
        for opener in wrapper.openers:
            looked.clear()
            reader = load(name).reader(TOOLS)
            flood = (opener + between) * 300 + ">"
            events = [*reader.feed(flood), *reader.finish()]
            assert "".join(map(raw_of, events)) == flood
            assert len(looked) < 40 * 300
