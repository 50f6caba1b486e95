"""Server-sent events: the standard's rules, invisible chunking, limits (P7), linear time (P8)."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.errors import BadFrame, BadRequest
from toolspeak.text.lines import FrameLimits, Lines
from toolspeak.text.sse import SSE_LIMITS, SseDecoder, SseFrame, sse_comment, sse_event

BOM = b"\xef\xbb\xbf"
STREAMS = [
    b'data: {"a":1}\n\ndata: [DONE]\n\n',
    b"event: delta\r\nid: 7\r\ndata: a\r\ndata: b\r\n\r\n: ping\r\n\r\ndata: c\r\n\r\n",
    b"data: a\r\rdata:b\r\r\rdata\r\r",
    b"data: a\n\rdata: b\r\n\ndata: c\r\r\ndata: d\n\r\n",
    BOM + "data: größe €\n\ndata: 😀\u2028\x85\x0b|\n\nevent: é\ndata: ü".encode(),
    b"data: bad \xe2\x82 \xff\xf0\x9f\x98\n\ndata: \xc3\r\n\n",
    BOM + b"\n\n:\n\ndata:  two blanks\ndata:\ndata\nretry: 5\nfoo: bar\nid: \0\n\nevent: lost\n\ndata: last",
    BOM[:2] + b"data: no mark\n\ndata: x\n\n",
]


def decode(*chunks: bytes, limits: FrameLimits = SSE_LIMITS) -> list[SseFrame]:
    """Feed the chunks to a new decoder, and finish."""
    decoder = SseDecoder(limits)
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    return frames + decoder.finish()


def until_breach(chunks: list[bytes], limits: FrameLimits) -> tuple[list[SseFrame], bool]:
    """Return what comes out before a limit is broken, and whether one was."""
    decoder, frames = SseDecoder(limits), list[SseFrame]()
    try:
        for chunk in chunks:
            frames += decoder.feed(chunk)
        frames += decoder.finish()
    except BadFrame:
        return frames, True
    return frames, False


def pieces(stream: bytes, size: int) -> list[bytes]:
    """Cut a stream into chunks of one size."""
    return [stream[start : start + size] for start in range(0, len(stream), size)]


def normalised(text: str) -> str:
    """Return the text with every line end that SSE knows as a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


# Fields and lines


def test_an_event_has_data_a_name_and_an_id() -> None:
    assert decode(b"event: delta\nid: 7\ndata: hi\n\n") == [SseFrame("hi", "delta", "7")]


def test_done_is_data_like_any_other() -> None:
    assert decode(b"data: [DONE]\n\n") == [SseFrame("[DONE]")]


def test_data_lines_are_joined_with_line_feeds() -> None:
    assert decode(b"data: a\ndata:\ndata: b\n\n") == [SseFrame("a\n\nb")]


def test_only_one_leading_blank_is_removed() -> None:
    assert decode(b"data:  a\n\ndata:b\n\ndata:\tc\n\n") == [SseFrame(" a"), SseFrame("b"), SseFrame("\tc")]


def test_a_value_keeps_its_colons() -> None:
    assert decode(b"data: a: b:c\n\n") == [SseFrame("a: b:c")]


def test_a_field_without_a_colon_has_an_empty_value() -> None:
    assert decode(b"data\n\ndata\ndata\n\n") == [SseFrame(""), SseFrame("\n")]


def test_unknown_fields_and_retry_are_ignored() -> None:
    assert decode(b"retry: 10\nfoo: bar\nDATA: x\n data: y\ndata: a\n\n") == [SseFrame("a")]


def test_comments_are_ignored_anywhere() -> None:
    assert decode(b": a\n\n:\ndata: a\n: b\n:data: c\ndata: d\n\n: e\n") == [SseFrame("a\nd")]


def test_an_event_without_data_is_dropped_with_its_name() -> None:
    assert decode(b"event: lost\n\ndata: a\n\n") == [SseFrame("a")]


