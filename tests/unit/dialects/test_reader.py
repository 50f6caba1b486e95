"""The machine that reads every dialect, by small cases. `read` also proves P1 and that no cut changes the result."""

import pytest

from testkit.splits import at_random
from toolspeak.dialects import ReadOptions, load
from toolspeak.dialects.core.lookup import Beginnings, FoundMarker, LookupContext
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import CallRejected, Event, TextDelta, Why, raw_of
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Reasoning, Text
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice
from toolspeak.ir.turn import Turn, TurnPart, fold

STOP: JsonObject = {"stop": {"type": "string"}, "limit": {"type": "integer"}}
TOOLS = (
    Tool("now", "", {"type": "object", "properties": {}}),
    Tool("find_bus", "", {"type": "object", "properties": STOP, "required": ["stop"]}),
)
DEFAULT = ReadOptions()
JSON = '{"name": "now", "arguments": {}}'
NOW = f"<tool_call>{JSON}</tool_call>"
BUS = '<tool_call>{"name": "find_bus", "arguments": {"stop": "Oslo S"}}</tool_call>'
RESULT = "<tool_response>12:00</tool_response>"


def events_of(
    pieces: tuple[str, ...], dialect: str, options: ReadOptions = DEFAULT, tools: tuple[Tool, ...] = TOOLS
) -> list[Event]:
    """Read pieces of a text; no byte may be lost (P1)."""
    reader = load(dialect).reader(tools, options=options)
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.finish()
    assert "".join(map(raw_of, events)) == "".join(pieces)
    return events


def read(text: str, dialect: str = "hermes", options: ReadOptions = DEFAULT, tools: tuple[Tool, ...] = TOOLS) -> Turn:
    """Read a text whole, by characters and cut at random: the result is the same."""
    turn = fold(events_of((text,), dialect, options, tools))
    for pieces in (tuple(text), *at_random(text, 8, seed=len(text))):
        assert fold(events_of(pieces, dialect, options, tools)) == turn
    return turn


def kinds(turn: Turn) -> list[str]:
    """Name the parts of a turn in one word each: text, thought, the tool, the problem, or why it was set aside."""
    return [_kind(part) for part in turn.parts]


def _kind(part: TurnPart) -> str:
    if isinstance(part, Text | Reasoning):
        return "text" if isinstance(part, Text) else "thought"
    if isinstance(part, Call):
        return part.name
    return part.complaint.problem.value if isinstance(part, CallRejected) else part.why.value


def is_text(text: str, dialect: str = "hermes") -> bool:
    """Tell whether all of it is shown."""
    return read(text, dialect).parts == (Text(text),)


# text is untouched


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  two blanks before and behind  ",
        "\n\n# Title\n\ntext\n",
        "a < b, c > d, <b>bold</b>, </p>, <tool, <tool_call, 1 << 2",
        "It is <tool_call> that I mean.",
        '{"answer": 42, "list": [1, 2]}',
        '["a", "b"]',
        "[1] a footnote, [link](https://example.org)",
        "é \u2028 \U0001f600 \ud83d",
        "\r\n\t \x00",
        "def now(): return now()",
        "<function= and <invoke name=",
        "now() is a function.",
        "Thought: is no mark here",
    ],
)
def test_text_without_calls_is_untouched_p1(text: str) -> None:
    assert is_text(text)


def test_text_leaves_at_once() -> None:
    reader = load("hermes").reader(TOOLS)
    assert reader.feed("Hello wor") == [TextDelta("Hello wor")]
    assert reader.feed("ld <") == [TextDelta("ld ")]
    assert reader.feed("b>") == [TextDelta("<b>")]
    assert reader.finish() == []


def test_no_text_is_no_event() -> None:
    assert read("").parts == ()


# blanks around calls are debris


def test_text_before_a_call_keeps_its_blanks() -> None:
    turn = read(f"Let me see.\n\n{NOW}")
    assert turn.text == "Let me see.\n\n"
    assert [call.name for call in turn.calls] == ["now"]


def test_blanks_around_calls_are_debris() -> None:
    turn = read(f"\n {NOW}\n\n {BUS} \n")
    assert turn.text == ""
    assert kinds(turn) == ["debris", "now", "debris", "find_bus", "debris"]


def test_blanks_between_a_call_and_text_are_text() -> None:
    assert read(f"{NOW}\n\nDone.").text.strip() == "Done."


