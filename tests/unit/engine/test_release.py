"""When the client gets what (CHK-7): which read of the upstream lets which event out, in all three policies."""

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.roundtrip import writing
from testkit.splits import pieces_at
from tests.unit.engine.scene import (
    ASK,
    BERGEN,
    FORCE,
    LONG,
    NATIVE,
    NO_TOOLS,
    ONE,
    OSLO,
    REQUIRED,
    WRONG,
    ask,
    leaving,
    run,
    texts,
    written,
)
from toolspeak.engine.outbox import Outbox
from toolspeak.engine.refusal import HELD_CHARS
from toolspeak.engine.settings import Mode, Release, Settings
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
)
from toolspeak.testing import Scripted, called

EAGER = Settings(release=Release.EAGER)
CHECKED = Settings(release=Release.CHECKED)
BUFFERED = Settings(release=Release.BUFFERED)
FORCED = {release: Settings(mode=Mode.FORCE, release=release) for release in Release}
HEDGES = "I'm sorry, but I can't look that up, because I have no tools"
"""Opens like a refusal, and is one; its sentence does not end."""

NATIVE_CALL: list[Event] = [
    CallStarted("a", "get_weather", "a"),
    ArgsDelta("a", '{"city":'),
    ArgsDelta("a", ' "Oslo"}'),
    CallEnded("a"),
]


def behind(settings: Settings, pieces: Sequence[str]) -> list[int]:
    """Tell how many characters the client is behind after each read but the last."""
    left = leaving(settings, texts(*pieces))
    came = accumulate(map(len, pieces))
    shown = [
        sum(len(event.text) for reads, event in left if isinstance(event, TextDelta) and reads <= number)
        for number in range(1, len(pieces) + 1)
    ]
    return [total - seen for total, seen in zip(came, shown, strict=True)]


def kinds(left: Sequence[tuple[int, Event]]) -> list[tuple[int, str]]:
    return [(reads, type(event).__name__) for reads, event in left]


# ---------------------------------------------------------------- checked


@pytest.mark.parametrize("settings", [CHECKED, FORCED[Release.CHECKED]])
def test_checked_text_leaves_with_the_read_that_brought_it_chk7(settings: Settings) -> None:
    left = leaving(settings, texts("The weather", " in Oslo", " is cold."))
    assert left[:3] == [(1, TextDelta("The weather")), (2, TextDelta(" in Oslo")), (3, TextDelta(" is cold."))]
    assert kinds(left[3:]) == [(4, "Finished")]


def test_a_checked_native_call_leaves_when_it_is_whole_chk7() -> None:
    left = leaving(CHECKED, [*NATIVE_CALL, Finished(StopReason.CALLS)])
    assert kinds(left) == [(4, "CallStarted"), (4, "ArgsDelta"), (4, "CallEnded"), (5, "Finished")]


@pytest.mark.parametrize("dialect", [name for name in writing() if name not in ("decision_json", "inline_json")])
def test_a_checked_call_read_from_text_never_leaves_in_parts_chk7(dialect: str) -> None:
    settings = Settings(mode=Mode.FORCE, dialect=dialect)
    wrote = written(OSLO, dialect=dialect)
    left = leaving(settings, texts(*wrote))
    reads = {reads for reads, event in left if isinstance(event, CallStarted | ArgsDelta | CallEnded)}
    assert len(reads) == 1
    assert not [event for _, event in left if isinstance(event, TextDelta)]


def test_the_first_of_two_calls_does_not_wait_for_the_second_chk7() -> None:
    wrote = f"{written(OSLO)}\n", f"{written(BERGEN)}\n"
    left = leaving(FORCE, texts(*wrote))
    assert [reads for reads, event in left if isinstance(event, CallEnded)] == [1, 2]


def test_text_before_a_call_leaves_before_the_call_chk7() -> None:
    left = leaving(FORCE, texts("The weather? ", "Let me look.\n", written(OSLO)))
    assert kinds(left)[:2] == [(1, "TextDelta"), (2, "TextDelta")]
    assert kinds(left)[-2:] == [(3, "CallEnded"), (4, "Finished")] or kinds(left)[-2:] == [
        (4, "CallEnded"),
        (4, "Finished"),
    ]


