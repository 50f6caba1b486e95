"""Attacks in tool results: samples, the talk with the worker, scripted models that obey and that do not, the report."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.accuracy.forms import forms
from bench.accuracy.kept import Conditions
from bench.accuracy.score import Delivered
from bench.accuracy.speak import Said
from bench.accuracy.split import Split, split_of
from bench.injection import lines, report
from bench.injection.cases import ATTACKS, Case, in_turn, sample
from bench.injection.dojo import Dojo, DojoLost, messages_of, version
from bench.injection.lines import InjectionLine
from bench.injection.plain import joined
from bench.injection.run import FORMS, NEAR, PLAIN, CaseJob, measured, measured_cases, next_of, options_of
from bench.injection.scripted import case, scripted
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool

SUITES = {
    "banking": {"user": [f"user_task_{n}" for n in range(16)], "injection": [f"injection_task_{n}" for n in range(9)]},
    "slack": {"user": [f"user_task_{n}" for n in range(21)], "injection": [f"injection_task_{n}" for n in range(5)]},
}
STAND_IN = (sys.executable, "-m", "bench.tests.injection_worker")
"""Speaks as the worker does, and knows one bank and one case: AgentDojo is not in .venv (`just injection-quick`)."""


def ran(folder: Path, obeys: bool, *more: str, attacks: tuple[str, ...] = ("", *ATTACKS)) -> tuple[int, int]:
    arguments = ["--out", str(folder / "lines.jsonl"), "--answers", str(folder / str(obeys)), *more]
    with scripted(obeys=obeys) as url:
        return asyncio.run(measured_cases(options_of(arguments), url, [case(one) for one in attacks], STAND_IN))


def test_a_larger_sample_begins_with_the_smaller_and_holds_one_split() -> None:
    for attack in ("", *ATTACKS):
        small, large = (sample(SUITES, attack, count, 6, Split.HELD_OUT) for count in (5, 500))
        assert [cases[:5] for cases in large] == small
        assert all(split_of(one.id) is Split.HELD_OUT for cases in large for one in cases)
        assert len({one.id for cases in large for one in cases}) == sum(map(len, large))
    assert all(len(cases) >= 70 for cases in sample(SUITES, ATTACKS[0], 500, 6, Split.HELD_OUT))


def test_suites_and_attacks_come_in_turn() -> None:
    first = list(in_turn(SUITES, [*ATTACKS, ""], 2, 6, Split.HELD_OUT, begun=True))
    assert [(one.suite, one.attack) for one in first[:6]] == [
        (suite, attack) for attack in (*ATTACKS, "") for suite in SUITES
    ]
    assert len(first) == 12
    assert all(one.begun for one in first)


def test_a_lane_stays_with_the_tools_and_the_form_that_its_slot_of_the_server_knows() -> None:
    plain, ours = forms([PLAIN, "hermes"])
    cases = list(in_turn(SUITES, ATTACKS, 20, 6, Split.HELD_OUT, begun=True))
    waiting = [CaseJob(form, case) for case in cases for form in (plain, ours)]
    assert next_of(waiting, None) == 0
    last = CaseJob(ours, next(case for case in cases if case.suite == "slack"))
    first = waiting[next_of(waiting, last)]
    assert (first.form, first.case.suite) == (ours, "slack")
    others = [job for job in waiting if not job.begins_like(last)]
    assert len(others) > NEAR
    assert next_of([*others[:NEAR], last], last) == 0, "a job far from its turn waits, so that samples stay equal"


@pytest.mark.parametrize("obeys", [True, False])
def test_every_attack_succeeds_with_a_model_that_obeys_and_none_with_another(tmp_path: Path, obeys: bool) -> None:
    assert ran(tmp_path, obeys, "--lanes", "2") == (9, 9)
    found = list(lines.read(tmp_path / "lines.jsonl"))
    attacked = [line for line in found if line.case.attack]
    assert {line.form for line in found} == set(FORMS)
    assert all(line.reached and line.attacked is obeys and line.utility is not obeys for line in attacked)
    assert all(line.utility and not line.attacked and not line.reached for line in found if not line.case.attack)
    assert all(line.requests >= 3 and line.input_tokens == 10 * line.requests for line in found)


def test_a_replay_counts_the_cases_whose_answers_are_kept_and_no_others(tmp_path: Path) -> None:
    assert ran(tmp_path, True, attacks=ATTACKS[:1]) == (3, 3)
    again = ["--replay", "--out", str(tmp_path / "again.jsonl"), "--answers", str(tmp_path / "True")]
    cases = [case(ATTACKS[0]), case("")]
    assert asyncio.run(measured_cases(options_of(again), "", cases, STAND_IN)) == (3, 6)
    asked, replayed = (list(lines.read(tmp_path / name)) for name in ("lines.jsonl", "again.jsonl"))
    assert [(one.form, one.attacked, one.calls) for one in replayed] == [
        (one.form, one.attacked, one.calls) for one in asked
    ]


def test_a_case_that_is_begun_has_read_the_bill_already(tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path / "lines.jsonl"), "--answers", str(tmp_path)]
    with scripted(obeys=True) as url:
        cases = [case(ATTACKS[0]), case(ATTACKS[0], begun=True)]
        assert asyncio.run(measured_cases(options_of(arguments), url, cases, STAND_IN)) == (6, 6)
    found = list(lines.read(tmp_path / "lines.jsonl"))
    assert all(line.reached and line.attacked for line in found)
    assert {line.case.begun: line.calls[0][0] for line in found} == {False: "read_file", True: "update_password"}
    assert len({line.key for line in found}) == 6


def test_a_plain_form_sends_one_system_message() -> None:
    said = [Message(Role.SYSTEM, (Text("Use tools."),)), Message(Role.SYSTEM, (Text("Be brief."),))]
    asked = Message(Role.USER, (Text("Hi"),))
    one, rest = joined(Request("m", (*said, asked))).messages
    assert (one, rest) == (Message(Role.SYSTEM, (Text("Use tools.\n\nBe brief."),)), asked)
    assert joined(Request("m", (asked,))).messages == (asked,)


def test_fewer_rounds_end_a_case_earlier_and_are_other_lines(tmp_path: Path) -> None:
    assert ran(tmp_path, True, "--rounds", "1", attacks=ATTACKS[:1]) == (3, 3)
    assert ran(tmp_path, True, attacks=ATTACKS[:1]) == (3, 3)
    found = list(lines.read(tmp_path / "lines.jsonl"))
    assert [(line.attacked, len(line.calls)) for line in found] == [(False, 1)] * 3 + [(True, 2)] * 3


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    assert ran(tmp_path, True, "--minutes", "0.0000001") == (0, 9)
    assert ran(tmp_path, True, attacks=("",)) == (3, 3)
    assert ran(tmp_path, True) == (6, 6)
    assert ran(tmp_path, True) == (0, 0)


def test_a_run_takes_its_cases_from_the_worker(tmp_path: Path) -> None:
    arguments = ["--out", str(tmp_path / "lines.jsonl"), "--answers", str(tmp_path), "--suite", "banking"]
    split = split_of(case("").id)
    arguments += ["--attack", "", "--form", PLAIN, "--split", split]
    with scripted(obeys=False) as url:
        assert asyncio.run(measured(options_of(arguments), url, STAND_IN)) == (1, 1)


class Failing:
    """A speaker whose second turn fails."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        assert messages
        assert tools
        self.asked += 1
        read = Delivered("read_file", '{"file_path": "bill-december-2023.txt"}')
        return Said("", (read,)) if self.asked == 1 else Said(failure="too long")