def test_a_name_is_for_one_event_and_an_id_for_all_that_follow() -> None:
    stream = b"event: x\nid: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n"
    assert decode(stream) == [SseFrame("a", "x", "1"), SseFrame("b", "", "1"), SseFrame("c")]


def test_an_id_with_a_nul_is_ignored() -> None:
    assert decode(b"id: 1\nid: 2\0\ndata: a\n\n") == [SseFrame("a", "", "1")]


def test_the_example_of_the_standard_gives_two_events() -> None:
    assert decode(b"data\n\ndata\ndata\n\ndata:") == [SseFrame(""), SseFrame("\n")]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_of_the_standard_ends_a_line(end: bytes) -> None:
    assert decode(b"data: a\ndata: b\n\ndata: c\n\n".replace(b"\n", end)) == [SseFrame("a\nb"), SseFrame("c")]


def test_other_unicode_line_ends_are_text() -> None:
    text = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert decode(f"data: {text}\n\n".encode()) == [SseFrame(text)]


def test_a_cr_at_a_chunk_end_is_one_line_end_with_the_lf_that_follows() -> None:
    assert decode(b"data: a\r", b"\ndata: b\r", b"", b"\n\r", b"\n") == [SseFrame("a\nb")]


def test_a_cr_at_a_chunk_end_ends_its_line_at_once() -> None:
    assert SseDecoder().feed(b"data: a\r\n\r") == [SseFrame("a")]


def test_a_bom_is_removed_at_the_start_only() -> None:
    assert decode(BOM + b"data: a\n\n" + BOM + b"data: b\n\ndata: c\n\n") == [SseFrame("a"), SseFrame("c")]


def test_a_bom_in_a_later_chunk_is_not_removed() -> None:
    assert decode(b"data: a\n\n", BOM + b"data: b\n\n", BOM + b"data: c") == [SseFrame("a")]


def test_a_second_bom_is_not_removed() -> None:
    assert decode(BOM + BOM + b"data: a\n\ndata: b\n\n") == [SseFrame("b")]


def test_a_bom_before_an_unfinished_first_line_is_removed() -> None:
    assert decode(BOM + b"data: a") == [SseFrame("a")]


def test_invalid_bytes_become_replacement_characters() -> None:
    assert decode(b"event: \xff\ndata: a\xe2\x82\ndata: \xacb\n\n") == [SseFrame("a\ufffd\n\ufffdb", "\ufffd")]


# The end of the stream


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r", b"\r\n", b"\nda", b"\n: x"])
def test_an_event_without_its_blank_line_is_delivered_at_the_end(tail: bytes) -> None:
    assert decode(b"event: x\ndata: a" + tail) == [SseFrame("a", "x")]


@pytest.mark.parametrize("stream", [b"", BOM, b"\n", b"event: x", b"data", b"data:", b"data: \n", b": x"])
def test_nothing_is_delivered_at_the_end_without_data(stream: bytes) -> None:
    assert decode(stream) == []


def test_a_second_finish_gives_nothing() -> None:
    decoder = SseDecoder()
    decoder.feed(b"data: a")
    assert [decoder.finish(), decoder.finish()] == [[SseFrame("a")], []]


# Chunking is invisible


@pytest.mark.parametrize("stream", STREAMS)
def test_every_cut_in_two_gives_the_same_events(stream: bytes) -> None:
    whole = decode(stream)
    assert whole
    for cut in range(len(stream) + 1):
        assert decode(stream[:cut], stream[cut:]) == whole


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_small_chunks_give_the_same_events(stream: bytes, size: int) -> None:
    assert decode(*pieces(stream, size)) == decode(stream)


def test_valid_characters_never_become_replacement_characters() -> None:
    stream = "data: é€😀\ufeff\n\n".encode()
    for cut in range(len(stream)):
        assert decode(stream[:cut], stream[cut:]) == [SseFrame("é€😀\ufeff")]


