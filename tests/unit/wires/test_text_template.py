"""A decoder with a template makes the same events as one that reads each chunk as a whole."""

import json
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from toolspeak.ir.event import Discarded, Failed, Finished, TextDelta
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.request import Request
from toolspeak.text.sse import SseDecoder, SseFrame
from toolspeak.wires.openai_chat import answer_reader
from toolspeak.wires.shared.answer_decoder import AnswerDecoder
from toolspeak.wires.shared.text_template import TemplateDecoder

REQUEST = Request("m", ())


def reader() -> "answer_reader._Reader":
    return answer_reader._Reader(REQUEST, (f"call_{number}" for number in count()))


def plain() -> AnswerDecoder[SseFrame]:
    return AnswerDecoder(SseDecoder(), reader())


def frame(delta: JsonObject, *, is_ascii: bool = True, created: int = 7, usage: Json = None) -> bytes:
    choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": None}
    body: JsonObject = {"id": "c", "created": created, "choices": [choice], "usage": usage}
    return b"data: %b\n\n" % json.dumps(body, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")


def said(text: str, *, is_ascii: bool = True, created: int = 7, usage: Json = None) -> bytes:
    return frame({"content": text}, is_ascii=is_ascii, created=created, usage=usage)


def with_piece_of_call(text: str) -> bytes:
    return frame({"content": text, **nameless("x")})


def with_reasoning(text: str) -> bytes:
    return frame({"content": text, "reasoning": text})


def refused(text: str) -> bytes:
    return frame({"refusal": text})


def nameless(arguments: str) -> JsonObject:
    return {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}


TEXTS = st.text(max_size=4) | st.sampled_from(
    ("The", " ferry", "c", "content", '"', "\\", "\n", "\r\n", "é", "😀", " ")
)
FRAMES = st.one_of(
    st.builds(said, TEXTS, is_ascii=st.booleans()),
    st.builds(said, TEXTS, created=st.integers(7, 8)),
    st.builds(said, TEXTS, usage=st.sampled_from(({"prompt_tokens": 1}, {"prompt_tokens": 2}))),
    st.builds(with_piece_of_call, TEXTS),
    st.builds(with_reasoning, TEXTS),
    st.builds(refused, TEXTS),
    st.sampled_from(
        (
            frame({"tool_calls": [{"index": 0, "id": "call_9", "function": {"name": "f", "arguments": ""}}]}),
            frame(nameless("{}")),
            frame({}),
            b": ping\n\n",
            b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
            b"data: [DONE]\n\n",
            b'data: {"error": "broken"}\n\n',
            b'data: {"choices":[{"index":0,"delta":{"content":"\xff"}}]}\n\n',
        )
    ),
)


@given(st.lists(FRAMES, max_size=12), st.lists(st.integers(0, 400), max_size=4), st.booleans())
def test_the_events_are_those_of_a_decoder_without_a_template(
    frames: list[bytes], cuts: list[int], is_whole: bool
) -> None:
    chunks = frames
    if not is_whole:
        stream = b"".join(frames)
        ends = [0, *sorted(cuts), len(stream)]
        chunks = [stream[start:end] for start, end in pairwise(ends)]
    one, other = TemplateDecoder(SseDecoder(), reader()), plain()
    for chunk in chunks:
        assert one.feed(chunk) == other.feed(chunk)
    assert one.finish() == other.finish()


@given(st.lists(st.lists(TEXTS, min_size=1, max_size=3), max_size=12))
def test_texts_in_one_form_are_read_as_without_a_template(reads: list[list[str]]) -> None:
    one, other = TemplateDecoder(SseDecoder(), reader()), plain()
    for texts in reads:
        chunk = b"".join(map(said, texts))
        assert one.feed(chunk) == other.feed(chunk)


class Counting(SseDecoder):
    """Counts the chunks that are read as a whole."""

    fed = 0

    @override
    def feed(self, chunk: bytes) -> list[SseFrame]:
        self.fed += 1
        return super().feed(chunk)


def test_the_third_chunk_of_one_form_is_not_read_as_a_whole() -> None:
    frames = Counting()
    decoder = TemplateDecoder(frames, reader())
    decoder.feed(b": hello\n\n")
    for text in ("The", " ferry", " leaves", ' at "six"\n', ""):
        assert decoder.feed(said(text)) == ([TextDelta(text)] if text else [])
    assert frames.fed == 4, "the greeting, two chunks that teach, and the empty one"
    decoder.feed(said("a"))
    assert decoder.feed(said("b") + said('"') + said("d")) == [TextDelta("b"), TextDelta('"'), TextDelta("d")]
    assert frames.fed == 5, "the one that teaches again"


def test_a_server_that_numbers_its_chunks_is_not_searched_for_ever() -> None:
    decoder = TemplateDecoder(SseDecoder(), reader())
    for number in range(30):
        assert decoder.feed(said("a b", created=number)) == [TextDelta("a b")]
    frames = [said("c"), said("d"), said("e")]
    assert [decoder.feed(each) for each in frames] == [[TextDelta(text)] for text in "cde"]


def test_pieces_of_a_call_beside_equal_texts_are_all_kept() -> None:
    """What follows the arguments of a call is collected without an event, so each chunk must reach the reader."""
    one, other = TemplateDecoder(SseDecoder(), reader()), plain()
    called = frame({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}]})
    for chunk in (called, *(frame({"content": "a", **nameless("[")}) for _ in range(5))):
        assert one.feed(chunk) == other.feed(chunk)
    ended = one.finish()
    assert ended == other.finish()
    assert "[[[[[" in "".join(event.raw for event in ended if isinstance(event, Discarded))


@pytest.mark.parametrize("inside", [b"a\nb", b"a\rb", b"\xff", b'a","role":"b', b"\\ud800", b"\\"])
def test_what_is_no_json_string_is_read_as_a_whole(inside: bytes) -> None:
    one, other = TemplateDecoder(SseDecoder(), reader()), plain()
    head, _, tail = said("@@").partition(b"@@")
    for chunk in (said("a"), said("b"), said("c"), head + inside + tail):
        assert one.feed(chunk) == other.feed(chunk)
    assert one.finish() == other.finish()


BEGUN, REST = said("@@").split(b'{"content"')
"""An event in two reads; the second one has the text."""


@pytest.mark.parametrize(
    "chunks",
    [
        (said("x"), BEGUN, b'{"content"' + REST, BEGUN, b'{"content"' + REST, b'{"content"' + REST),
        (said("x"), said("a") + b"d", b"\n\n", said("b") + b"d", said("c") + b"d"),
    ],
    ids=["starts inside", "ends inside"],
)
def test_a_chunk_that_is_no_whole_event_teaches_nothing(chunks: tuple[bytes, ...]) -> None:
    one, other = TemplateDecoder(SseDecoder(), reader()), plain()
    for chunk in chunks:
        assert one.feed(chunk) == other.feed(chunk)


@pytest.mark.parametrize("end", [b"data: [DONE]\n\n", b""])
def test_a_chunk_after_the_end_has_no_text(end: bytes) -> None:
    decoder = TemplateDecoder(SseDecoder(), reader())
    for text in "abc":
        decoder.feed(said(text))
    ended = decoder.feed(end) if end else decoder.finish()
    assert isinstance(ended[-1], Finished | Failed)
    assert decoder.feed(said("d")) == []
