"""The checks of `just fleet`, on answers, samples and runs as clients record them."""

import json
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench.fleet.checks import (
    TOOL,
    Answer,
    Question,
    RunAsked,
    RunTally,
    Sample,
    Span,
    Tally,
    Verdict,
    judge,
    judge_run,
    whole,
    windows,
)
from bench.fleet.deaths import NOTICED_S, Cut, Death, Delay, connections, longest_delay, too_many
from testkit.grammar import WIRES, SeenCall
from testkit.grammar import samples as good
from testkit.killtest_worker import Mark

GATEWAY = "127.0.0.1:1"
DEATH = Death(GATEWAY, at=10.0, gone=10.1, connections=2)
PROXY_DEATH = Death("", at=30.0, gone=30.2, connections=50)
STREAMS: dict[str, Callable[[good.Sample], bytes]] = {
    "openai_chat": good.chat_stream,
    "openai_responses": good.responses_stream,
    "anthropic": good.anthropic_stream,
    "gemini": good.gemini_stream,
    "ollama": good.ollama_stream,
}


def asked(wire: str = "openai_chat", *, calls: bool = False) -> Question:
    return Question(17, wire, 3, calls)


def answer(body: bytes | str, question: Question | None = None, **more: Any) -> Answer:  # noqa: ANN401 # fields
    data = body.encode() if isinstance(body, str) else body
    given: dict[str, Any] = {"began": 1.0, "done": 2.0, "status": 200, "ended": True, **more}
    return Answer(question or asked(), body=data, **given)


def verdict(body: bytes | str, question: Question | None = None, **more: Any) -> Verdict:  # noqa: ANN401 # fields
    return judge(answer(body, question, **more), [DEATH])[0]


def said(text: str, calls: int = 0, wire: str = "openai_chat") -> bytes:
    made = tuple(SeenCall(f"call_{number}", TOOL, {"city": "c17"}) for number in range(calls))
    return STREAMS[wire](good.Sample(text=text, calls=made))


def broken_off(text: str, wire: str = "openai_chat") -> bytes:
    return STREAMS[wire](good.Sample(text=text, error="it broke off"))


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_answer_is_right_on_every_wire(wire: str) -> None:
    assert verdict(said("w17x0 w17x1 w17x2 ", wire=wire), asked(wire)) is Verdict.RIGHT


def test_an_answer_with_the_call_that_was_asked_for_is_right() -> None:
    assert verdict(said("w17x0 w17x1 w17x2", 1), asked(calls=True)) is Verdict.RIGHT
    assert verdict(said("w17x0 w17x1 w17x2"), asked(calls=True)) is Verdict.WRONG
    assert verdict(said("w17x0 w17x1 w17x2", 1)) is Verdict.WRONG, "none was asked for"


def test_a_call_that_comes_twice_is_found() -> None:
    assert verdict(said("w17x0 w17x1 w17x2", 2), asked(calls=True)) is Verdict.TWICE


def test_words_of_another_stream_are_found_wherever_they_are() -> None:
    assert verdict(said("w17x0 w18x1 w17x2")) is Verdict.MIXED
    assert verdict(broken_off("w18x0 ")) is Verdict.MIXED
    assert verdict('data: {"choices": [{"delta": {"content": "w18x1 "', ended=False) is Verdict.MIXED


def test_an_answer_with_a_hole_or_without_its_end_is_wrong() -> None:
    assert verdict(said("w17x0 w17x2")) is Verdict.WRONG
    assert verdict(said("w17x0 w17x1")) is Verdict.WRONG


@pytest.mark.parametrize("wire", WIRES)
def test_the_protocols_error_is_an_honest_end_after_a_right_beginning_only(wire: str) -> None:
    assert verdict(broken_off("w17x0 w17x1 ", wire), asked(wire)) is Verdict.ERROR
    assert verdict(broken_off("w17x1 ", wire), asked(wire)) is Verdict.WRONG