def test_a_call_behind_text_and_text_behind_a_call() -> None:
    assert kinds(read(f"One. {NOW}two. {BUS}three.")) == ["text", "now", "debris", "text", "find_bus", "debris", "text"]


def test_an_orphan_closer_behind_a_call_is_debris() -> None:
    assert kinds(read(f"{NOW}\n</tool_call></function>\n")) == ["now", "debris"]


def test_a_closer_in_mid_text_is_text_and_at_the_end_debris() -> None:
    assert is_text("Close it with </tool_call> please.")
    assert kinds(read("All done.</tool_call>")) == ["text", "debris"]


# what only shows a call is none: P5


@pytest.mark.parametrize(
    "text",
    [
        f"Write `{NOW}` to call it.",
        f"Write ``{NOW}`` to call it.",
        f"It is `{NOW}`",
        f"> {NOW}\n",
        f"He wrote:\n> I said\n> {NOW}\nand left.",
        f"Example:\n```\n{NOW}\n```\nEnd.",
        f"Example:\n```xml\n{NOW}\n```",
        f"Example:\n~~~\n{NOW}\n~~~\n",
        f"Example:\n````\n```\n{NOW}\n```\n````\nEnd.",
        f"Example:\n```\n{NOW}",
        f"Example: {JSON}",
        f"The answer is\n{JSON}\nas you see.",
        f"{JSON}\nis how you call it.",
    ],
)
def test_a_shown_call_is_text_p5(text: str) -> None:
    assert is_text(text)


@pytest.mark.parametrize("gap", ["YOUR_STOP", "<stop>", "[the stop]", "{{stop}}", "...", "STOP", "your stop here"])
def test_a_call_with_a_gap_to_fill_in_is_an_example_if_text_follows_p5(gap: str) -> None:
    call = BUS.replace("Oslo S", gap)
    assert is_text(f"Write exactly this:\n{call}\nand wait for the result.")
    assert is_text(f"{call}\n\n{call}\nReplace the values.")
    assert kinds(read(f"{call}\n\nReplace it. Now I do:\n{BUS}")) == ["text", "find_bus", "debris"]
    assert kinds(read(f"I look it up.\n{call}\n")) == ["text", "find_bus", "debris"]  # nothing explains it


@pytest.mark.parametrize("value", ["Oslo S", "OSLO", "<b>stop</b>", "your stop", "a [stop] b", "x..."])
def test_an_ordinary_value_makes_no_example_of_a_call(value: str) -> None:
    assert kinds(read(f"{BUS.replace('Oslo S', value)}\nand wait.")) == ["find_bus", "debris", "text"]


def test_inline_code_ends_with_its_paragraph() -> None:
    assert is_text(f"a ` b\n{NOW}` c")
    assert kinds(read(f"a ` b\n\n{NOW}")) == ["text", "now", "debris"]


def test_a_quotation_ends_with_its_line() -> None:
    assert kinds(read(f"> quoted\n{NOW}")) == ["text", "now", "debris"]


def test_a_call_behind_a_closed_fence_counts() -> None:
    assert kinds(read(f"```\ncode\n```\n{NOW}")) == ["text", "now", "debris"]


def test_a_fence_around_the_whole_reply_may_hold_the_call() -> None:
    for info in ("", "json", "xml"):
        assert [call.name for call in read(f"```{info}\n{NOW}\n```").calls] == ["now"]
        assert [call.name for call in read(f"```{info}\n{JSON}\n```\n").calls] == ["now"]


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{JSON}\n```\nThat is how.",
        f"```json\n{JSON} x\n```",
        f"```json\nx {NOW}\n```",
        '```json\n{"name": "Alice", "age": 3}\n```',
        f"```\n{JSON}t</tool_call>",
        "```\n</>x</tool_call>",
        "~~~\n,<</think>",
    ],
)
def test_a_fence_with_more_than_a_call_is_text_p5(text: str) -> None:
    assert read(text).calls == ()
    assert read(text).text == text


def test_the_dialects_own_fence_is_no_example() -> None:
    assert kinds(read(f"Sure.\n```tool_call\n{JSON}\n```\n", "fenced")) == ["text", "now", "debris"]


# wrappers of other dialects: a call only under the conditions of bare JSON