hostile = st.lists(
    st.sampled_from([b"\r", b"\n", b"data", b":", b" ", b"x", b"event:", b"id:", b"\xf0\x9f", b"\x98\x80", BOM])
).map(b"".join)


@given(hostile, st.integers(1, 9))
def test_chunking_is_invisible_for_any_bytes(stream: bytes, size: int) -> None:
    assert decode(*pieces(stream, size)) == decode(stream)


@given(hostile, st.integers(1, 9))
def test_chunking_is_invisible_over_a_limit_too(stream: bytes, size: int) -> None:
    limits = FrameLimits(line_bytes=9, event_bytes=3, event_lines=2)
    assert until_breach(pieces(stream, size), limits) == until_breach([stream], limits)


# Whole events in one chunk

LINES = [
    b"data: a",
    b"data:b",
    b"data",
    b"data: ",
    b"data:  two",
    b"event: x",
    b"event: ",
    b"event",
    b"id: 7",
    b"id: \0",
    b"id",
    b": ping",
    b":",
    b"retry: 5",
    b"other",
    b" data: x",
    "data: é€😀\u2028\x85".encode(),
    b"event: \xff",
    b"data: \xe2\x82",
]
LINE_ENDS = [b"\n", b"\n", b"\n", b"\r\n", b"\r"]


@st.composite
def events(draw: st.DrawFn) -> bytes:
    """Write one event, with any fields, or none."""
    return draw(st.sampled_from(LINE_ENDS)).join([*draw(st.lists(st.sampled_from(LINES), max_size=4)), b"", b""])


def calm() -> SseDecoder:
    """Return a decoder that has read an event, so that it may take whole ones at once."""
    decoder = SseDecoder()
    assert decoder.feed(b"data: first\n\n") == [SseFrame("first")]
    return decoder


@given(st.data(), st.lists(events(), max_size=8))
def test_whole_events_are_read_as_single_bytes_are(data: st.DataObject, some: list[bytes]) -> None:
    stream = b"".join(some)
    one_by_one = decode(*pieces(stream, 1))
    assert decode(*some) == one_by_one
    assert decode(stream) == one_by_one
    cuts = sorted(data.draw(st.lists(st.integers(0, len(some)), max_size=3)))
    several = [b"".join(some[start:end]) for start, end in zip([0, *cuts], [*cuts, len(some)], strict=True)]
    assert decode(*several) == one_by_one


@given(st.data(), st.lists(events(), max_size=6).map(b"".join))
def test_chunks_of_any_sizes_give_the_same_events(data: st.DataObject, stream: bytes) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*chunks) == decode(*pieces(stream, 1))