@pytest.mark.parametrize("settings", [CHECKED, EAGER, FORCED[Release.CHECKED]])
def test_reasoning_leaves_as_it_comes_chk7(settings: Settings) -> None:
    left = leaving(
        settings, [ReasoningDelta("a"), ReasoningDelta("b"), TextDelta("The end."), Finished(StopReason.END)]
    )
    assert kinds(left)[:2] == [(1, "ReasoningDelta"), (2, "ReasoningDelta")]


def test_a_bad_call_leaves_nothing_of_itself_chk7() -> None:
    ran = run(FORCE, f"The weather? {LONG}\n{written(WRONG)}", written(OSLO))
    assert "town" not in ran.turn.text
    assert [event.name for event in ran.events if isinstance(event, CallStarted)] == ["get_weather"]


def test_code_that_is_no_call_streams_too_chk7() -> None:
    pieces = [LONG, "\n\n```python\n", "print(1)\n", "print(2)\n", "print(3)\n", "```\n", "That is all.\n", "Bye."]
    lag = behind(FORCE, pieces)
    assert max(lag[:1] + lag[2:]) <= len("```python\nprint(1)\nprint(2)\nprint(3)\n```\n")


# ---------------------------------------------------------------- the hold-back


WORDS = st.lists(
    st.sampled_from(["the", "weather", "is", "cold", "and", "1", "degree", "then", "it's", "—", "é", "天気", "so"]),
    min_size=1,
    max_size=120,
).map(" ".join)
OPENINGS = st.sampled_from(
    ["", "The ", "I'm sorry, ", "Sorry, but ", "I ", "As an AI, I ", "Leider ", "I don't ", HEDGES, "Unfortunately, "]
)


@given(OPENINGS, WORDS, st.lists(st.integers(0, 800), max_size=12))
def test_checked_text_is_never_more_than_the_hold_back_behind_chk7(opening: str, rest: str, places: list[int]) -> None:
    text = opening + rest
    pieces = pieces_at(text, sorted({place for place in places if 0 < place < len(text)}))
    for settings in (CHECKED, FORCED[Release.CHECKED]):
        assert max(behind(settings, pieces)) <= HELD_CHARS


@given(OPENINGS, WORDS)
def test_the_whole_text_has_left_at_the_end_p1(opening: str, rest: str) -> None:
    assert run(Settings(retries=0), opening + rest, chunk=17).turn.text == opening + rest


def test_what_does_not_open_like_a_refusal_is_held_for_a_word_or_two_chk7() -> None:
    assert behind(FORCE, ["The", " weather", " is", " cold."])[1:] == [0, 0, 0]


@pytest.mark.parametrize("size", [HELD_CHARS - 1, HELD_CHARS, HELD_CHARS + 1])
def test_what_may_be_a_refusal_is_held_up_to_the_limit_p7(size: int) -> None:
    text = (HEDGES + " and so on" * HELD_CHARS)[:size]
    out = Outbox()
    out.begin(Release.CHECKED, watches=True)
    left = [event for char in text for event in out.take([TextDelta(char)])]
    assert len(left) == (0 if size < HELD_CHARS else size)


def test_nothing_of_a_refusal_leaves_that_is_asked_again_chk7() -> None:
    ran = run(FORCE, NO_TOOLS, written(OSLO), chunk=1)
    assert [type(event) for event in ran.events] == [CallStarted, ArgsDelta, CallEnded, Finished]


def test_a_call_behind_what_may_be_a_refusal_keeps_its_place_chk7() -> None:
    left = leaving(FORCE, texts("I can't ", "wait.\n\n", written(OSLO) + "\n"))
    assert [type(event) for _, event in left if not isinstance(event, TextDelta)] == [
        CallStarted,
        ArgsDelta,
        CallEnded,
        Finished,
    ]
    first = next(event for _, event in left)
    assert isinstance(first, TextDelta)


def test_once_it_is_no_refusal_everything_streams_chk7() -> None:
    lag = behind(FORCE, ["I'm sorry", ", ", "the weather", " is bad", " today", "."])
    assert lag[2:] == [0, 0, 0, 0]


# ---------------------------------------------------------------- eager


def test_an_eager_native_call_leaves_as_it_grows_chk7() -> None:
    left = leaving(EAGER, [*NATIVE_CALL, Finished(StopReason.CALLS)])
    assert left[:4] == list(enumerate(NATIVE_CALL, start=1))
    assert kinds(left)[4:] == [(5, "Finished")]