STRANGE = ["<tool_calls>", "<tools>", "<tool>", "<tool_use>", "<use_tool>", "<function_call>", "[TOOL_CALL]"]
BUS_JSON = '{"name": "find_bus", "arguments": {"stop": "Oslo S"}}'


def closing(opener: str) -> str:
    return f"{opener[0]}/{opener[1:]}"


@pytest.mark.parametrize("opener", STRANGE)
@pytest.mark.parametrize("dialect", ["hermes", "llama_json", "dsml", "gemma", "kimi", "fenced"])
def test_a_call_in_another_wrapper_counts_as_the_end_of_the_message(opener: str, dialect: str) -> None:
    for body in (BUS_JSON, f"\n{BUS_JSON}\n", "<find_bus><stop>Oslo S</stop></find_bus>"):
        turn = read(f"I look it up.\n{opener}{body}{closing(opener)}\n", dialect)
        assert [(call.name, call.arguments.replace(" ", "")) for call in turn.calls] == [
            ("find_bus", '{"stop":"OsloS"}')
        ]
        assert turn.text.strip() == "I look it up."


@pytest.mark.parametrize("opener", STRANGE)
@pytest.mark.parametrize(
    "text",
    [
        f"OPEN{BUS_JSON}CLOSE\nis how it looks.",
        f"It looks like OPEN{BUS_JSON}CLOSE",
        'OPEN{"name": "find_bus", "description": "", "parameters": {"type": "object", "properties": {}}}CLOSE',
        'OPEN{"name": "find_bus", "arguments": {"station": "Oslo S"}}CLOSE',
        'OPEN{"name": "find_train", "arguments": {"stop": "Oslo S"}}CLOSE',
        "OPEN\n- a hammer\n- a saw\nCLOSE",
    ],
)
def test_what_is_no_call_by_itself_is_none_in_another_wrapper_p5(opener: str, text: str) -> None:
    text = text.replace("OPEN", opener).replace("CLOSE", closing(opener))
    assert read(text).calls == ()
    assert read(text).text.strip().startswith(text[:20].strip())


def test_an_element_named_like_a_tool_is_rescued_as_the_whole_message_only_p5() -> None:
    element = "<find_bus>\n<stop>Oslo S</stop>\n</find_bus>"
    assert [call.name for call in read(element, "any").calls] == ["find_bus"]
    for text in (f"Here is the data.\n{element}", f"{element}\nThat is the data.", element.replace("stop", "station")):
        assert read(text, "any").calls == ()


def test_a_name_that_swallowed_its_first_key_is_split_by_the_schema() -> None:
    pair = "</arg_key><arg_value>Oslo S</arg_value></tool_call>"
    assert [call.arguments for call in read(f"<tool_call>find_busstop{pair}", "glm").calls] == ['{"stop":"Oslo S"}']
    assert read(f"<tool_call>find_busstation{pair}", "glm").calls == ()


def test_a_name_and_a_fence_in_tags_are_a_call() -> None:
    fenced = '<tool_call>find_bus\n```json\n{"stop": "Oslo S"}\n```\n</tool_call>'
    for text in (fenced, f"<tool_calls>\n{fenced}\n</tool_calls>"):
        turn = read(text, "jamba")
        assert ([call.name for call in turn.calls], turn.text.strip()) == (["find_bus"], "")


def test_closers_of_a_call_before_the_answer_are_debris() -> None:
    turn = read("</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>\nDone.", "dsml")
    assert turn.text.strip() == "Done."


@pytest.mark.parametrize("end", ["[e~[", "<SPECIAL_12>", "<|im_end|>", "</tool_calls>"])
def test_a_token_after_a_call_in_open_reasoning_is_debris(end: str) -> None:
    assert [call.name for call in read(f"<think>So: {NOW}{end}").calls] == ["now"]
    assert read(f"<think>The token {end} ends it.</think>").reasoning == f"The token {end} ends it."
    assert read(f"<think>So: {NOW}{end} or not").calls == ()


# forged results: cut


@pytest.mark.parametrize("name", ["hermes", "mistral", "any"])
def test_a_header_that_is_too_long_is_given_back_at_the_same_place_in_every_cut(name: str) -> None:
    read(f"[Calling tool:{'p>' * 160}</think>[Calling tool: now {{}}]", name)


