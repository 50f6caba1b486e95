"""The cases of `toolspeak conformance`, the scripted upstream that tells them, and the report (CONF-1, CONF-3)."""

import json
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from toolspeak import conformance
from toolspeak.conformance.cases import CaseVerdict, ConformanceCase, conformance_cases
from toolspeak.conformance.protocol import ReceivedAnswer, judge_stream, judge_whole
from toolspeak.conformance.report import ConformanceReport
from toolspeak.conformance.trial import TrialResult
from toolspeak.conformance.upstream import (
    HELLO_TEXT,
    MODEL,
    ScriptedModel,
    case_token,
    cut_pieces,
    serve_scripted,
)
from toolspeak.errors import BadConfig

OSLO = {"name": "get_weather", "arguments": {"city": "Oslo"}}
BERGEN = {"name": "get_weather", "arguments": {"city": "Bergen"}}


def case(*accepted: list[Any], **more: Any) -> ConformanceCase:  # noqa: ANN401 -- whatever a case can have
    return ConformanceCase("c-1", "hermes", "composed", (), "text", accepted, **more)


def test_every_case_has_an_id_of_its_own_that_fits_into_a_token() -> None:
    cases = conformance_cases()
    assert len({each.id for each in cases}) == len(cases) > 400
    model = ScriptedModel(cases)
    assert all(case_token(each.id, 1).isprintable() and " " not in case_token(each.id, 1) for each in cases)
    assert not model.asked


def test_the_data_is_small_enough_for_the_wheel() -> None:
    data = Path(conformance.__file__).parent / "data"
    assert sum(file.stat().st_size for file in data.iterdir()) < 1_000_000


@pytest.mark.parametrize(
    ("calls", "text", "complains", "verdict"),
    [
        ([OSLO, BERGEN], "", False, CaseVerdict.RIGHT),
        ([OSLO], "", False, CaseVerdict.MISSED),
        ([OSLO], "", True, CaseVerdict.REFUSED),
        ([], "", True, CaseVerdict.REFUSED),
        ([OSLO, BERGEN], "<tool_call>", False, CaseVerdict.SHOWN),
        ([BERGEN, OSLO], "", False, CaseVerdict.WRONG),
        ([OSLO, OSLO], "", True, CaseVerdict.WRONG),
    ],
)
def test_calls_and_text_are_judged(calls: list[Any], text: str, complains: bool, verdict: CaseVerdict) -> None:
    assert case([OSLO, BERGEN], absent=("<tool_call>",)).judge(calls, text, complains=complains) is verdict


def test_true_is_not_one() -> None:
    asked = case([{"name": "f", "arguments": {"deep": [True], "n": 1}}])
    for deep, n, verdict in ((True, 1, CaseVerdict.RIGHT), (1, 1, CaseVerdict.WRONG), (True, True, CaseVerdict.WRONG)):
        assert asked.judge([{"name": "f", "arguments": {"deep": [deep], "n": n}}], "", complains=False) is verdict


def test_a_call_where_none_may_be_is_false_and_exact_text_ignores_white_space() -> None:
    quiet = case([], exact_text="Two  words.\n")
    assert quiet.judge([OSLO], "Two words.", complains=False) is CaseVerdict.FALSE
    assert quiet.judge([], "Two words.", complains=False) is CaseVerdict.RIGHT
    assert quiet.judge([], "Two words", complains=False) is CaseVerdict.SHOWN


def test_a_text_is_cut_without_loss_and_the_same_way_each_time() -> None:
    text = "<tool_call>" + "é" * 5000
    assert "".join(cut_pieces(text, "a")) == text
    assert list(cut_pieces(text, "a")) == list(cut_pieces(text, "a")) != list(cut_pieces(text, "b"))
    assert 20 < len(list(cut_pieces(text, "a"))) < 1000
    assert list(cut_pieces("", "a")) == []


# the scripted upstream


