"""Plain text passes unread, and nothing that leaves, or becomes of a turn, depends on that."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import pytest

from testkit.golden import Case, cases
from testkit.splits import at_random, by_characters
from tests.unit.engine.scene import ASK, FORCE, LONG, NATIVE, NO_TOOLS, OSLO, leaving, program, texts, user, written
from toolspeak.engine import answer_reader
from toolspeak.engine.answer_reader import AnswerReader
from toolspeak.engine.effects import Emit, Open, Outcome, Pull
from toolspeak.engine.settings import Mode, Settings
from toolspeak.engine.text_lane import TextLane
from toolspeak.ir.event import Event, Finished, StopReason, TextDelta
from toolspeak.ir.request import Request

Steps = list[tuple[int, tuple[object, ...]]]
"""What has left after how many reads: a text, or an event of another kind."""
OFF = Settings(mode=Mode.OFF)


def taken(
    settings: Settings, batches: Iterable[list[Event]], request: Request
) -> tuple[list[tuple[int, Event]], Outcome | None]:
    """Take a turn whose first answer is these batches, one a read; further answers are empty."""
    turn = program(settings, request)
    rest = iter(batches)
    end: list[Event] = [Finished(StopReason.END)]
    left: list[tuple[int, Event]] = []
    given: list[Event] | None = None
    reads = requests = 0
    try:
        while True:
            effect = turn.send(given)
            given = None
            if isinstance(effect, Emit | Pull):
                left += [(reads, event) for event in effect.events]
            if isinstance(effect, Open):
                requests += 1
            if isinstance(effect, Pull):
                reads += 1
                given = next(rest, end) if requests == 1 else end
    except StopIteration as stop:
        return left, stop.value


def joined(left: list[tuple[int, Event]]) -> Steps:
    """Join the pieces of text that left after the same read."""
    steps: Steps = []
    for (read, is_text), run in groupby(left, lambda each: (each[0], isinstance(each[1], TextDelta))):
        events = [event for _, event in run]
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        steps.append((read, (text,) if is_text else tuple(events)))
    return steps


def both_ways(settings: Settings, pieces: Sequence[str], request: Request = ASK) -> Steps:
    """Take a turn with the lane and without it, check that they are the same, and return what left."""
    batches = [[event] for event in texts(*pieces)]
    with_lane = taken(settings, batches, request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextLane, "reopen", stays_closed)
        without = taken(settings, batches, request)
    steps = joined(with_lane[0])
    assert steps == joined(without[0])
    one, other = with_lane[1], without[1]
    assert one is not None
    assert other is not None
    assert (one.turn, one.complaints, one.rejected, one.warnings) == (
        other.turn,
        other.complaints,
        other.rejected,
        other.warnings,
    )
    return steps


def stays_closed(lane: TextLane) -> None:
    """Open nothing."""
    del lane


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the texts that pass unread, as they do."""
    found: list[str] = []
    takes = TextLane.takes

    def noted(lane: TextLane, batch: Sequence[Event]) -> bool:
        is_taken = takes(lane, batch)
        if is_taken:
            found.extend(event.text for event in batch if isinstance(event, TextDelta))
        return is_taken

    monkeypatch.setattr(TextLane, "takes", noted)
    return found


@pytest.mark.parametrize("settings", [OFF, NATIVE, FORCE], ids=["off", "native", "force"])
def test_plain_text_passes_unread_and_leaves_at_once(settings: Settings, passed: list[str]) -> None:
    words = [f"word {number}, " for number in range(300)]
    left = leaving(settings, texts(LONG, *words))
    assert len(passed) > len(words) * 0.9
    assert [(read, event.text) for read, event in left if isinstance(event, TextDelta) and read > 1] == [
        (number + 2, word) for number, word in enumerate(words)
    ]


def test_the_reader_gets_all_that_passed_in_few_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    feed = AnswerReader.feed

    def noted(reader: AnswerReader, events: Sequence[Event]) -> list[Event]:
        read.append(sum(len(event.text) for event in events if isinstance(event, TextDelta)))
        return feed(reader, events)

    monkeypatch.setattr(AnswerReader, "feed", noted)
    words = [f"word {number}, " for number in range(1000)]
    leaving(FORCE, texts(LONG, *words))
    assert sum(read) == len(LONG) + len("".join(words))
    assert len(read) < len(words) / 20
    assert max(read) <= 4096


@pytest.mark.parametrize("settings", [NATIVE, FORCE], ids=["native", "force"])
def test_text_that_may_be_a_refusal_does_not_pass(settings: Settings, passed: list[str]) -> None:
    both_ways(settings, by_characters(NO_TOOLS))
    assert not passed or settings is FORCE


@pytest.mark.parametrize("mark", ["```", "<", "\n", "[", "“<", "'["])
def test_text_in_which_a_marker_may_begin_does_not_pass(mark: str, passed: list[str]) -> None:
    both_ways(FORCE, [LONG, "plain, ", f"then {mark}", " and on"])
    assert f"then {mark}" not in passed
    assert "plain, " in passed


def test_an_apostrophe_is_plain_unless_it_ends_the_chunk(passed: list[str]) -> None:
    both_ways(NATIVE, [LONG, "it's", " fine'", " so"])
    assert "it's" in passed
    assert " fine'" not in passed


def test_nothing_passes_where_the_client_has_stop_sequences(passed: list[str]) -> None:
    request = Request("m", ASK.messages, ASK.tools, sampling=type(ASK.sampling)(stop=("END",)), stream=True)
    steps = both_ways(FORCE, [LONG, "one ", "E", "ND", "two"], request)
    assert not passed
    assert "".join(str(text) for _, (text, *_) in steps if isinstance(text, str)) == f"{LONG}one "


def test_the_limit_of_an_answer_is_as_exact_as_without_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in range(len(LONG) + 90, len(LONG) + 130, 3):
        monkeypatch.setattr(answer_reader, "MOST_CHARACTERS", most)
        both_ways(FORCE, [LONG, *["word "] * 40])
        both_ways(OFF, [LONG, *["word "] * 40])


def test_what_leaves_does_not_depend_on_how_many_texts_come_in_one_read() -> None:
    def left(*batches: list[Event]) -> list[Event]:
        return [event for _, event in taken(NATIVE, batches, ASK)[0]]

    first, together = texts(LONG)[:1], texts("so f", "or some", " time")[:3]
    found = left(first, together)
    assert found == left(first, *[[each] for each in together])
    assert found[1:3] == [TextDelta("so "), TextDelta("for some")]


def test_a_call_after_text_that_passed_is_read() -> None:
    steps = both_ways(FORCE, by_characters(f"{LONG}\n{written(OSLO)}"))
    assert any("CallStarted" in repr(event) for _, event in steps)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_all_known_answers_give_the_same_with_and_without_the_lane(case: Case) -> None:
    if not case.raw or not case.tools:
        return
    request = Request("m", (user("Go on."),), case.tools, stream=True)
    settings = [Settings(mode=Mode.FORCE, retries=0), Settings(retries=0)]
    for setting in settings:
        for pieces in (by_characters(case.raw)[:3000], *at_random(case.raw, 3, 11)):
            both_ways(setting, [LONG, *pieces], request)