@pytest.mark.parametrize("name", ["shell", "GetWeather", "functions.get_weather"])
def test_eager_waits_for_the_end_where_the_name_is_not_right_as_it_is_chk7(name: str) -> None:
    events = [CallStarted("a", name, "a"), *NATIVE_CALL[1:], Finished(StopReason.CALLS)]
    left = leaving(Settings(release=Release.EAGER, retries=0), events)
    assert [reads for reads, event in left if isinstance(event, CallStarted)] in ([], [4])


def test_an_eager_call_beyond_the_allowed_number_does_not_leave_chk7() -> None:
    second = called("now", "{}", "b")
    left = leaving(EAGER, [*NATIVE_CALL, *second, Finished(StopReason.CALLS)], ask(choice=ONE))
    assert [event.id for _, event in left if isinstance(event, CallStarted)] == ["a"]


def test_eager_interleaved_calls_stay_apart_chk7() -> None:
    other = [CallStarted("b", "now", "b"), ArgsDelta("b", "{}"), CallEnded("b")]
    mixed: list[Event] = [NATIVE_CALL[0], other[0], NATIVE_CALL[1], other[1], NATIVE_CALL[2], NATIVE_CALL[3], other[2]]
    ran = run(EAGER, mixed)
    assert ran.calls == [("get_weather", {"city": "Oslo"}), ("now", {})]
    assert ran.events[:-1] == mixed


def test_eager_calls_read_from_text_leave_when_whole_chk7() -> None:
    left = leaving(FORCED[Release.EAGER], texts(*written(OSLO)))
    assert len({reads for reads, event in left if not isinstance(event, Finished)}) == 1


# ---------------------------------------------------------------- buffered


@pytest.mark.parametrize("settings", [BUFFERED, FORCED[Release.BUFFERED]])
@pytest.mark.parametrize(
    "answer",
    [
        texts("The weather", " is cold."),
        [ReasoningDelta("hm"), *texts("The ", "end.")],
        [TextDelta("The call:"), *NATIVE_CALL, Finished(StopReason.CALLS)],
    ],
)
def test_buffered_lets_nothing_out_before_the_end_chk7(settings: Settings, answer: Sequence[Event]) -> None:
    left = leaving(settings, answer)
    assert {reads for reads, _ in left} == {len(answer)}


@pytest.mark.parametrize("settings", [NATIVE, EAGER, FORCE])
def test_a_required_call_holds_everything_chk7(settings: Settings) -> None:
    answer = [TextDelta("The call: "), *NATIVE_CALL, Finished(StopReason.CALLS)]
    left = leaving(settings, answer, ask(choice=REQUIRED))
    assert {reads for reads, _ in left} == {len(answer)}


# ---------------------------------------------------------------- all of them


SCRIPTS: dict[str, tuple[Scripted, ...]] = {
    "text": ("The weather is cold.",),
    "call": (written(OSLO),),
    "bad, then right": (written(WRONG), written(OSLO)),
    "always bad": (written(WRONG),) * 3,
    "refusal": (NO_TOOLS, "The weather is cold."),
    "empty": ("", "", ""),
    "native": (called("get_weather", '{"city": "Oslo"}'),),
    "text and native": ([TextDelta(LONG), *called("get_weather", '{"city": "Oslo"}')],),
    "nothing at all": (),
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("release", Release)
def test_every_turn_ends_once_and_with_its_last_event_p6(
    release: Release, mode: Mode, script: tuple[Scripted, ...]
) -> None:
    ran = run(Settings(mode=mode, release=release), *script)
    ends = [number for number, event in enumerate(ran.events) if isinstance(event, Finished | Failed)]
    assert ends == [len(ran.events) - 1]
    open_calls: set[str] = set()
    for event in ran.events:
        open_calls ^= {event.id} if isinstance(event, CallStarted | CallEnded) else set()
    assert not open_calls


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
@pytest.mark.parametrize("mode", [Mode.FORCE, Mode.AUTO])
def test_all_policies_come_to_the_same_answer_chk7(mode: Mode, script: tuple[Scripted, ...]) -> None:
    turns = [run(Settings(mode=mode, release=release), *script, request=ASK).turn for release in Release]
    assert turns[0] == turns[1] == turns[2]