@pytest.mark.parametrize(
    ("chunk", "frames"),
    [
        (b"data: a\n\n", [SseFrame("a")]),
        (b"data: \n\n", [SseFrame("")]),
        (b"event: x\ndata: a\n\n", [SseFrame("a", "x")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [SseFrame("a", "x"), SseFrame("b")]),
        (b"event: x\n\ndata: b\n\n", [SseFrame("b")]),
        (b"data: a\nevent: x\n\n", [SseFrame("a", "x")]),
        (b"data: a\ndata: b\n\n", [SseFrame("a\nb")]),
        (b"event: x\ndata: a\ndata: b\n\n", [SseFrame("a\nb", "x")]),
        (b": ping\n\ndata: a\n\n", [SseFrame("a")]),
        (b"data: a\n\n\n\n\ndata: b\n\n\n", [SseFrame("a"), SseFrame("b")]),
        (b"\n\ndata: a\n\n", [SseFrame("a")]),
        (b"data: a\r\n\n", [SseFrame("a")]),
        (BOM + b"data: a\n\ndata: b\n\n", [SseFrame("b")]),
        (b"data: bad \xff\n\n", [SseFrame("bad \ufffd")]),
        (b"event: \xff\ndata: \xe2\x82\n\n", [SseFrame("\ufffd", "\ufffd")]),
    ],
)
def test_a_chunk_of_whole_events_is_read_by_the_standard(chunk: bytes, frames: list[SseFrame]) -> None:
    assert calm().feed(chunk) == frames
    assert decode(b"data: first\n\n", *pieces(chunk, 1))[1:] == frames


def test_an_id_stays_for_whole_events_that_follow() -> None:
    decoder = calm()
    assert decoder.feed(b"id: 7\ndata: a\n\n") == [SseFrame("a", "", "7")]
    assert decoder.feed(b"data: b\n\n") == [SseFrame("b", "", "7")]
    assert decoder.feed(b"event: x\ndata: c\n\ndata: d\n\n") == [SseFrame("c", "x", "7"), SseFrame("d", "", "7")]
    assert decoder.feed(b"id\n\ndata: e\n\n") == [SseFrame("e")]


def test_events_that_begin_alike_or_otherwise_keep_their_own_names() -> None:
    decoder = calm()
    for name in ("x", "x", "xy", "x", "", "", "xy", "é", "é", "data: x", "x"):
        chunk = sse_event("a", name)
        assert decoder.feed(chunk) == [SseFrame("a", name)]
        assert decoder.feed(chunk + chunk) == [SseFrame("a", name)] * 2
    assert decoder.feed(b"event: x\ndata:b\n\n") == [SseFrame("b", "x")]
    assert decoder.feed(b"event: x\ndata: b\nevent: y\n\n") == [SseFrame("b", "y")]
    assert decoder.feed(b"event: x\n\ndata: b\n\n") == [SseFrame("b")]


@pytest.mark.parametrize("begun", [b"data: a", b"data: a\n", b"event: x\n", b"event: x\r", b"da", b": pi"])
def test_a_chunk_that_looks_whole_ends_the_event_that_was_begun(begun: bytes) -> None:
    rest = b"data: b\n\n"
    decoder = calm()
    decoder.feed(begun)
    assert decoder.feed(rest) == decode(*pieces(begun + rest, 1))


def test_whole_events_are_not_cut_into_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = calm()
    monkeypatch.setattr(Lines, "feed", None)
    assert decoder.feed(b"data: a\n\n") == [SseFrame("a")]
    assert decoder.feed(b"event: x\ndata: b\n\ndata: c\n\n") == [SseFrame("b", "x"), SseFrame("c")]


@pytest.mark.parametrize("limits", [FrameLimits(line_bytes=16), FrameLimits(event_bytes=10)])
@pytest.mark.parametrize("name", [b"", b"event: x\n"])
def test_p7_limits_hold_for_whole_events_too(limits: FrameLimits, name: bytes) -> None:
    decoder = SseDecoder(limits)
    decoder.feed(b"data: first\n\n")
    for size in (9, 10):
        (frame,) = decoder.feed(name + b"data: " + b"x" * size + b"\n\n")
        assert frame.data == "x" * size
    with pytest.raises(BadFrame, match=r"is over the limit: at most 1[06] is accepted"):
        decoder.feed(name + b"data: " + b"x" * 11 + b"\n\n")


@pytest.mark.parametrize(
    ("chunks", "at_rest"),
    [
        ([], False),
        ([b""], False),
        ([BOM], False),
        ([b"a"], False),
        ([b"a\n"], True),
        ([b"\n"], True),
        ([b"a\r"], False),
        ([b"a\r", b""], False),
        ([b"a\r", b"\n"], True),
        ([b"a\r\n"], True),
        ([b"a\n", b"b"], False),
        ([b"a\nb\n"], True),
        ([b"a\n", b"12345"], False),
        ([b"a\n", b"12345\n"], False),
    ],
)
def test_lines_are_at_rest_where_the_next_byte_starts_a_line(chunks: list[bytes], at_rest: bool) -> None:
    lines = Lines(4)
    for chunk in chunks:
        lines.feed(chunk)
    assert lines.at_rest is at_rest


# Limits


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b""])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_p7_a_line_is_accepted_up_to_its_limit(end: bytes, size: int) -> None:
    limits = FrameLimits(line_bytes=10)
    for extra in (-1, 0):
        text = "x" * (4 + extra)
        assert decode(*pieces(f"data: {text}".encode() + end, size), limits=limits) == [SseFrame(text)]
    with pytest.raises(BadFrame, match=r"line_bytes 1\d is over the limit: at most 10 is accepted"):
        decode(*pieces(b"data: xxxxx" + end, size), limits=limits)