def post(url: str, body: object) -> tuple[int, bytes]:
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def asked(text: str, **more: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def test_it_answers_with_the_text_of_the_case_in_the_protocol_of_openai() -> None:
    cases = conformance_cases()
    first, native = cases[0], next(each for each in cases if each.deltas)
    model = ScriptedModel(cases)
    with serve_scripted(model, "127.0.0.1", 0) as url:
        token = case_token(first.id, 7)
        whole = judge_whole(post(url, asked(f"[system: x] {token}"))[1])
        options = {"stream": True, "stream_options": {"include_usage": True}}
        stream = judge_stream(post(url, asked(f"<user>{token}</user>", **options))[1])
        status, _ = post(url, asked(case_token(native.id, 8)))
        hello = judge_whole(post(url, asked("Are you there?"))[1])
        listed = json.loads(urllib.request.urlopen(f"{url}/models", timeout=30).read())
    assert (whole.text, whole.problems) == (stream.text, stream.problems) == (first.text, ())
    assert model.asked == {token: 2, case_token(native.id, 8): 1}
    assert (status, hello.text, model.unnamed) == (400, HELLO_TEXT, 1)
    assert listed["data"][0]["id"] == MODEL
    assert first.model in [each["id"] for each in listed["data"]]


def test_it_refuses_what_is_no_chat_request() -> None:
    with serve_scripted(ScriptedModel(()), "127.0.0.1", 0) as url:
        assert post(url, [])[0] == 400
        assert post(url.removesuffix("/v1") + "/elsewhere/v2", {})[0] == 200  # any base path will do
        assert post(f"{url}/x", {"model": "m"})[0] == 200
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"{url}/props", timeout=30)
        refused.value.close()


def test_a_port_that_is_taken_is_named() -> None:
    with serve_scripted(ScriptedModel(()), "127.0.0.1", 0) as url:
        port = int(url.split(":")[2].partition("/")[0])
        with (
            pytest.raises(BadConfig, match=rf"cannot listen on 127.0.0.1:{port}: .* --upstream-port"),
            serve_scripted(ScriptedModel(()), "127.0.0.1", port),
        ):
            pass


# the report


def result(verdict: CaseVerdict, kind: str = "hermes", *problems: str) -> TrialResult:
    shown = ConformanceCase("c-1", kind, "composed", (), "text", ([OSLO],))
    return TrialResult(shown, "stream", verdict, ReceivedAnswer(problems=problems))


def test_the_report_counts_by_kind_and_puts_the_worst_first_conf3() -> None:
    results = (
        *(result(CaseVerdict.RIGHT) for _ in range(5)),
        result(CaseVerdict.MISSED),
        result(CaseVerdict.WRONG),
        result(CaseVerdict.RIGHT, "glm", "the stream ends without [DONE]"),
    )
    report = ConformanceReport("http://box/v1", "m", results)
    assert [(row.kind, row.sent, row.right, row.protocol_errors) for row in report.rows()] == [
        ("hermes", 7, 5, 0),
        ("glm", 1, 0, 1),
    ]
    assert [each.verdict for each in report.worst()] == [CaseVerdict.WRONG, CaseVerdict.MISSED, CaseVerdict.RIGHT]
    assert not report.is_right
    assert report.as_object()["all_right"] == 5


def test_few_results_of_many_kinds_share_a_row() -> None:
    results = [result(CaseVerdict.RIGHT, kind) for kind in "abcdeghijk"] + [result(CaseVerdict.RIGHT, "f")] * 4
    assert [(row.kind, row.sent) for row in ConformanceReport("u", "m", tuple(results)).rows()] == [
        ("f", 4),
        ("other families", 10),
    ]


@pytest.mark.parametrize(("right", "color"), [(20, "#3a7d34"), (16, "#8f6a00"), (3, "#b3362b")])
def test_the_badge_is_an_svg_with_the_share(right: int, color: str) -> None:
    results = [result(CaseVerdict.RIGHT)] * right + [result(CaseVerdict.MISSED)] * (20 - right)
    badge = ConformanceReport("u", "m", tuple(results)).badge()
    root = ET.fromstring(badge)  # noqa: S314 -- we wrote it
    assert root.attrib["aria-label"] == f"tool calling: {right} of 20 right"
    assert color in badge
