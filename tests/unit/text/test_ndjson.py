"""Newline-delimited JSON: lines, invisible chunking, limits (P7), linear time (P8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.timing import BAR, growth
from toolspeak.errors import BadFrame, BadRequest
from toolspeak.text.lines import NDJSON_LIMITS, FrameLimits, NdjsonDecoder, ndjson_line

BOM = b"\xef\xbb\xbf"
STREAMS = [
    b'{"a":1}\n{"b":2}\n',
    b'{"a":1}\r\n\r\n \t\n{"b":2}',
    BOM + '{"größe":"€"}\n["😀\u2028"]\r\n'.encode(),
    b'"\xe2\x82"\n"\xff"\n\n\xc3',
]


def decode(*chunks: bytes, limits: FrameLimits = NDJSON_LIMITS) -> list[str]:
    """Feed the chunks to a new decoder, and finish."""
    decoder = NdjsonDecoder(limits)
    texts = [text for chunk in chunks for text in decoder.feed(chunk)]
    return texts + decoder.finish()


def pieces(stream: bytes, size: int) -> list[bytes]:
    """Cut a stream into chunks of one size."""
    return [stream[start : start + size] for start in range(0, len(stream), size)]


def test_each_line_is_a_text() -> None:
    assert decode(b'{"a":1}\n{"b":2}\n') == ['{"a":1}', '{"b":2}']


def test_blank_lines_are_skipped() -> None:
    assert decode(b"\n\n1\n \t \n\r\n2\n\n") == ["1", "2"]


def test_a_crlf_is_one_line_end() -> None:
    assert decode(b"1\r\n2\r", b"\n3\r\n") == ["1", "2", "3"]


def test_blanks_around_a_text_are_kept() -> None:
    assert decode(b" 1 \n") == [" 1 "]


def test_the_last_line_needs_no_end() -> None:
    decoder = NdjsonDecoder()
    assert decoder.feed(b"1\n2") == ["1"]
    assert [decoder.finish(), decoder.finish()] == [["2"], []]


@pytest.mark.parametrize("stream", [BOM + b"1\n2\n", BOM + b"1\n2"])
def test_a_bom_is_removed_at_the_start(stream: bytes) -> None:
    assert decode(stream) == ["1", "2"]


def test_invalid_bytes_become_replacement_characters() -> None:
    assert decode(b'"\xe2\x82"\n"\xff') == ['"\ufffd"', '"\ufffd']


@pytest.mark.parametrize("stream", STREAMS)
def test_every_cut_in_two_gives_the_same_texts(stream: bytes) -> None:
    whole = decode(stream)
    assert whole
    for cut in range(len(stream) + 1):
        assert decode(stream[:cut], stream[cut:]) == whole


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_small_chunks_give_the_same_texts(stream: bytes, size: int) -> None:
    assert decode(*pieces(stream, size)) == decode(stream)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_p7_a_line_is_accepted_up_to_its_limit(end: bytes, size: int) -> None:
    limits = FrameLimits(line_bytes=10)
    for length in (9, 10):
        assert decode(*pieces(b"x" * length + end, size), limits=limits) == ["x" * length]
    with pytest.raises(BadFrame, match=r"line_bytes 1\d is over the limit: at most 10 is accepted"):
        decode(*pieces(b"x" * 11 + end, size), limits=limits)


def test_what_came_before_a_breach_is_delivered_and_then_every_call_refuses() -> None:
    decoder = NdjsonDecoder(FrameLimits(line_bytes=3))
    assert decoder.feed(b"1\n1234\n2\n") == ["1"]
    for chunk in (b"2\n", b""):
        with pytest.raises(BadFrame, match="line_bytes 4 "):
            decoder.feed(chunk)
    with pytest.raises(BadFrame, match="line_bytes 4 "):
        decoder.finish()


@pytest.mark.parametrize("unit", [b"x", b" ", b"\n", b"\r", b"1\n"])
def test_p8_twice_the_bytes_cost_about_twice_the_time(unit: bytes) -> None:
    small, large = (pieces(unit * (size // len(unit)), 8) for size in (100_000, 200_000))
    assert growth(lambda chunks: decode(*chunks), small, large) < BAR


def test_a_text_is_written_as_one_line() -> None:
    assert ndjson_line('{"a":"€"}') == '{"a":"€"}\n'.encode()


@pytest.mark.parametrize("text", ["1\n2", "1\n", "1\r2", "\r\n"])
def test_a_text_with_a_line_end_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="has a line end"):
        ndjson_line(text)


def test_a_long_refused_text_is_not_repeated_in_full() -> None:
    with pytest.raises(BadRequest) as caught:
        ndjson_line("x" * 10_000 + "\n")
    assert len(str(caught.value)) < 200


@given(st.lists(st.text().filter(lambda text: text.strip(" \t") and not {"\r", "\n"} & set(text))))
def test_written_texts_are_read_back(texts: list[str]) -> None:
    assert decode(b"0\n", *map(ndjson_line, texts)) == ["0", *texts]


def test_surrogates_are_joined_or_replaced() -> None:
    assert decode(ndjson_line('"\ud83d\ude00\ud83d"')) == ['"😀\ufffd"']