def test_p7_a_line_without_an_end_is_refused_before_its_end() -> None:
    decoder = SseDecoder(FrameLimits(line_bytes=10))
    assert decoder.feed(b": 34567890") == []
    with pytest.raises(BadFrame, match="line_bytes 11 "):
        decoder.feed(b"1")


@pytest.mark.parametrize(
    ("size", "stream"), [(9, b"data: 1234\ndata: 6789"), (10, b"data: 1234\ndata: 67890"), (10, b"data:1234567890")]
)
def test_p7_the_data_of_an_event_is_accepted_up_to_its_limit(size: int, stream: bytes) -> None:
    (frame,) = decode(stream + b"\n\n", limits=FrameLimits(event_bytes=10))
    assert len(frame.data) == size


@pytest.mark.parametrize(
    "stream", [b"data: 1234\ndata: 678901", b"data: 12345678901", b"data: 123456789\ndata:\ndata:"]
)
@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""])
def test_p7_the_data_of_an_event_is_refused_over_its_limit(stream: bytes, end: bytes) -> None:
    with pytest.raises(BadFrame, match="event_bytes 11 is over the limit: at most 10 is accepted"):
        decode(stream + end, limits=FrameLimits(event_bytes=10))


def test_p7_the_limit_of_data_counts_bytes_not_characters() -> None:
    assert decode("data: €€\n\n".encode(), limits=FrameLimits(event_bytes=6)) == [SseFrame("€€")]
    with pytest.raises(BadFrame, match="event_bytes 7 "):
        decode("data: €€x\n\n".encode(), limits=FrameLimits(event_bytes=6))


@pytest.mark.parametrize("line", [b"data:\n", b"data\r\n", b"data: x\n"])
def test_p7_the_lines_of_an_event_are_accepted_up_to_their_limit(line: bytes) -> None:
    limits = FrameLimits(event_lines=5)
    for count in (4, 5):
        (frame,) = decode(line * count + b"\n", limits=limits)
        assert frame.data.count("\n") == count - 1
    with pytest.raises(BadFrame, match="event_lines 6 is over the limit: at most 5 is accepted"):
        decode(line * 6, limits=limits)


def test_p7_limits_are_for_each_event_and_keep_alives_do_not_count() -> None:
    limits = FrameLimits(line_bytes=8, event_bytes=2, event_lines=1)
    assert len(decode(b": ping\n\ndata: ab\n: ping\n: ping\n\n" * 50, limits=limits)) == 50


def test_what_came_before_a_breach_is_delivered_first() -> None:
    decoder = SseDecoder(FrameLimits(line_bytes=10))
    assert decoder.feed(b"data: a\n\ndata: 12345\n\ndata: b\n\n") == [SseFrame("a")]
    with pytest.raises(BadFrame):
        decoder.feed(b"data: c\n\n")


def test_a_decoder_that_refused_once_refuses_for_ever() -> None:
    decoder = SseDecoder(FrameLimits(event_lines=1))
    for chunk in (b"data: a\ndata: b\n\n", b"data: c\n\n", b"\n", b""):
        with pytest.raises(BadFrame, match="event_lines 2 "):
            decoder.feed(chunk)
    with pytest.raises(BadFrame, match="event_lines 2 "):
        decoder.finish()


