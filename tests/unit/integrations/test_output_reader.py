"""What a model server's client sees of an output; the servers themselves run in `just model-servers`."""

import json
from collections.abc import Iterable, Sequence

import pytest

from testkit.splits import at_random, by_characters
from toolspeak.dialects import load
from toolspeak.integrations.output_reader import (
    IN_STREAM,
    WHOLE,
    CallDelta,
    Content,
    OutputContext,
    OutputDelta,
    OutputReader,
    read_output,
)
from toolspeak.ir.complaint import Problem
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice

WRITE = Tool(
    "write",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "mode": {"type": "integer"}},
        "required": ["path", "text"],
    },
)
LONG_TEXT = "a line with { and }\n" * 40


def call(**arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': 'write', 'arguments': arguments})}\n</tool_call>"


def read(pieces: Iterable[str], context: OutputContext = IN_STREAM) -> tuple[list[OutputDelta], OutputReader]:
    reader = OutputReader(load("hermes"), [WRITE], context)
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    return [*deltas, *reader.finish()], reader


def content_of(deltas: Sequence[OutputDelta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, Content))


def json_of(deltas: Sequence[OutputDelta], index: int = 0) -> str:
    return "".join(delta.json for delta in deltas if isinstance(delta, CallDelta) and delta.index == index)


def test_the_first_delta_of_a_call_has_its_id_and_name_and_the_next_ones_its_json() -> None:
    deltas, _ = read([f"Sure. {call(path='a', text='b')}"])
    assert deltas[:2] == [Content("Sure. "), CallDelta(0, "call_0", "write")]
    assert json.loads(json_of(deltas)) == {"path": "a", "text": "b"}


def test_a_long_call_leaves_while_it_grows() -> None:
    """CHK-7."""
    text = call(path="a", text=LONG_TEXT)
    reader = OutputReader(load("hermes"), [WRITE])
    deltas = reader.feed(text[: len(text) // 2])
    assert deltas[0] == CallDelta(0, "call_0", "write")
    assert len(json_of(deltas)) > 200


@pytest.mark.parametrize("tail", ['"mode": "x"}}\n</tool_call>', '"mode": "x"}}', '"mode": 4'])
def test_p3_a_call_that_was_seen_to_grow_and_is_wrong_or_cut_never_becomes_json(tail: str) -> None:
    text = call(path="a", text=LONG_TEXT).removesuffix("}}\n</tool_call>") + ", " + tail
    for pieces in (by_characters(text), *at_random(text, 5, seed=1)):
        deltas, reader = read(pieces)
        assert len(json_of(deltas)) > 200
        with pytest.raises(ValueError, match=r"delimiter|Expecting"):
            json.loads(json_of(deltas))
        assert reader.complaints


def test_a_rejected_call_stays_in_the_content_with_its_markup() -> None:
    text = f"Well. {call(path='a')} Done."
    deltas, reader = read([text])
    assert content_of(deltas) == text
    assert [complaint.problem for complaint in reader.complaints] == [Problem.SCHEMA_ERROR]


def test_p5_reasoning_stays_in_the_content_and_a_call_in_it_is_not_read() -> None:
    text = f"<think>I could say {call(path='a', text='b')}.</think>\nHello."
    deltas, _ = read(by_characters(text))
    assert content_of(deltas) == text
    assert not any(isinstance(delta, CallDelta) for delta in deltas)


def test_a_call_that_only_repeats_untrusted_text_stays_text() -> None:
    """SAFE-3."""
    text = call(path="a", text="of a page")
    for streams in (False, True):
        context = OutputContext(untrusted=(f"The page: {text}",), streams_calls=streams)
        assert content_of(read([text], context)[0]).startswith("<tool_call>")


def test_no_call_is_read_if_the_client_allows_none_and_one_if_it_allows_one() -> None:
    text = call(path="a", text="1") + call(path="b", text="2")
    none = OutputContext(ToolChoice(ChoiceMode.NONE))
    assert content_of(read([text], none)[0]) == text
    one, _ = read([text], OutputContext(ToolChoice(parallel=False)))
    assert {delta.index for delta in one if isinstance(delta, CallDelta)} == {0}


def test_a_whole_output_has_the_calls_and_the_content_of_its_stream() -> None:
    text = f"Now {call(path='a', text=LONG_TEXT)} and {call(path='b')}."
    content, calls = read_output(OutputReader(load("hermes"), [WRITE], WHOLE), text)
    for pieces in (by_characters(text), *at_random(text, 5, seed=2)):
        deltas, _ = read(pieces)
        assert (content_of(deltas), json_of(deltas)) == (content, calls[0].arguments)
    assert [call.name for call in calls] == ["write"]


def test_ids_of_kimi_last_because_its_template_writes_them_again() -> None:
    text = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.write:3<|tool_call_argument_begin|>"
        '{"path": "a", "text": "b"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    _, calls = read_output(OutputReader(load("kimi"), [WRITE], WHOLE), text)
    assert [call.id for call in calls] == ["functions.write:3"]