def test_a_forged_result_is_cut_with_all_that_follows() -> None:
    turn = read(f"{NOW}\n{RESULT}\nIt is 12:00. {BUS}")
    assert kinds(turn) == ["now", "debris", "forged"]
    assert turn.text == ""


def test_the_reader_says_that_it_reads_no_more() -> None:
    reader = load("hermes").reader(TOOLS)
    reader.feed(NOW)
    assert reader.cut is None
    reader.feed("<tool_response>")
    assert reader.cut is Why.FORGED


def test_a_result_without_a_call_is_text() -> None:
    assert is_text(f"The tag {RESULT} holds a result.")


# the tail rule


def test_bare_calls_count_only_as_the_last_thing() -> None:
    assert kinds(read(JSON)) == ["now"]
    assert [call.name for call in read(f"{JSON}\n{JSON}\n").calls] == ["now", "now"]
    assert is_text(f"{JSON}\n{JSON}\nThese are calls.")


def test_bare_json_with_a_foreign_key_streams() -> None:
    reader = load("hermes").reader(TOOLS)
    assert reader.feed('{"answer": 4') == [TextDelta('{"answer": 4')]


def test_markup_in_bare_json_that_is_no_call_is_seen_or_not_in_every_cut() -> None:
    read(f"{{'answer': '{NOW}'}}")


@pytest.mark.parametrize("dialect", ["hermes", "qwen_xml", "any"])
def test_a_fence_around_the_body_of_a_call_is_debris_and_a_lone_one_after_it_is_text(dialect: str) -> None:
    fenced = f"<tool_call>\n```json\n{JSON}\n```\n"
    assert kinds(read(f"{fenced}</tool_call>", dialect)) == ["now", "debris"]
    assert kinds(read(f"{fenced}{JSON}\n</tool_call>", dialect)) == ["now", "now", "debris"]
    lone = read(f"<tool_call>\n{JSON}\n```\n</tool_call>", dialect)
    assert (kinds(lone), lone.text) == (["now", "text"], "\n```\n</tool_call>")


# attempts that must not run


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<tool_call>{"name": "later", "arguments": {}}</tool_call>', Problem.UNKNOWN_TOOL),
        ('<tool_call>{"name": "find_bus", "arguments": {}}</tool_call>', Problem.SCHEMA_ERROR),
        ('<tool_call>{"function": {"stop": "Oslo S"}}</tool_call>', Problem.PARSE_ERROR),
        ('<tool_call>{"function": {"name": 7, "arguments": {}}}</tool_call>', Problem.PARSE_ERROR),
        ('<tool_call>{"name": "find_bus", "arguments": {"stop": 60*60}}</tool_call>', Problem.PARSE_ERROR),
        ('<tool_call>{"name": "find_bus", "arguments": {"stop": "Os', Problem.TRUNCATED),
        ("<tool_call>", Problem.TRUNCATED),
    ],
)
def test_an_attempt_that_must_not_run_is_a_complaint(text: str, problem: Problem) -> None:
    turn = read(text)
    assert [complaint.problem for complaint in turn.complaints] == [problem]
    assert turn.calls == ()


@pytest.mark.parametrize("id", ["functions.later:0", "later:12"])
def test_a_complaint_names_the_unknown_tool_without_the_counter_of_its_id(id: str) -> None:
    turn = read(f"<|tool_call_begin|>{id}<|tool_call_argument_begin|>{{}}<|tool_call_end|>", "kimi")
    assert [(one.problem, one.name) for one in turn.complaints] == [(Problem.UNKNOWN_TOOL, "later")]


@pytest.mark.parametrize("closer", ["</tool_call>", "</function>\n</tool_call>"])
def test_a_call_in_tags_without_a_name_is_told_so(closer: str) -> None:
    turn = read(f"<tool_call>\n<parameter=stop>\nOslo S\n</parameter>\n{closer}", "qwen_xml")
    (complaint,) = turn.complaints
    assert complaint.detail == "the call has no name; available tools: now, find_bus"


@pytest.mark.parametrize("call", ["find_bus('Oslo S', 3, 4)", "later('Oslo S')", "now(1)"])
def test_more_positional_arguments_than_the_tool_has_names_for_are_a_complaint_p2(call: str) -> None:
    turn = read(f"<|python_start|>[{call}]<|python_end|>", "llama4")
    assert [complaint.problem for complaint in turn.complaints] == [Problem.PARSE_ERROR]
    assert "no names for them" in turn.complaints[0].detail