def test_the_default_limits_are_those_documented() -> None:
    assert FrameLimits(8_388_608, 8_388_608, 65_536) == SSE_LIMITS


def test_p7_an_unfinished_line_in_tiny_chunks_costs_little_more_than_its_bytes() -> None:
    size, decoder = 200_000, SseDecoder()
    tracemalloc.start()
    try:
        for start in range(0, size, 2):
            decoder.feed(b"%02d" % (start % 97))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * size


# Time


@pytest.mark.parametrize("unit", [b"x", b":", b"\n", b"\r", b"\n\r", b"data:\n", b"data: a\n\n", b"\xf0"])
def test_p8_twice_the_bytes_cost_about_twice_the_time(unit: bytes) -> None:
    small, large = (pieces(unit * (size // len(unit)), 8) for size in (100_000, 200_000))
    assert growth(lambda chunks: decode(*chunks), small, large) < BAR


@pytest.mark.parametrize("event", [b"data: a\n\n", b"event: x\ndata: a\n\n", b"id: 1\ndata: a\n\n", b"\n\n"])
def test_p8_twice_the_whole_events_in_a_chunk_cost_about_twice_the_time(event: bytes) -> None:
    small, large = ([b"data: first\n\n", event * count] for count in (20_000, 40_000))
    assert growth(lambda chunks: decode(*chunks), small, large) < BAR


# Writing


def test_an_event_is_written_with_its_name_first() -> None:
    assert sse_event("a", "delta") == b"event: delta\ndata: a\n\n"


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\rb"])
def test_data_is_split_at_line_ends(text: str) -> None:
    assert sse_event(text) == b"data: a\ndata: b\n\n"


@pytest.mark.parametrize("name", ["a\nb", "a\r", "\r\ndata: forged"])
def test_a_name_with_a_line_end_is_refused(name: str) -> None:
    with pytest.raises(BadRequest, match="has a line end"):
        sse_event("a", name)


@given(st.text(), st.text().filter(lambda name: not {"\r", "\n"} & set(name)))
def test_a_written_event_is_read_back_with_line_feeds_for_line_ends(data: str, name: str) -> None:
    assert decode(sse_event(data, name)) == [SseFrame(normalised(data), name)]


@given(st.text(alphabet="\r\n a:"))
def test_every_mix_of_line_ends_is_read_back(data: str) -> None:
    assert decode(sse_event(data)) == [SseFrame(normalised(data))]


def test_surrogates_are_joined_or_replaced() -> None:
    assert decode(sse_event("a\ud83d\ude00b\ud83d")) == [SseFrame("a😀b\ufffd")]


def test_a_comment_is_a_keep_alive() -> None:
    assert sse_comment() == b":\n\n"
    assert sse_comment("ping") == b": ping\n\n"


@given(st.text())
def test_no_comment_becomes_an_event(text: str) -> None:
    assert decode(sse_comment(text) + b"data: a\n\n") == [SseFrame("a")]


def test_a_decoder_that_broke_a_limit_stays_dead_p7() -> None:
    decoder = SseDecoder(FrameLimits(line_bytes=10))
    assert len(decoder.feed(b"data: x\n\n")) == 1
    for chunk in (b"data: 12345\n\n", b"data: d\n\n"):
        with pytest.raises(BadFrame):
            decoder.feed(chunk)


def test_what_came_before_a_broken_limit_is_still_given_out_p7() -> None:
    decoder = SseDecoder(FrameLimits(event_lines=1))
    decoder.feed(b"data: x\n\n")
    assert [frame.data for frame in decoder.feed(b"data: a\n\ndata: b\ndata: c\n\n")] == ["a"]
    with pytest.raises(BadFrame):
        decoder.feed(b"data: d\n\n")
