"""The client's stop sequences, applied to visible text: the same however it is cut, and never to a call."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from testkit.roundtrip import writing
from testkit.splits import pieces_at
from tests.unit.engine.scene import DECISION, FORCE, LONG, NATIVE, ask, leaving, program, run, texts, writer, written
from tests.unit.engine.test_release import behind
from toolspeak.engine.answer_reader import StopText
from toolspeak.engine.effects import Emit
from toolspeak.engine.settings import Mode, Settings
from toolspeak.ir.event import CallEnded, Event, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.message import Call

STOP = ask(stop=("STOP",))


def shown(stops: Sequence[str], pieces: Sequence[str]) -> tuple[str, str]:
    """Return what is shown of a text, and what stopped it."""
    text = StopText(stops)
    return "".join(map(text.feed, pieces)) + text.finish(), text.found


def slowly(stops: Sequence[str], text: str) -> tuple[str, str]:
    """Say it as a server does that looks after each character: the first sequence that is whole ends the text."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if found:
            longest = max(found, key=len)
            return text[: end - len(longest)], longest
    return text, ""


LETTERS = st.text("abc", max_size=20)
STOPS = st.lists(st.text("abc", max_size=4), max_size=4)


@given(STOPS, LETTERS, st.lists(st.integers(1, 19), max_size=6))
@example(["xyz", "y"], "xyz", [2])
@example(["ab", "abc"], "abc", [2])
@example(["bc", "abcd"], "abcd", [3])
@example([""], "abc", [])
def test_how_the_text_is_cut_does_not_matter_inl2(stops: list[str], text: str, places: list[int]) -> None:
    pieces = pieces_at(text, sorted({place for place in places if place < len(text)}))
    assert shown(stops, pieces) == shown(stops, [text]) == shown(stops, list(text)) == slowly(stops, text)


@given(STOPS, LETTERS)
def test_only_what_may_become_a_sequence_is_held_p7(stops: list[str], text: str) -> None:
    stopping = StopText(stops)
    longest = max(map(len, stops), default=0)
    left = 0
    for came, char in enumerate(text, start=1):
        left += len(stopping.feed(char))
        assert stopping.found or came - left < max(longest, 1)


def test_without_sequences_everything_passes_at_once() -> None:
    assert shown((), ["a", "b"]) == ("ab", "")
    assert shown(("",), ["a", "b"]) == ("ab", "")


def test_nothing_comes_after_the_sequence() -> None:
    assert shown(("b",), ["ab", "cb", "d"]) == ("a", "b")


# ---------------------------------------------------------------- in a turn


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_the_text_ends_before_the_client_s_stop_sequence_inl7(chunk: int) -> None:
    ran = run(FORCE, "The weather is cold. STOP It is warm.", request=STOP, chunk=chunk)
    assert (ran.turn.text, ran.turn.stop_sequence, ran.turn.stop) == ("The weather is cold. ", "STOP", StopReason.END)


def test_the_upstream_is_closed_at_the_stop_sequence_inl7() -> None:
    ran = run(FORCE, "The weather is cold. STOP " + LONG, request=STOP)
    assert ran.upstream.closed == 1
    assert run(FORCE, "The weather is cold.", request=STOP).upstream.closed == 0


def test_usage_that_came_with_the_stop_sequence_counts_mode9() -> None:
    turn = program(FORCE, STOP)
    turn.send(None)
    turn.send(None)
    emitted = turn.send([TextDelta("The weather STOP more"), Finished(StopReason.END, Usage(10, 5))])
    ended = turn.send(None) if isinstance(emitted, Emit) and len(emitted.events) == 1 else emitted
    assert isinstance(ended, Emit)
    assert ended.events[-1] == Finished(StopReason.END, Usage(10, 5), "STOP")


@pytest.mark.parametrize("dialect", writing())
def test_a_stop_sequence_inside_a_call_cuts_nothing_inl7(dialect: str) -> None:
    call = Call("c1", "get_weather", '{"city": "STOP it"}')
    settings = Settings(mode=Mode.FORCE, dialect=dialect)
    assert run(settings, written(call, dialect=dialect), request=STOP).calls == [("get_weather", {"city": "STOP it"})]


@pytest.mark.parametrize("settings", [FORCE, DECISION])
def test_the_client_s_sequences_do_not_go_upstream_where_they_could_cut_a_call_inl7(settings: Settings) -> None:
    sent = run(settings, '{"tools": []}', "Cold.", request=STOP).sent
    assert "STOP" not in sent[0].sampling.stop
    assert sent[0].sampling.stop == writer("fenced" if settings is FORCE else "decision_json").stop[:4]
    assert [request.sampling.stop for request in sent[1:]] == ([("STOP",)] if settings is DECISION else [])


def test_natively_the_upstream_stops_itself_mode5() -> None:
    ran = run(NATIVE, [TextDelta("Cold. "), Finished(StopReason.END, Usage(), "STOP")], request=STOP)
    assert ran.sent[0].sampling.stop == ("STOP",)
    assert ran.turn.stop_sequence == "STOP"


def test_text_that_cannot_become_a_sequence_is_not_held_chk7() -> None:
    left = leaving(FORCE, texts("The weather", " is cold", " S", "O", " be it."), STOP)
    assert [reads for reads, event in left if isinstance(event, TextDelta)] == [1, 2, 3, 4, 5]
    assert max(behind(FORCE, ["The weather", " is cold."])) == 0


def test_a_call_before_the_stop_sequence_is_delivered_inl7() -> None:
    call = Call("c1", "get_weather", '{"city": "Oslo"}')
    ran = run(FORCE, f"{written(call)}\nI wait. STOP", request=STOP)
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert ran.turn.stop is StopReason.CALLS


def test_a_stop_sequence_at_once_leaves_an_empty_text_and_no_second_request_chk5() -> None:
    ran = run(FORCE, "STOP", "The weather", request=STOP)
    assert (ran.turn.text, ran.turn.stop_sequence, ran.outcome.requests) == ("", "STOP", 1)
    natively: list[Event] = [Finished(StopReason.END, Usage(), "STOP")]
    assert run(NATIVE, natively, "The weather", request=STOP).outcome.requests == 1


def ends(events: Sequence[Event]) -> int:
    return sum(isinstance(event, CallEnded) for event in events)


def test_no_call_after_the_stop_sequence_is_delivered_inl7() -> None:
    call = Call("c1", "get_weather", '{"city": "Oslo"}')
    ran = run(FORCE, f"That is all. STOP\n{written(call)}", request=STOP)
    assert (ends(ran.events), ran.turn.text) == (0, "That is all. ")
