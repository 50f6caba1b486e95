"""Output is capped while it is read, and harmless to show (RUN-4, RUN-5)."""

from hypothesis import given
from hypothesis import strategies as st

from toolspeak.agent.sandbox.process import Capped, harmless


def capped(most: int, *chunks: bytes) -> Capped:
    found = Capped(most)
    for chunk in chunks:
        found.take(chunk)
    return found


def test_what_fits_is_kept_whole_run4() -> None:
    found = capped(8, b"abc", b"defgh")
    assert (found.text, found.left_out) == ("abcdefgh", 0)


def test_of_what_does_not_fit_head_and_tail_are_kept_run4() -> None:
    found = capped(8, b"0123456", b"789abcdef")
    assert found.text == "0123\n[… 8 bytes left out …]\ncdef"


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(2, 30))
def test_chunks_do_not_show_and_little_is_held_run4(chunks: list[bytes], most: int) -> None:
    found, whole = capped(most, *chunks), capped(most, b"".join(chunks))
    assert (found.text, found.left_out) == (whole.text, whole.left_out)
    assert len(found._head) + len(found._tail) <= most


@given(st.binary(max_size=200))
def test_whatever_comes_nothing_of_it_moves_a_terminal_run5(data: bytes) -> None:
    text = capped(1000, data).text
    assert all(char in "\n\t\u3000" or char.isprintable() for char in text)


def test_escapes_are_seen_run5() -> None:
    assert harmless("\x1b[2J\x07 a\u202eb\u200b\r\nc\rd\x9b") == "\\x1b[2J\\x07 a\\u202eb\\u200b\nc\nd\\x9b"
