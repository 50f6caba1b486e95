"""The comparison of gateways: the figures that are kept, and that the page shows them."""

from pathlib import Path
from typing import Any

import pytest

from bench.conformance_peers import CONTENDERS, COUNTS, OURS, PAGE, fresh, judged, kept, litellm, without_values
from bench.gateway.subjects import toolspeak


def test_the_page_shows_the_last_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert fresh(page) == page
    assert all(name in page for name in CONTENDERS)


@pytest.mark.parametrize(
    ("problem", "counted"),
    [
        ("call 2: the id is missing", "the id is missing"),
        ("tool_calls[0]: the name is missing", "the name is missing"),
        ("arguments of 'now' are not a JSON object: '{'", "arguments of a call are not a JSON object"),
        ("the stream ends without [DONE]", "the stream ends without [DONE]"),
    ],
)
def test_a_breach_is_counted_without_the_values_of_its_case(problem: str, counted: str) -> None:
    assert without_values(problem) == counted


def test_a_response_counts_once_for_a_breach() -> None:
    row = {"id": "c-1", "way": "stream", "verdict": "wrong call"}
    rows: list[dict[str, Any]] = [{**row, "problems": ["call 0: the id is missing", "call 1: the id is missing"]}]
    found: dict[str, Any] = {"sent": 1, "all_right": 0, **dict.fromkeys(COUNTS, 0), "kinds": {}, "not_right": rows}
    assert kept("LiteLLM", found)["problems"] == {"the id is missing": 1}
    assert kept("LiteLLM", found)["not_right"] == ["c-1 stream: wrong call"]


def test_a_command_names_the_gateways_and_the_upstreams_port(tmp_path: Path) -> None:
    assert "http://127.0.0.1:8099/v1" in toolspeak()(4141, 8099, tmp_path)
    assert litellm(4000, 8099, tmp_path)[-1] == "4000"
    assert "http://127.0.0.1:8099/v1" in (tmp_path / "litellm.yaml").read_text()


@pytest.mark.timeout(240)
def test_our_gateway_is_judged_by_the_command_that_users_run(tmp_path: Path) -> None:
    found = judged(CONTENDERS[OURS], tmp_path / "badge.svg", "--only", "kimi")
    assert (found["sent"], found["all_right"]) == (10, 10)
    assert "10 of 10 right" in (tmp_path / "badge.svg").read_text()
