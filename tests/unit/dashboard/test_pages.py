"""What the dashboard shows: comparisons, excerpts, formats, and templates that escape everything."""

import pytest
from jinja2 import UndefinedError

from toolspeak.dashboard.excerpt import Excerpt, Room
from toolspeak.dashboard.formats import duration, plural, short_count, short_duration
from toolspeak.dashboard.pages import render, static_file, static_url
from toolspeak.dashboard.prompt_diff import DiffLine, compare_json
from toolspeak.dashboard.request_rows import bar_length, row_of
from toolspeak.dashboard.request_view import pretty_json
from toolspeak.ir.json import Json
from toolspeak.traces.store import Summary


def test_a_comparison_shows_lines_of_a_prompt_that_were_added_and_removed() -> None:
    old: Json = {"messages": [{"content": "Be brief."}], "tools": [1, 2], "model": "m"}
    new: Json = {"messages": [{"content": "Be brief.\n# Tools\nUse them."}], "model": "m"}
    diff = compare_json(old, new)
    assert (diff.added, diff.removed) == (3, 5)
    assert DiffLine("added", "        # Tools") in diff.lines
    assert DiffLine("removed", '      "content": "Be brief."') in diff.lines


def test_the_same_value_has_no_difference() -> None:
    same: Json = {"a": [1, {"b": "x\ny"}]}
    diff = compare_json(same, same)
    assert (diff.added, diff.removed) == (0, 0)
    assert [line.kind for line in diff.lines] == ["gap"]


def test_values_too_long_to_align_are_shown_as_removed_and_added() -> None:
    diff = compare_json([*range(5000)], [*range(5000, 10_000)])
    assert (diff.added, diff.removed) == (5000, 5000)
    assert len(diff.lines) == 400
    assert diff.left > 9000


def test_a_full_page_shows_only_the_beginning_of_further_texts() -> None:
    room = Room(1000)
    assert room.cut("a" * 900, 5000) == Excerpt("a" * 900)
    assert room.cut("b" * 900, 5000) == Excerpt("b" * 200, 700)
    assert room.cut("c" * 900, 5000) == Excerpt("c" * 200, 700)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, "–"), (0.0042, "4 ms"), (0.084, "84 ms"), (1.239, "1.24 s"), (12.34, "12.3 s"), (200.0, "3 min 20 s")],
)
def test_durations_have_two_or_three_digits(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "–"), (0.0841, "84 ms"), (59.4, "59.4 s"), (59.6, "1:00 min"), (200.2, "3:20 min")]
)
def test_a_duration_in_a_column_is_short(seconds: float | None, said: str) -> None:
    assert short_duration(seconds) == said


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0"), (812, "812"), (8123, "8.1k"), (104_000, "104k"), (1_230_000, "1.2M")]
)
def test_large_numbers_are_short(number: int, said: str) -> None:
    assert short_count(number) == said


def test_one_is_not_plural() -> None:
    assert (plural(1, "call"), plural(0, "call"), plural(3, "call")) == ("1 call", "0 calls", "3 calls")


def test_bars_grow_with_time_and_end() -> None:
    assert [bar_length(seconds) for seconds in (0, 0.6, 15, 60, 600)] == [0, 10, 50, 100, 100]


def test_json_is_laid_out_and_other_text_is_left_alone() -> None:
    assert pretty_json('{"a":[1,"x"]}') == '{\n  "a": [\n    1,\n    "x"\n  ]\n}'
    assert pretty_json("{not json") == "{not json"


def test_every_value_of_a_row_is_escaped_and_its_controls_are_visible() -> None:
    bad = "<b>\"'&\x1b\u202e"
    line = Summary(bad, 0.0, "", bad, bad, bad, bad, status=500, error=bad, calls=[bad], agent=bad, tools=bad)
    row = render("request_row.html", row=row_of(line)).decode()
    assert "<b>" not in row
    assert row.count("&lt;b&gt;&#34;&#39;&amp;\\x1b\\u202e") >= 8
    assert "\x1b" not in row
    assert "\u202e" not in row


def test_a_template_that_misses_a_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("request_row.html")


def test_static_files_have_an_address_that_changes_with_their_content() -> None:
    found = static_file("htmx.min.js")
    assert found is not None
    assert static_url("htmx.min.js").startswith("/ui/static/htmx.min.js?v=")
    assert static_file("../pages.py") is None


def test_nothing_in_the_pages_names_another_host_or_runs_inline() -> None:
    for name in ("toolspeak.css", "toolspeak.js"):
        found = static_file(name)
        assert found is not None
        assert b"http:" not in found[1]
        assert b"https:" not in found[1]
        assert b"eval(" not in found[1]