def test_positional_arguments_take_the_declared_names_in_order_p2() -> None:
    calls = read("[find_bus('Oslo S', 3), find_bus(3, stop='Oslo S')]", "pythonic").calls
    assert [call.arguments for call in calls] == ['{"stop":"Oslo S","limit":3}', '{"limit":3,"stop":"Oslo S"}']


@pytest.mark.parametrize("text", [NOW, BUS, f"Text. {BUS}"])
def test_no_cut_of_a_call_is_delivered_p3(text: str) -> None:
    complete = text.index("</tool_call>")
    for end in range(complete):
        assert read(text[:end]).calls == ()
    for end in range(complete, len(text)):
        assert len(read(text[:end]).calls) == 1


# reasoning


def test_reasoning_is_split_off() -> None:
    turn = read("<think>\nHm.\n</think>\n\nHello.")
    assert turn.reasoning.strip() == "Hm."
    assert turn.text.strip() == "Hello."


def test_a_draft_in_reasoning_is_no_call_p5() -> None:
    turn = read(f"<think>I could write {NOW} but no.</think>Hello.")
    assert turn.calls == ()
    assert NOW in turn.reasoning
    assert kinds(read(f"<think>{NOW}</think>Hello.")) == ["debris", "thought", "debris", "text"]


@pytest.mark.parametrize("opener", ["<think>", "<|inner_prefix|>", "<longcat_think>", "<|think|>"])
def test_unclosed_reasoning_that_ends_in_a_call_counts(opener: str) -> None:
    turn = read(f"{opener}I must know the time. {NOW}\n")
    assert [call.name for call in turn.calls] == ["now"]
    assert turn.reasoning == "I must know the time. "


def test_unclosed_reasoning_that_goes_on_is_reasoning_p5() -> None:
    turn = read(f"<think>Perhaps {NOW} or not")
    assert turn.calls == ()
    assert turn.reasoning == f"Perhaps {NOW} or not"


def test_calls_in_closed_reasoning_count_if_asked_for() -> None:
    turn = read(f"<think>So: {NOW}</think>", options=ReadOptions(calls_in_reasoning=True))
    assert [call.name for call in turn.calls] == ["now"]


def test_reasoning_may_have_started_in_the_prompt() -> None:
    turn = read(f"Hm, {NOW}? No.</think>Hello.", options=ReadOptions(starts_in_reasoning=True))
    assert (turn.reasoning, turn.text, turn.calls) == (f"Hm, {NOW}? No.", "Hello.", ())


K3_CALL = (
    '<|open|>tools<|sep|><|open|>call tool="find_bus" index="1"<|sep|><|open|>argument key="stop" type="string"<|sep|>'
    "Oslo S<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"
)


@pytest.mark.parametrize("dialect", ["kimi_k3", "any"])
def test_reasoning_that_the_prompt_opened_ends_with_the_models_own_mark(dialect: str) -> None:
    options = ReadOptions(starts_in_reasoning=True)
    text = "Hm.<|close|>think<|sep|><|open|>response<|sep|>Wait.<|close|>response<|sep|>"
    turn = read(text + K3_CALL, dialect, options)
    assert (turn.reasoning, turn.text, [call.name for call in turn.calls]) == ("Hm.", "Wait.", ["find_bus"])
    unthought = read("<|open|>response<|sep|>Hi.<|close|>response<|sep|><|close|>message<|sep|>", dialect, options)
    assert (unthought.reasoning, unthought.text) == ("", "Hi.")
    opened = read(f"<|open|>think<|sep|>{K3_CALL} No.<|close|>think<|sep|>Hi.", dialect)
    assert (opened.text, opened.calls) == ("Hi.", ())


@pytest.mark.parametrize(
    ("dialect", "opener", "call", "closer"),
    [
        ("mistral", "[THINK]", "[TOOL_CALLS]now[ARGS]{}", "[/THINK]"),
        ("any", "[THINK]", "[TOOL_CALLS]now[ARGS]{}", "[/THINK]"),
        ("gemma", "<|channel>thought", "<|tool_call>call:now{}<tool_call|>", "<channel|>"),
        ("cohere", "<|START_THINKING|>", f"<|START_ACTION|>[{JSON}]<|END_ACTION|>", "<|END_THINKING|>"),
    ],
)
def test_a_draft_between_the_models_own_marks_is_no_call_p5(dialect: str, opener: str, call: str, closer: str) -> None:
    draft = read(f"{opener}I could write {call} here.{closer}Hello.", dialect)
    assert (draft.text, draft.calls) == ("Hello.", ())
    assert call in draft.reasoning
    meant = read(f"{opener}I do not know.{closer}{call}", dialect)
    unclosed = read(f"{opener}I do not know.{call}", dialect)
    assert [call.name for call in meant.calls] == [call.name for call in unclosed.calls] == ["now"]