def test_an_error_instead_of_a_stream_is_honest_in_the_form_of_its_protocol() -> None:
    body = {"error": {"message": "m", "type": "server_error", "param": None, "code": "upstream"}}
    assert verdict(json.dumps(body), status=502) is Verdict.ERROR


def test_an_error_in_another_form_is_malformed() -> None:
    assert verdict("Bad Gateway", status=502) is Verdict.MALFORMED
    assert verdict('{"error": "m"}', status=502) is Verdict.MALFORMED
    assert verdict("data: {\n\n") is Verdict.MALFORMED


def test_a_page_of_the_load_balancer_needs_a_gateway_that_was_killed_with_the_request() -> None:
    page = "<html><center>nginx/1.22.1</center></html>"
    at_death: dict[str, Any] = {"status": 502, "began": 9.0, "done": 10.1, "carrier": GATEWAY}
    assert verdict(page, **at_death) is Verdict.PROXY_ERROR
    elsewhere: dict[str, Any] = {**at_death, "carrier": "127.0.0.1:2"}
    later: dict[str, Any] = {**at_death, "began": 10.2, "done": 10.3}
    assert verdict(page, **elsewhere) is Verdict.LOST
    assert verdict(page, **later) is Verdict.LOST, "it was dead by then"
    assert judge(answer(page, **at_death), [PROXY_DEATH])[0] is Verdict.LOST, "a dead nginx writes no page"


@pytest.mark.parametrize(
    ("carrier", "began", "done", "expected"),
    [
        (GATEWAY, 5.0, 10.0, Verdict.BROKEN_OFF),
        (GATEWAY, 5.0, 10.1 + NOTICED_S, Verdict.BROKEN_OFF),
        (GATEWAY, 5.0, 9.9, Verdict.LOST),
        (GATEWAY, 5.0, 10.2 + NOTICED_S, Verdict.LOST),
        (GATEWAY, 10.15, 10.3, Verdict.LOST),
        ("127.0.0.1:2", 5.0, 10.0, Verdict.LOST),
        ("", 5.0, 10.0, Verdict.LOST),
    ],
)
def test_a_connection_may_break_only_with_the_process_that_carried_it(
    carrier: str, began: float, done: float, expected: Verdict
) -> None:
    begun = said("w17x0 ")[:50]
    assert verdict(begun, ended=False, began=began, done=done, carrier=carrier) is expected


def test_the_load_balancer_breaks_off_what_is_open_when_it_is_killed() -> None:
    begun = answer(said("w17x0 ")[:50], ended=False, began=5.0, done=30.1, carrier=GATEWAY)
    assert judge(begun, [DEATH, PROXY_DEATH])[0] is Verdict.PROXY_DIED
    unanswered = answer(b"", ended=False, began=29.0, done=30.1)
    assert judge(unanswered, [DEATH, PROXY_DEATH])[0] is Verdict.PROXY_DIED
    later = answer(b"", ended=False, began=30.5, done=30.6)
    assert judge(later, [DEATH, PROXY_DEATH])[0] is Verdict.LOST


def test_a_death_explains_no_more_answers_than_the_process_had_connections() -> None:
    cuts = [Cut(GATEWAY, 5.0, 10.0)] * DEATH.connections
    assert too_many(cuts, [DEATH]) == []
    assert too_many([*cuts, Cut(GATEWAY, 10.05, 10.1)], [DEATH]) == [], "it began while the process died"
    [found] = too_many([*cuts, Cut(GATEWAY, 9.0, 10.0)], [DEATH])
    assert found == "3 answers broke off at 10.0 s with 127.0.0.1:1, which had 2 connections"


def test_connections_of_a_process_are_counted_apart_from_those_of_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        with socket.create_connection(("127.0.0.1", port)), server.accept()[0]:
            with socket.create_connection(("127.0.0.1", port)):
                assert connections(port) == 2
                assert connections(port, [os.getpid()]) == 1, "nobody has accepted the other"
            assert connections(port, [1]) == 0


def test_an_answer_that_never_ends_is_lost_whatever_was_down() -> None:
    assert verdict("", ended=False, timed_out=True, began=5.0, done=15.0) is Verdict.LOST