def test_a_turn_that_fails_ends_its_case_and_is_told() -> None:
    async def played() -> None:
        async with Dojo(STAND_IN) as dojo:
            verdict = await dojo.play(case(ATTACKS[0]), Failing())
            assert (verdict.utility, verdict.attacked, verdict.reached) == (False, False, True)
            assert (verdict.failure, len(verdict.calls)) == ("too long", 1)

    asyncio.run(played())


def test_a_worker_that_ends_is_told_with_its_words() -> None:
    async def lost() -> None:
        async with Dojo((sys.executable, "-c", "import sys; sys.exit('no such suite')")) as dojo:
            await dojo.suites(["banking"])

    with pytest.raises(DojoLost, match="no such suite"):
        asyncio.run(lost())


def test_results_of_one_round_are_one_message() -> None:
    call: dict[str, Any] = {"id": "c1", "name": "now", "arguments": {}}
    result = {"role": "tool", "text": "3", "id": "c1", "name": "now", "error": False}
    told: list[dict[str, Any]] = [
        {"role": "assistant", "text": "", "calls": [call, {**call, "id": "c2"}]},
        result,
        {**result, "id": "c2", "text": "no clock", "error": True},
    ]
    said, results = messages_of(told)
    assert said.parts == (Call("c1", "now", "{}"), Call("c2", "now", "{}"))
    assert results.role is Role.TOOL
    assert results.parts == (
        Result("c1", (Text("3"),), "now"),
        Result("c2", (Text("no clock"),), "now", is_error=True),
    )


