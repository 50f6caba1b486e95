"""Intervals, rows and lifts, on lines made by hand."""

from pathlib import Path

import pytest

from bench.accuracy.forms import FORMS, KnownProfiles, form_of, forms
from bench.accuracy.intervals import average, share
from bench.accuracy.kept import Conditions, Line, append, read
from bench.accuracy.plot import plot
from bench.accuracy.table import kind_of, lifts, margins, newest, row, rows, talk_lifts
from toolspeak.engine.settings import Mode, Strategy

SETS = ("simple_python", "multiple", "parallel", "irrelevance")
CONDITIONS = Conditions(1, 256, "b1")


def line(form: str, task: int, right: bool, name: str = "simple_python", **more: object) -> Line:
    fields: dict[str, object] = {
        "model": "m",
        "form": form,
        "version": "1",
        "set": name,
        "task": str(task),
        "conditions": CONDITIONS,
        "right": right,
        "valid": True,
        "called": name != "irrelevance",
        "requests": 1,
        "input_tokens": 100,
        "output_tokens": 10,
        "seconds": 1.0,
        "calls": [],
    }
    return Line(**fields | more)  # pyright: ignore[reportArgumentType]


def lines(form: str, right: int, count: int = 10, **more: object) -> list[Line]:
    """Return as many right ones in every set."""
    return [line(form, task, task < right, name, **more) for name in SETS for task in range(count)]


def test_wilson_s_interval_is_that_of_the_books() -> None:
    found = share(8, 10)
    assert found is not None
    assert (round(found.low, 3), round(found.high, 3)) == (0.490, 0.943)
    none = share(0, 20)
    assert none is not None
    assert (none.low, round(none.high, 3)) == (0.0, 0.161)
    assert share(0, 0) is None


def test_the_average_counts_every_set_alike_and_repeats_itself() -> None:
    sets = {"a": [1.0] * 5, "b": [0.0] * 50}
    first = average(sets)
    assert first is not None
    assert first.value == 0.5
    assert first == average(sets)
    assert average({"a": [1.0], "b": []}) is None


def test_the_interval_of_an_average_shrinks_with_more_tasks() -> None:
    few, many = average({"a": [0.0, 1.0] * 5}), average({"a": [0.0, 1.0] * 200})
    assert few is not None
    assert many is not None
    assert few.high - few.low > 3 * (many.high - many.low)


def test_a_handful_of_tasks_makes_nothing_sure() -> None:
    few = average({"a": [1.0] * 3, "b": [1.0] * 50}, -1.0)
    assert few is not None
    assert (few.value, few.low, few.high, few.is_clear) == (1.0, -1.0, 1.0, False)
    enough = average({"a": [1.0] * 10, "b": [1.0] * 50}, -1.0)
    assert enough is not None
    assert enough.is_clear


def test_a_row_tells_shares_and_costs() -> None:
    made = row("hermes", [*lines("hermes", 5), line("hermes", 99, right=False, requests=42, failure="x")])
    assert made.average is not None
    assert made.average.value == pytest.approx((5 / 11 + 3 * 0.5) / 4)
    assert made.wrong_but_valid is not None
    assert made.wrong_but_valid.value == pytest.approx(16 / 31)
    assert made.spurious is not None
    assert made.spurious.value == 0
    assert made.failures == 1
    assert made.requests == pytest.approx((40 + 42) / 41)
    assert made.cost is not None
    assert made.cost.requests == pytest.approx((40 + 42) / sum(one.right for one in lines("hermes", 5)))
    assert row("hermes", [line("hermes", 1, right=False)]).cost is None  # nothing was solved


def test_spurious_and_invalid_calls_are_counted() -> None:
    made = row("x", [line("x", 1, right=False, name="irrelevance", called=True, valid=False), *lines("x", 10, 1)])
    assert made.spurious is not None
    assert made.spurious.value == 0.5
    assert made.valid is not None
    assert made.valid.value == 0.75


def test_a_lift_is_what_a_switch_is_worth_whichever_way_it_turns() -> None:
    found = newest(
        [*lines("hermes", 6), *lines("hermes few_shot", 8), *lines("hermes retries=0", 5), *lines("native", 0)], "m"
    )
    told = {lift.what: (lift.better, round(lift.difference.value, 3)) for lift in lifts(found)}
    assert told == {"few_shot": ("hermes few_shot", 0.2), "retries": ("hermes", 0.1)}


def talks(form: str, calls: int, count: int) -> list[Line]:
    """Return conversations that are all right, with as many calls in each, and one more in the first."""
    made: list[object] = ["call"] * calls
    return [line(form, task, True, "multi_turn", calls=[*made, *made[: task == 0]]) for task in range(count)]