def test_the_tally_keeps_the_reasons_of_what_is_bad() -> None:
    tally = Tally()
    for each in (answer(said("w17x0 w17x1 w17x2")), answer(said("w18x0")), answer("oops", status=500)):
        tally.add(each, *judge(each, [DEATH]))
    assert tally.counts == {Verdict.RIGHT: 1, Verdict.MIXED: 1, Verdict.MALFORMED: 1}
    assert [fault.partition(": ")[2][:5] for fault in tally.faults] == ["mixed", "malfo"]


# ---------------------------------------------------------------- the limit


def sample(at: float, status: int, took: float = 0.0) -> Sample:
    return Sample(at, status, at - took)


def samples(seconds: float, every: float, *, admitted: float, level: float = 0.0) -> list[Sample]:
    """Ask every so many seconds; a bucket that is empty in the beginning admits so many a second."""
    found: list[Sample] = []
    for number in range(int(seconds / every)):
        level = min(level + admitted * every, 60 * admitted)
        is_admitted = level >= 1
        level -= is_admitted
        found.append(sample(number * every, 200 if is_admitted else 429))
    return found


def test_an_exact_limit_has_no_deviation() -> None:
    [window] = windows(samples(120, 0.125, admitted=5.0), (), 5.0)
    assert abs(window.deviation) < 0.005
    assert window.uncertain == 0


@pytest.mark.parametrize(("admitted", "least"), [(5.2, 0.03), (4.8, -0.03)])
def test_a_limit_that_is_missed_by_four_percent_is_seen(admitted: float, least: float) -> None:
    [window] = windows(samples(120, 0.125, admitted=admitted), (), 5.0)
    assert window.deviation > least > 0 or window.deviation < least < 0


def test_times_without_a_shared_limit_are_left_out() -> None:
    taken = samples(120, 0.125, admitted=5.0)
    wild = [sample(each.at, 200) if 40 <= each.at <= 50 else each for each in taken]
    found = windows(wild, (Span(40.0, 50.0),), 5.0)
    assert len(found) == 2
    assert abs(whole(found).deviation) < 0.01
    assert windows(wild, (), 5.0)[0].deviation > 0.02


@pytest.mark.parametrize("level", [-60.0, 60.0])
def test_a_bucket_in_debt_or_with_a_rest_counts_from_when_it_is_empty(level: float) -> None:
    taken = samples(240, 0.125, admitted=5.0, level=level)
    [window] = windows(taken, (), 5.0)
    assert window.began > 10
    assert abs(window.deviation) < 0.01


def test_a_late_answer_to_a_request_from_before_the_window_does_not_count_as_admitted() -> None:
    taken = samples(120, 0.125, admitted=5.0)
    [exact] = windows(taken, (), 5.0)
    late = [sample(exact.began + 0.01 * number, 200, took=3.0) for number in range(1, 20)]
    [window] = windows([*taken, *late], (), 5.0)
    assert window.began > exact.began, "it begins when they are answered"
    assert window.uncertain == 0
    assert abs(window.deviation) < 0.005
    slow = sample(119.0, 200, took=119.5)
    [window] = windows([*taken, slow], (), 5.0)
    assert window.uncertain == 1, "there is no place without a late one"


def test_ends_that_were_decided_at_an_unknown_time_give_slack() -> None:
    taken = [sample(each.at, each.status, took=0.4) for each in samples(120, 0.125, admitted=5.0)]
    [window] = windows(taken, (), 5.0)
    assert window.slack == pytest.approx(4.0)


def test_requests_without_an_answer_may_have_been_admitted_or_not() -> None:
    taken = samples(120, 0.125, admitted=5.0)
    lost = [
        sample(each.at, 0) if each.status == 200 and number % 10 == 0 else each for number, each in enumerate(taken)
    ]
    [window] = windows(lost, (), 5.0)
    assert window.uncertain > 10
    assert abs(window.deviation) < 0.005


