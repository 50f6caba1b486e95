"""The report of `just fleet`: what fails the bar, and the figures of faults."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.fleet import rolling_restart
from bench.fleet.checks import Answer, Question, RunTally, Sample, Tally, Verdict, Window
from bench.fleet.deaths import Death
from bench.fleet.faults import Event, apart_spans
from bench.fleet.key_drill import RATE, KeyFigures
from bench.fleet.report import Outcome, Plan, is_exact, longest_pauses, recoveries
from bench.fleet.run import left_out, write_events
from bench.fleet.schedule import Fault, Kind
from testkit.killtest_worker import Mark

PLAN = Plan(1.0, 10, 2, 7)


def event(kind: Kind, began: float, seconds: float = 0.0, recovered: float | None = 0.0) -> Event:
    well = None if recovered is None else began + seconds + recovered
    return Event(Fault(began, kind, "gateway-0", seconds, 0.5), began, began + seconds, well)


def failed(done: float) -> Answer:
    return Answer(Question(1, "openai_chat", 3), done - 1, done, 502, b"", ended=True)


def outcome(**more: Any) -> Outcome:  # noqa: ANN401 # fields
    given: dict[str, Any] = {
        "streams": Tally(),
        "runs": RunTally(done=2),
        "accepted": 2,
        "limits": [Window(0, 100, 500, 500, 0)],
        "events": [event(Kind.KILL_GATEWAY, 5, recovered=2)],
        "keys": KeyFigures(0.4, 0.9, 1.2, RATE, RATE + 0.5),
        **more,
    }
    struck = {each.fault.kind for each in given["events"]}
    given.setdefault("left_out", [kind for kind in Kind if kind not in struck])
    made = Outcome(PLAN, **given)
    made.streams.counts[Verdict.RIGHT] += 90
    made.streams.counts[Verdict.ERROR] += 10
    return made


def test_right_answers_and_errors_meet_the_bar() -> None:
    assert outcome().faults() == []
    assert json.loads(json.dumps(outcome().figures()))["answers"]["right"] == 90


@pytest.mark.parametrize("verdict", [Verdict.MIXED, Verdict.WRONG, Verdict.TWICE, Verdict.MALFORMED, Verdict.LOST])
def test_one_answer_that_is_neither_fails_the_bar(verdict: Verdict) -> None:
    spoiled = outcome()
    spoiled.streams.counts[verdict] += 1
    assert spoiled.faults() == [f"1 answers are {verdict}"]


def test_a_fleet_that_mostly_refuses_fails_the_bar() -> None:
    refusing = outcome()
    refusing.streams.counts[Verdict.ERROR] += 200
    assert refusing.faults() == ["only 90 of 300 answers are right"]


@pytest.mark.parametrize("kind", ["lost", "mixed", "twice"])
def test_one_run_that_is_lost_mixed_or_done_twice_fails_the_bar(kind: str) -> None:
    runs = RunTally(done=1)
    getattr(runs, kind).append("fleet-1")
    assert len(outcome(runs=runs).faults()) == 1


def test_a_part_that_does_not_recover_fails_the_bar() -> None:
    late = [event(Kind.RESTART_REDIS, 5, 1, recovered=None)]
    assert outcome(events=late).faults() == ["gateway-0 did not recover from restart-redis"]


def test_a_limit_must_be_measured_and_exact() -> None:
    assert outcome(limits=[]).faults() == ["the limit was never measured"]
    assert outcome(limits=[Window(0, 100, 500, 512, 0)]).faults() == ["the limit is missed by 2.40%"]
    assert is_exact([Window(0, 100, 500, 506, 0)])
    assert not is_exact([Window(0, 100, 500, 480, 5)])
    assert is_exact([Window(0, 100, 500, 480, 20)]), "twenty had no answer, and may have been admitted"


def test_a_failed_answer_counts_for_the_last_fault_before_its_end() -> None:
    events = [event(Kind.KILL_GATEWAY, 10, recovered=3), event(Kind.KILL_PROXY, 20, recovered=1)]
    found = recoveries(events, [failed(5), failed(12), failed(14), failed(21)])
    assert found[Kind.KILL_GATEWAY]["failed_answers"] == 2
    assert found[Kind.KILL_GATEWAY]["noticed_s"] == {"p50": 4.0, "max": 4.0}
    assert found[Kind.KILL_GATEWAY]["ready_s"] == {"p50": 3.0, "max": 3.0}
    assert found[Kind.KILL_PROXY]["failed_answers"] == 1
    assert set(found) == {Kind.KILL_GATEWAY, Kind.KILL_PROXY}


def test_a_client_may_find_no_server_only_while_the_load_balancer_is_down() -> None:
    events = [replace(event(Kind.KILL_PROXY, 10, recovered=1), death=Death("", 10.0, 10.1, connections=9))]
    assert outcome(events=events, refused=[10.5, 11.0]).faults() == []
    late = outcome(events=events, refused=[10.5, 20.0]).faults()
    assert late == ["1 times no connection could be made while nginx was up"]
    assert len(outcome(refused=[5.5]).faults()) == 1, "a gateway was killed, and nginx was up"


def test_nothing_may_fail_while_gateways_only_reload() -> None:
    failing = outcome(events=[event(Kind.RELOAD, 5, recovered=3)])
    assert failing.faults() == ["10 answers failed although nothing broke"]
    failing.streams.counts[Verdict.ERROR] = 0
    assert failing.faults() == []
    failing.samples = [Sample(6.0, 200, 5.9), Sample(6.1, 429, 6.0), Sample(7.0, 0, 6.9)]
    assert failing.faults() == ["1 answers failed although nothing broke"]
    assert rolling_restart.figures(failing)["failed"] == 1


def test_keys_must_be_known_everywhere_within_two_seconds_and_keep_their_limit() -> None:
    assert outcome(keys=KeyFigures(0.4, 2.5, 1.2, RATE, RATE + 0.5)).faults() == ["a key was rotated in 2.5 s"]
    spent = outcome(keys=KeyFigures(0.4, 0.9, 1.2, RATE + 5, RATE + 0.5)).faults()
    assert spent == ["a key had 25 requests admitted instead of 20 to 20.5"]
    assert outcome(keys=KeyFigures(0, 0, 0, RATE, RATE, problems=["no audit"])).faults() == ["no audit"]


def test_a_kind_of_fault_that_was_asked_for_must_be_struck() -> None:
    asked_for = outcome(left_out=[kind for kind in Kind if kind not in (Kind.KILL_GATEWAY, Kind.FULL_DISK)])
    assert asked_for.faults() == ["1 kinds of faults were never struck: full-disk"]


def test_answers_that_broke_off_are_counted_against_the_connections_of_the_dead() -> None:
    died = Event(Fault(5, Kind.KILL_PROXY, "proxy", 0, 0.5), 5, 5, 6, Death("", 5.0, 5.1, connections=1))
    cut = Answer(Question(1, "openai_chat", 3), 4.0, 5.1)
    assert outcome(events=[died], failures=[cut]).faults() == []
    [found] = outcome(events=[died], failures=[cut, cut]).faults()
    assert "2 answers broke off" in found


def test_a_short_run_may_leave_kinds_out_but_not_those_that_were_asked_for() -> None:
    targets = {kind: ["gateway-0"] for kind in Kind if kind is not Kind.FULL_DISK}
    faults = [Fault(1, Kind.KILL_GATEWAY, "gateway-0", 0, 0.5)]
    assert Kind.CLOCK_STEP in left_out(Plan(1.0, 10, 2, 7), targets, faults)
    assert left_out(Plan(2.0, 10, 2, 7), targets, faults) == [Kind.FULL_DISK]
    chosen = {kind: targets[kind] for kind in (Kind.KILL_GATEWAY, Kind.CLOCK_STEP)}
    assert Kind.CLOCK_STEP not in left_out(Plan(1.0, 10, 2, 7, frozenset(chosen)), chosen, faults)


def test_limits_are_not_judged_while_redis_is_away() -> None:
    [span] = apart_spans([event(Kind.STOP_REDIS, 10, 5, recovered=1), event(Kind.STOP_POSTGRES, 40, 5)])
    assert span.began < 10
    assert span.ended > 16


def test_the_longest_pause_of_a_run_leaves_out_a_clock_that_jumped() -> None:
    times = {"a": (100.0, 101.0, 107.0, 108.0), "b": (100.0, 102.0, 3702.0)}
    marks = [Mark(run, "put 0", "begin", 1, at) for run, each in times.items() for at in each]
    assert longest_pauses(marks, 90.0, 200.0) == [6.0, 2.0]


def test_what_happened_is_written_in_its_order(tmp_path: Path) -> None:
    spoiled = outcome(failures=[failed(3.0), failed(7.0)])
    write_events(tmp_path / "events.jsonl", spoiled)
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["at"] for line in lines] == [0, 3, 5, 7]
    assert lines[2]["event"]["fault"]["kind"] == "kill-gateway"
    assert lines[3]["verdict"][0] == "malformed"