@pytest.mark.parametrize("start", ["<|channel|>", "<|start|>assistant<|channel|>"])
def test_in_the_final_channel_nothing_is_a_call_p5(start: str) -> None:
    thought = "<|channel|>analysis<|message|>They want the JSON itself.<|end|>"
    turn = read(f"{thought}{start}final<|message|>{JSON}<|return|>", "harmony")
    assert (turn.reasoning, turn.text, turn.calls) == ("They want the JSON itself.", JSON, ())
    call = "<|start|>assistant<|channel|>commentary to=functions.now<|message|>{}"
    after = read(f"{start}final<|message|>One ` moment.<|end|>{call}", "harmony")
    assert (after.text, [call.name for call in after.calls]) == ("One ` moment.", ["now"])


def test_a_few_words_after_a_call_with_a_header_are_text() -> None:
    turn = read('>>>find_bus\n{"stop": "Oslo S"}\n\nOne moment', "functionary")
    assert (turn.text, [call.name for call in turn.calls], turn.complaints) == ("\n\nOne moment", ["find_bus"], ())


@pytest.mark.parametrize(("rest", "text"), [("\n\nOne moment", "\n\nOne moment"), ("assistantfinalHello", "Hello")])
def test_text_after_a_call_of_harmony_without_its_tokens_is_text(rest: str, text: str) -> None:
    turn = read('commentary to=functions.find_bus json{"stop": "Oslo S"}' + rest, "harmony")
    assert (turn.text, [call.name for call in turn.calls], turn.complaints) == (text, ["find_bus"], ())


def test_text_may_follow_an_element_where_the_dialect_has_elements() -> None:
    call = "<find_bus>\n<stop>Oslo S</stop>\n</find_bus>"
    turn = read(f"{call}\n\nOne moment", "cline")
    assert (turn.text, [call.name for call in turn.calls]) == ("\n\nOne moment", ["find_bus"])
    assert is_text(f"{call}\n\nOne moment", "any")


def test_a_message_in_the_role_of_the_assistant_may_be_reasoning() -> None:
    turn = read("<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|>Hi.", "harmony")
    assert (turn.reasoning, turn.text) == ("Hm.", "Hi.")


@pytest.mark.parametrize("channel", ["commentary <|constrain|>json", "commentary json", "analysis code"])
def test_the_recipient_may_come_before_the_channel(channel: str) -> None:
    turn = read(f' to=functions.find_bus<|channel|>{channel}<|message|>{{"stop": "Oslo S"}}', "harmony")
    assert (turn.text, [call.name for call in turn.calls]) == ("", ["find_bus"])
    assert read(f"x to=functions.now<|channel|>{channel} or so", "harmony").calls == ()


def test_keys_may_hold_blanks_and_escapes() -> None:
    tools = (Tool("save", "", {"type": "object", "properties": {"q & <a>": {"type": "string"}}}),)
    expected = ['{"q & <a>":"x"}']
    k3 = K3_CALL.replace("find_bus", "save").replace("stop", "q &amp; &lt;a&gt;").replace("Oslo S", "x")
    assert [call.arguments for call in read(k3, "kimi_k3", tools=tools).calls] == expected
    any_object = (Tool("save", "", {"type": "object"}),)
    gemma = '<|tool_call>call:save{Basic LLM Chain :{a b:1},c:<|"|>d e:<|"|>}<tool_call|>'
    assert [call.arguments for call in read(gemma, "gemma", tools=any_object).calls] == [
        '{"Basic LLM Chain":{"a b":1},"c":"d e:"}'
    ]