def test_a_limit_that_was_never_used_up_shows_nothing() -> None:
    assert windows([sample(float(second), 200) for second in range(100)], (), 5.0) == []
    assert whole([]).allowed == 0


# ---------------------------------------------------------------- runs

RUN = RunAsked("fleet-3", 2)


def marks(*steps: str) -> list[Mark]:
    found: list[Mark] = []
    for place, step in enumerate(steps):
        found.append(Mark(RUN.name, step, "begin", 1, place))
        found.append(Mark(RUN.name, step, "end", 1, place + 0.5, f"{step} of {RUN.name} by 1 at {place}"))
    return found


ALL = ("look 0", "put 0", "look 1", "put 1")


def results(left: Sequence[Mark]) -> list[dict[str, Any]]:
    return [{"role": "tool", "content": each.gave} for each in left if each.gave]


def judged(left: Sequence[Mark], messages: Sequence[dict[str, Any]], **shown: str) -> RunTally:
    tally = RunTally()
    judge_run(RUN, {"status": "done", "text": "round 0 round 1 fleet-3 is done", **shown}, messages, left, tally)
    return tally


def test_a_run_that_has_what_its_tools_gave_is_done() -> None:
    tally = judged(marks(*ALL), results(marks(*ALL)))
    assert (tally.done, tally.ok, tally.unknown, tally.again) == (1, True, 0, 0)


def test_a_run_that_failed_or_says_another_text_is_lost() -> None:
    assert judged(marks(*ALL), results(marks(*ALL)), status="failed").lost
    assert judged(marks(*ALL), results(marks(*ALL)), text="fleet-4 is done").lost
    assert judged(marks(*ALL), results(marks(*ALL))[1:]).lost


def test_a_call_that_may_not_run_twice_and_did_is_found() -> None:
    left = [*marks(*ALL), Mark(RUN.name, "put 1", "begin", 2, 9.0)]
    assert judged(left, results(marks(*ALL))).twice == ["fleet-3: put 1 2 times"]
    left = [*marks(*ALL), Mark(RUN.name, "look 1", "begin", 2, 9.0)]
    assert (judged(left, results(marks(*ALL))).twice, judged(left, results(marks(*ALL))).again) == ([], 1)


def test_an_outcome_that_is_lost_with_its_worker_is_told_and_not_lost() -> None:
    left = [mark for mark in marks(*ALL) if (mark.step, mark.what) != ("put 1", "end")]
    told = {"role": "tool", "content": "The outcome of put is unknown: it was started, and then …"}
    tally = judged(left, [*results(left), told])
    assert (tally.unknown, tally.ok) == (1, True)


def test_results_that_no_tool_gave_or_that_belong_to_another_run_are_found() -> None:
    got = results(marks(*ALL))
    assert judged(marks(*ALL), [*got[:3], {"role": "tool", "content": "put 1 of fleet-4 by 1 at 3"}]).mixed
    assert judged(marks(*ALL), [*got[:3], {"role": "tool", "content": "put 1 of fleet-3 by 1 at 77"}]).lost
    failed = judged(marks(*ALL), [*got[:3], {"role": "tool", "content": "put failed: OSError: no"}])
    assert (len(failed.lost), failed.mixed) == (1, [])


def test_clients_that_are_late_notice_a_death_later_and_no_other_delay_counts() -> None:
    before, at, soon = Delay(9.9, 3.0), Delay(11.0, 1.5), Delay(12.0, 1.0)
    later = Delay(14.0, 2.8)  # began after all clients should have noticed
    assert longest_delay([before, at, soon, later], DEATH) == 1.5
    assert longest_delay([before, later], DEATH) == 0.0
    late = replace(DEATH, delay=1.5)
    assert late.carried(GATEWAY, 5.0, 10.1 + NOTICED_S + 3.0)
    assert not late.carried(GATEWAY, 5.0, 10.2 + NOTICED_S + 3.0)
    assert not DEATH.carried(GATEWAY, 5.0, 10.2 + NOTICED_S)
