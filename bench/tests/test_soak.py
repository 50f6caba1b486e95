"""`just soak` and `just cost-curve`: their rules, their two ends over a real gateway, and what their judges detect."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench import paced, soak
from bench.cost_curve import Cell, Wrong, best, carried, check, rate_of
from bench.fleet.checks import Answer, Question, Verdict
from bench.paced import EMULATED, MODELS, NATIVE, Injected, Request, Talk, ask, gateway
from bench.soak import (
    FAULTS,
    Busy,
    Memory,
    Tally,
    fault_of,
    faults_of,
    is_right,
    judge_process,
    judged,
    memory_of,
    quantile,
)
from testkit.grammar import WIRES
from toolspeak.config.shape import Driver

MANY = 21 * len(FAULTS) * len(WIRES) * 6
CALM = [(float(second), 100.0 + second % 3) for second in range(1000)]
QUICK = [1.0] * 1000
EASY = Busy(0.7, 0.05, 10_000.0, 0.6)


def complete() -> Tally:
    """Return a tally in which every fault was made, and nothing else happened."""
    return Tally(injected={fault: Counter({Verdict.ERROR: 1}) for fault in FAULTS})


# ---------------------------------------------------------------- the verdicts


def test_a_calm_run_has_no_fault() -> None:
    assert faults_of(memory_of(CALM), QUICK, complete(), EASY) == []


def test_growing_memory_is_noticed_and_growth_in_the_warm_up_is_not() -> None:
    leak = memory_of([(second, 100 + second / 60) for second in range(1000)])
    assert leak.mb_per_hour == pytest.approx(60)
    assert leak.growth == pytest.approx((100 + 899.5 / 60) / (100 + 299.5 / 60) - 1)
    (fault,) = faults_of(leak, QUICK, complete(), EASY)
    assert fault == "memory went from 105.0 to 115.0 MB"
    warming = memory_of([(second, min(50.0 + second, 200.0)) for second in range(1000)])
    assert warming == Memory(200.0, 200.0, 0.0)


def test_two_late_measurements_of_a_thousand_are_too_many_and_one_is_not() -> None:
    memory = memory_of(CALM)
    assert faults_of(memory, [*QUICK[:999], 500.0], complete(), EASY) == []
    (fault,) = faults_of(memory, [*QUICK[:998], 20.0, 500.0], complete(), EASY)
    assert fault == "the event loop was 20.0 ms late in one of 1,000 measurements"
    assert [quantile([3.0, 1.0, 2.0, 4.0], share) for share in (0.25, 0.5, 0.51, 1.0)] == [1.0, 2.0, 3.0, 4.0]


def test_a_fault_that_was_never_made_fails_the_run() -> None:
    tally = complete()
    tally.injected[Injected.STALL].clear()
    assert faults_of(memory_of(CALM), QUICK, tally, EASY) == ["these faults were never made: stall"]


@pytest.mark.parametrize("busy", [Busy(0.7, 0.3, 9000.0, 0.6), Busy(0.7, 0.05, 9000.0, 0.97)])
def test_a_run_without_time_on_a_core_proves_nothing(busy: Busy) -> None:
    (fault,) = faults_of(memory_of(CALM), QUICK, complete(), busy)
    assert fault.startswith("a core was full: the gateway ran for 70% of the time")


@pytest.mark.parametrize(
    ("injected", "verdict", "errors"),
    [
        (Injected.NONE, Verdict.RIGHT, 0),
        (Injected.NONE, Verdict.ERROR, 1),
        (Injected.NONE, Verdict.BROKEN_OFF, 1),
        (Injected.RESET, Verdict.ERROR, 0),
        (Injected.RESET, Verdict.RIGHT, 0),
        (Injected.RESET, Verdict.LOST, 1),
        (Injected.RESET, Verdict.MIXED, 1),
        (Injected.STALL, Verdict.WRONG, 1),
        (Injected.LEAVES, Verdict.BROKEN_OFF, 0),
        (Injected.LEAVES, Verdict.ERROR, 1),
        (Injected.READS_SLOWLY, Verdict.RIGHT, 0),
        (Injected.READS_SLOWLY, Verdict.ERROR, 1),
    ],
)
def test_only_what_a_fault_explains_is_no_error(injected: Injected, verdict: Verdict, errors: int) -> None:
    tally = complete()
    tally.add(Request(Question(5, "ollama", 3), NATIVE, injected), verdict, "so")
    assert tally.errors == errors
    said = f"1 errors were not injected, such as: request 5 on ollama, native, injected {injected}: {verdict}: so"
    assert faults_of(memory_of(CALM), QUICK, tally, EASY) == ([said] if errors else [])


def test_answers_are_judged_in_a_process_that_yields_to_the_load() -> None:
    request = Request(Question(5, "openai_chat", 3), NATIVE)
    answer = Answer(request.question, 0.0, 1.0, 200, b'data: {"choices": []}\n\n', ended=True)
    with judge_process() as judges:
        assert judges.submit(os.nice, 0).result() == 19
        assert judges.submit(os.getpid).result() != os.getpid()
        assert judges.submit(judged, request, answer).result() == judged(request, answer) != (Verdict.RIGHT, "")


# ---------------------------------------------------------------- the schedule


@pytest.mark.parametrize(("make", "kinds"), [(soak.stream_of, FAULTS), (soak.small_of, tuple(paced.STATUSES))])
def test_each_protocol_and_model_gets_each_fault_and_20_of_21_requests_none(
    make: Callable[[int], Request], kinds: tuple[Injected, ...]
) -> None:
    requests = [make(number) for number in range(MANY)]
    hit = [one for one in requests if one.injected is not Injected.NONE]
    assert len(hit) == MANY // 21
    seen = {(one.injected, one.question.wire, one.model) for one in hit}
    assert seen == {(kind, wire, model) for kind in kinds for wire in WIRES for model in MODELS}


def test_streams_have_lengths_within_bounds_and_a_first_one_of_its_own() -> None:
    lengths = {soak.stream_of(number).question.chunks for number in range(1000)}
    assert (min(lengths), max(lengths)) == (200, 399)
    assert soak.stream_of(7, 3).question.chunks == 3


# ---------------------------------------------------------------- both ends, with a gateway


async def asked(driver: Driver, files: Path) -> list[tuple[Request, Answer]]:
    """Ask a gateway on every protocol for streams with and without a fault, and for small answers."""
    talk = Talk(0.02)
    kinds = [kind for kind in Injected if kind is not Injected.STALL]  # five seconds; `just soak` has it
    streams = [
        Request(
            Question(number, WIRES[number % 5], 12, calls=number % 3 == 0), MODELS[number // 5 % 2], kinds[number % 8]
        )
        for number in range(40)
    ]
    small = [
        Request(Question(100 + number, wire, 8, streams=False), model, fault_of(21 * number, streams=False))
        for number, (wire, model) in enumerate((wire, model) for wire in WIRES[:3] for model in MODELS)
    ]
    right = [Request(Question(200 + number, wire, 8, streams=False), EMULATED) for number, wire in enumerate(WIRES)]
    async with gateway(talk, driver, files) as running, asyncio.TaskGroup() as group:
        tasks: list[tuple[Request, asyncio.Task[Answer]]] = []
        for one in (*streams, *small, *right):
            tasks.append((one, group.create_task(ask(one, running.port, talk.pace_s))))
            await asyncio.sleep(0.01)
    return [(request, task.result()) for request, task in tasks]


@pytest.mark.parametrize("driver", list(Driver))
def test_a_gateway_ends_each_stream_as_its_fault_allows_and_nothing_else_fails(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paced, "SLOW_S", 0.1)
    tally = Tally()
    answers = asyncio.run(asked(driver, tmp_path))
    for request, answer in answers:
        tally.add(request, *judged(request, answer))
    assert (tally.requests, tally.small, tally.details) == (51, 11, [])
    counts = tally.injected
    assert counts[Injected.LEAVES][Verdict.BROKEN_OFF]  # on a busy machine all may come before a client can leave
    assert counts[Injected.READS_SLOWLY] == {Verdict.RIGHT: 5}
    assert all(set(counts[fault]) <= soak.HONEST and counts[fault] for fault in (*paced.STATUSES, Injected.CUT))
    assert counts[Injected.RESET] == {Verdict.ERROR: 5}
    # what is right at a glance is right for the grammar too, and here the glance is enough
    glances = [
        is_right(answer) for request, answer in answers if request.injected in (Injected.NONE, Injected.READS_SLOWLY)
    ]
    assert sum(glances) == 10
    assert all(soak.judge(answer, ())[0] is Verdict.RIGHT for _, answer in answers if is_right(answer))


def heard(number: int, words: str, end: str = "[DONE]") -> Answer:
    body = f'data: {{"content": "{words}"}}\n\ndata: {end}\n\n'.encode()
    return Answer(Question(number, "openai_chat", 3), 0.0, 1.0, 200, body, ended=True)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (heard(7, "w7x0 w7x1 w7x2"), True),
        (heard(7, "w7x0 w7x1"), False),
        (heard(7, "w7x0 w7x2 w7x1"), False),
        (heard(7, "w7x0 w7x1 w8x2"), False),
        (heard(7, "w7x0 w7x1 w7x2 w7x0"), False),
        (heard(7, "w7x0 w7x1 w7x2", "cut"), False),
        (replace(heard(7, "w7x0 w7x1 w7x2"), ended=False), False),
        (replace(heard(7, "w7x0 w7x1 w7x2"), status=500), False),
        (replace(heard(7, "w7x0 w7x1 w7x2"), question=Question(7, "openai_chat", 3, calls=True)), False),
    ],
)
def test_a_glance_finds_what_is_missing_mixed_or_cut(answer: Answer, right: bool) -> None:
    assert is_right(answer) is right


def test_a_client_that_left_is_excused_for_the_end_and_not_for_words_of_another() -> None:
    left = Request(Question(7, "openai_chat", 3), NATIVE, Injected.LEAVES)
    assert judged(left, replace(heard(7, "w7x0"), ended=False))[0] is Verdict.BROKEN_OFF
    assert judged(left, replace(heard(7, "w9x0"), ended=False))[0] is Verdict.MIXED
    assert judged(left, replace(heard(7, "w7x0"), ended=False, timed_out=True))[0] is Verdict.LOST


# ---------------------------------------------------------------- the cost curve

CELL = Cell(Driver.PUSH, 100, 30.0, 50.0, 0.01, 70.0, 75.0, 77.0, 0.2, 0.0, 0.1)


def test_the_cheapest_chunk_and_the_median_memory_are_kept() -> None:
    kept = best([CELL, replace(CELL, chunk_us=60.0, open_mb=77.0, speaking_mb=79.0)])
    assert (kept["chunk_us"], kept["open_kb_per_stream"], kept["kb_per_stream"]) == (50.0, 60.0, 80.0)


def test_a_crowded_round_that_looks_cheap_is_kept_only_if_all_are_crowded() -> None:
    crowded = replace(CELL, chunk_us=30.0, waited=0.75)
    assert best([crowded, CELL])["chunk_us"] == 50.0
    assert best([crowded, replace(crowded, chunk_us=20.0)])["chunk_us"] == 20.0


def test_a_core_carries_what_the_cost_of_the_nearest_number_says() -> None:
    assert carried({10: 100.0, 1000: 40.0, 4000: 50.0}, 30.0) == (833, 1000)
    assert carried({10: 100.0, 100: 80.0}, 30.0) == (416, 100)


def test_many_streams_get_fewer_chunks_each_so_that_the_sum_stays_below_the_bound() -> None:
    assert [rate_of(count) for count in (1, 100, 1000, 4000)] == [30.0, 30.0, 6.0, 1.5]


def test_a_stream_that_lacks_a_word_ends_the_measurement() -> None:
    answer = heard(7, "w7x0 w7x1 w7x2")
    with pytest.raises(Wrong, match="stream 7: malformed"):
        check([answer], Talk(1.0, counts={7: 3}))