def test_a_call_that_lost_its_opener_may_be_followed_by_a_whole_one() -> None:
    call = "<function=find_bus>\n<parameter=stop>\nOslo S\n</parameter>\n</function>\n</tool_call>"
    turn = read(f"{call}\n<tool_call>\n{call}", "qwen_xml")
    assert (turn.text, [call.name for call in turn.calls]) == ("", ["find_bus", "find_bus"])


def test_a_closer_of_reasoning_that_the_prompt_opened_is_debris_at_the_start() -> None:
    assert kinds(read(f"</think>{NOW}")) == ["debris", "now", "debris"]


def test_a_mark_of_reasoning_in_mid_line_is_text() -> None:
    assert is_text("The tag <think> opens a thought.")


# the tool choice


def test_with_no_choice_only_reasoning_is_split_off_p5() -> None:
    none = ReadOptions(ToolChoice(ChoiceMode.NONE))
    turn = read(f"<think>Hm.</think>{NOW}{RESULT}", options=none)
    assert (turn.reasoning, turn.text, turn.calls) == ("Hm.", NOW + RESULT, ())


def test_without_tools_text_is_untouched() -> None:
    assert read(f"{NOW} {RESULT} </tool_call>", tools=()).parts == (Text(f"{NOW} {RESULT} </tool_call>"),)


def test_a_named_choice_refuses_the_others() -> None:
    named = ReadOptions(ToolChoice(ChoiceMode.NAMED, "now"))
    turn = read(f"{BUS}{NOW}", options=named)
    assert [complaint.problem for complaint in turn.complaints] == [Problem.WRONG_TOOL]
    assert [call.name for call in turn.calls] == ["now"]


def test_without_parallel_calls_the_first_is_the_last() -> None:
    one = ReadOptions(ToolChoice(parallel=False))
    turn = read(f"{NOW}\n{BUS}\ntext", options=one)
    assert [call.name for call in turn.calls] == ["now"]
    assert kinds(turn)[-1] == "limit"
    assert len(read(f"{JSON}\n{JSON}", options=one).calls) == 1


def test_ids_come_from_the_caller() -> None:
    reader = load("hermes").reader(TOOLS, ids=iter(("a", "b")))
    turn = fold([*reader.feed(NOW + BUS), *reader.finish()])
    assert [call.id for call in turn.calls] == ["a", "b"]


@pytest.mark.parametrize("around", ["<tool_call>\n%s\n</tool_call>", "%s", "```json\n%s\n```"])
def test_a_call_in_doubled_braces_is_a_call(around: str) -> None:
    """The chat template of Qwen2.5-Coder shows it so."""
    [call] = read(around % f"{{{JSON}}}").calls
    assert (call.name, [fix.what for fix in call.fixes]) == ("now", ["doubled braces"])


@pytest.mark.parametrize("text", ["{{ name }} is here", '{{"user": 1}}', "{{}}", '{{"name": "now", "arguments": {}} x'])
def test_other_doubled_braces_are_text(text: str) -> None:
    assert is_text(text)


def test_no_form_is_looked_up_on_a_blank_line_p8(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of newlines took 1.3 s per 100 KB: `any` tried all its forms on each (found by the fuzzer)."""
    looked: list[int] = []
    at = Beginnings.at

    def counted(self: Beginnings, text: str, pos: int, place: LookupContext, *, final: bool) -> FoundMarker | None:
        looked.append(pos)
        return at(self, text, pos, place, final=final)

    monkeypatch.setattr(Beginnings, "at", counted)
    assert read("Well:\n" + "\n" * 3000 + NOW, "any").calls
    assert len(looked) < 100  # `read` reads it ten times


def test_gemma_may_lose_the_word_before_the_colon() -> None:
    turn = read('Wait: <|tool_call>:find_bus{stop:<|"|>Oslo S<|"|>,limit:2}<tool_call|>', "gemma")
    assert [(call.name, call.arguments) for call in turn.calls] == [("find_bus", '{"stop":"Oslo S","limit":2}')]
    assert turn.text == "Wait: "
    assert not read("<|tool_call>:find_bus no braces<tool_call|>", "gemma").calls


@pytest.mark.parametrize("text", ["The bus leaves at noon. ", NOW, "<tool_call>{", "```\n"])
def test_text_after_the_end_is_ignored(text: str) -> None:
    reader = load("hermes").reader(TOOLS)
    reader.feed(text)
    reader.finish()
    assert [reader.feed("More. "), reader.feed(NOW), reader.finish()] == [[], [], []]