def test_what_a_switch_changes_in_conversations_is_told_of_ten_and_more() -> None:
    found = newest([*talks("hermes few_shot", 1, 12), *talks("hermes", 3, 12), *talks("hermes retries=0", 3, 9)], "m")
    (lift,) = talk_lifts(found)
    assert (lift.what, lift.worse, lift.calls.count) == ("few_shot", "hermes", 12)
    assert (lift.right.value, lift.right.is_clear) == (0.0, False)
    assert (lift.calls.value, lift.calls.is_clear) == (-2.0, True)


def test_margins_are_over_the_best_of_each_rival() -> None:
    found = newest([*lines("auto", 9), *lines("seed inline", 5), *lines("seed decision", 3), *lines("forge", 6)], "m")
    told = {lift.what: (lift.worse, round(lift.difference.value, 2)) for lift in margins(found, rows(found))}
    assert told == {"over seed": ("seed inline", 0.4), "over forge": ("forge", 0.3)}


def test_only_the_newest_version_and_conditions_count() -> None:
    old = lines("hermes", 0, version="0")
    other = lines("hermes", 0, conditions=Conditions(1, 64, "b1"))
    found = newest([*other, *old, *lines("hermes", 10)], "m")
    assert rows(found)[0].average == row("hermes", lines("hermes", 10)).average


def test_forms_of_ours_are_of_one_code_and_those_of_others_stay() -> None:
    """A switch that was measured by another code cannot be told from what else has changed."""
    old, new = [*lines("hermes told", 2, code="a"), *lines("forge", 3)], lines("hermes", 9, code="b")
    assert set(newest([*old, *new], "m")) == {"forge", "hermes"}


def test_lines_are_kept_and_one_that_was_cut_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    one = line("hermes", 1, right=True, calls=[("f", "{}")])
    append(one, file)
    with file.open("a") as out:
        out.write('{"model": "m", "fo')
    assert list(read(file)) == [one]


def test_the_picture_has_a_bar_for_each_form_and_the_best_on_top() -> None:
    drawn = plot("m", "note", rows(newest([*lines("native", 1), *lines("a <b>", 9)], "m")))
    assert drawn.index("a &lt;b&gt;") < drawn.index(">native<")
    assert drawn.count("<path") == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("native", {"mode": Mode.OFF}),
        ("hermes few_shot retries=0", {"mode": Mode.FORCE, "dialect": "hermes", "few_shot": True, "retries": 0}),
        ("decision", {"mode": Mode.FORCE, "strategy": Strategy.DECISION}),
        ("fenced rescue=false", {"rescue": False, "dialect": "fenced"}),
        ("default", {"mode": None, "dialect": None}),
        (
            "hermes guardrails confirm_tool_fit=false",
            {
                "dialect": "hermes",
                "drop_unrelated_calls": True,
                "request_missing_calls": True,
                "confirm_tool_fit": False,
            },
        ),
    ],
)
def test_a_form_s_name_says_its_settings(name: str, said: dict[str, object]) -> None:
    settings = form_of(name).settings
    assert settings is not None
    assert {key: getattr(settings, key) for key in said} == said


@pytest.mark.parametrize("name", ["klingon", "hermes shouting"])
def test_an_unknown_form_is_refused_by_name(name: str) -> None:
    with pytest.raises(SystemExit, match=name.rpartition(" ")[2]):
        forms([name])


def test_patterns_choose_forms_and_auto_needs_a_profile() -> None:
    assert [form.name for form in forms(["seed*", "native"])] == [
        "seed decision",
        "seed json action",
        "seed inline",
        "native",
    ]
    assert "auto" not in [form.name for form in forms([])]
    fenced, hermes = ({"settings": {"mode": "force", "dialect": name}} for name in ("fenced", "hermes"))
    auto, default = forms(["auto", "default"], KnownProfiles(shipped=hermes, kept=fenced))
    assert auto.settings is not None
    assert auto.settings.dialect == "fenced"
    assert default.settings is not None
    assert default.settings.dialect == "hermes"
    assert forms(["auto"], KnownProfiles(shipped=hermes))[0].settings == default.settings


def test_versions_differ_with_the_settings() -> None:
    known = KnownProfiles(kept={"settings": {"mode": "force", "dialect": "hermes", "retries": 1}})
    versions = {form_of(name, known).version for name in FORMS}
    assert len(versions) == len(FORMS) - 3  # the three seeds are one file, and so are the two of forge
    assert {kind_of(name) for name in FORMS} == {"native", "seed", "forge", "ours", "auto"}