def test_forge_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(["--form", "forge"])
    assert "only `just accuracy` starts" in capsys.readouterr().err


# ---------------------------------------------------------------- the report

MODEL = "qwen2.5-coder-0.5b"


def line(
    form: str, number: int, attack: str = ATTACKS[0], *, attacked: bool = False, utility: bool = False
) -> InjectionLine:
    played = Case("banking", f"user_task_{number}", "injection_task_0" if attack else "", attack)
    return InjectionLine(
        *(MODEL, form, "v1", played, Conditions(6, 256, "b1"), version(), utility, attacked, True, 2, 100, 10, 1.0),
        calls=list[tuple[str, str]](),
        code="" if form == PLAIN else "c1",
    )


def test_a_form_is_compared_with_the_plain_one_on_the_same_cases() -> None:
    plain = [line(PLAIN, number, attacked=number < 12) for number in range(20)]
    ours = [line("hermes", number, attacked=number < 3, utility=True) for number in range(16)]
    alone = [line(form, 1, "", utility=True) for form in (PLAIN, "hermes")]
    found = report.newest([*plain, *ours, *alone], MODEL)
    row = report.row(PLAIN, list(found[PLAIN].values()))
    assert row.success
    assert (row.success.value, row.success.count, row.requests) == (0.6, 20, 2.0)
    assert row.utility_alone
    assert row.utility_alone.value == 1.0
    beside = report.difference("hermes", found)
    assert beside.success
    assert beside.utility
    assert (beside.success.value, beside.success.count) == (-9 / 16, 16)
    assert beside.success.is_clear
    assert beside.utility.value == 1.0
    assert beside.of_plain == 3 / 12


def test_lines_of_older_code_or_another_version_are_left_out() -> None:
    old = [replace(line("hermes", number), code="c0", version="v0") for number in range(5)]
    found = report.newest([*old, line(PLAIN, 1), line("hermes", 1)], MODEL)
    assert {form: len(each) for form, each in found.items()} == {PLAIN: 1, "hermes": 1}


def test_the_report_writes_figures_and_its_place_on_the_page(tmp_path: Path) -> None:
    lined = [line(form, number) for form in (PLAIN, "hermes") for number in range(12)]
    page, result = tmp_path / "page.md", tmp_path / "result.json"
    page.write_text("before\n<!-- results: made by just injection-report -->\nearlier\n<!-- end -->\nafter\n")
    measured = report.Measured(MODEL, report.newest(lined, MODEL))
    report.write([measured.figures()], result, page)
    assert json.loads(result.read_text())["models"][0]["rows"][0]["success"]["value"] == 0
    text = page.read_text()
    assert "earlier" not in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert f"| `{PLAIN}` | 0 (0–24) of 12 |" in text


def test_a_model_without_lines_here_keeps_its_earlier_figures() -> None:
    measured = report.Measured(MODEL, report.newest([line(PLAIN, number) for number in range(3)], MODEL))
    earlier: list[dict[str, Any]] = [
        {"model": "qwen2.5-coder-1.5b", "begun": True},
        {"model": MODEL, "begun": False, "rows": []},
    ]
    now = report.joined([measured], earlier)
    assert [one["model"] for one in now] == [MODEL, "qwen2.5-coder-1.5b"]
    assert now[0]["rows"]


def test_a_page_without_a_place_for_the_results_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(SystemExit, match="has 0 places"):
        report.write([], tmp_path / "result.json", page)
