"""docs/metrics.md and docs/grafana.json use the names of the code, and only these (OBS-14)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.metrics_page import PAGE, fresh
from toolspeak.gateway.metric_table import METRICS, MetricType
from toolspeak.gateway.span_names import SPAN_ATTRIBUTES

DASHBOARD = Path(__file__).parents[3] / "docs" / "grafana.json"
SERIES = {
    f"{one.name}{end}": {*one.labels} | ({"le"} if end == "_bucket" else set[str]())
    for one in METRICS
    for end in (("_bucket", "_sum", "_count") if one.type is MetricType.HISTOGRAM else ("",))
}
ADDED = {"instance", "job"}
"""Labels that Prometheus adds when it scrapes."""
QUERY = re.compile(r"\b(?P<name>toolspeak_\w+)(?:\{(?P<matchers>[^}]*)\})?")
MATCHER = re.compile(r"(\w+)(?:=~|!~|!=|=)\"")
GROUPED = re.compile(r"\bby \(([\w, ]+)\)")


def expressions() -> Iterator[tuple[str, str, str]]:
    """Yield the title, the query and the legend of each line of each panel, and of each variable."""
    board: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"], ""


def faults(query: str, legend: str) -> list[str]:
    """Return which names and labels of a query do not exist."""
    found = [(match["name"], match["matchers"] or "") for match in QUERY.finditer(query)]
    unknown = [name for name, _ in found if name not in SERIES]
    known: set[str] = {label for name, _ in found for label in SERIES.get(name, set[str]())} | ADDED
    used = {label for _, matchers in found for label in MATCHER.findall(matchers)}
    grouped = {label.strip() for group in GROUPED.findall(query) for label in group.split(",")}
    shown = {*re.findall(r"\{\{(\w+)\}\}", legend)}
    left = shown - grouped  # a sum without it has no such label
    return [*unknown, *sorted((used | grouped) - known), *sorted(left)] if found else ["it queries no metric of ours"]


def test_the_tables_are_fresh_obs14() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert fresh(text) == text
    assert all(f"| `{one.name}` |" in text for one in (*METRICS, *SPAN_ATTRIBUTES))
    assert fresh(text.replace("| `toolspeak_info` |", "| `toolspeak_inof` |")) == text


@pytest.mark.parametrize(("title", "query", "legend"), [*expressions()])
def test_the_dashboard_queries_only_what_there_is_obs14(title: str, query: str, legend: str) -> None:
    assert faults(query, legend) == [], title


def test_the_dashboard_shows_every_metric_obs14() -> None:
    queried = {match["name"] for _, query, _ in expressions() for match in QUERY.finditer(query)}
    shown = {one.name for one in METRICS if any(name.startswith(one.name) for name in queried)}
    assert shown == {one.name for one in METRICS}


def test_the_queries_of_the_page_are_right_obs14() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("### Questions")[2].partition("## Spans")[0]
    queries = [query for query in re.findall(r"`([^`]+)`", text) if "(" in query]
    assert len(queries) >= 4
    assert [fault for query in queries for fault in faults(query, "")] == []


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("rate(toolspeak_request_total[5m])", "toolspeak_request_total"),
        ('rate(toolspeak_requests_total{modell="m"}[5m])', "modell"),
        ("sum by (tenant) (rate(toolspeak_requests_total[5m]))", "tenant"),
        ("sum by (le) (rate(toolspeak_overhead_seconds_count[5m]))", "le"),
    ],
)
def test_a_name_that_does_not_exist_is_noticed(query: str, fault: str) -> None:
    assert faults(query, "") == [fault]
