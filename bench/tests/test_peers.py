"""The comparison with other parsers: cuts, choice of a parser, the judge, and tables from results made by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.field_peers import called, is_only_trimmed, judged
from bench.peers import page
from bench.peers.parsers import PEERS, ROWS, deltas, opened_reasoning, row_of, tokens
from testkit.field import FieldCase, Verdict, field_cases
from testkit.golden import samples
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

CALL = {"name": "write", "arguments": {"text": "a\n"}}


def case(*calls: object, contains: tuple[str, ...] = ()) -> FieldCase:
    tools = ToolSet.of([Tool("write", "", {"type": "object"})])
    return FieldCase("c", "vllm-project/vllm#1", "qwen3:8b", "hermes", tools, "text", (list(calls),), contains)


def answer(*calls: tuple[str, str], text: str = "", **more: str) -> dict[str, Any]:
    return {"text": text, "calls": [{"name": name, "arguments": arguments} for name, arguments in calls], **more}


def test_special_tokens_are_never_cut_and_nothing_is_lost() -> None:
    text = 'Hi <tool_call>\n{"name": "a_long_name_of_a_tool"}</tool_call> <|channel|>'
    assert {"<tool_call>", "</tool_call>", "<|channel|>"} <= set(tokens(text))
    assert "".join(tokens(text)) == text
    assert deltas(text, "seed", 1) == [[token] for token in tokens(text)]
    assert [token for delta in deltas(text, "seed", 4) for token in delta] == tokens(text)
    assert max(map(len, deltas(text, "seed", 4))) <= 4


def test_every_field_case_survives_its_cut() -> None:
    assert all("".join(tokens(each.text)) == each.text for each in field_cases())


def test_reasoning_is_seen_by_its_marks() -> None:
    marks = ("<think>", "</think>")
    assert opened_reasoning("just text", marks) == (False, "")
    assert opened_reasoning("<think>a</think>b", marks) == (True, "")
    assert opened_reasoning("a</think>b", marks) == (True, "<think>")
    assert opened_reasoning("a</think><think>b", marks) == (True, "<think>")
    assert opened_reasoning("anything", ("", "")) == (True, "")


def test_the_model_or_else_the_dialect_chooses_the_row() -> None:
    assert row_of("qwen3:8b", "hermes") == ROWS[0]
    assert (row := row_of("MiniMax-M3", "minimax"))
    assert row.parser("vllm")[0] == "minimax_m3"
    assert row_of("claude-opus-4-8", "invoke_xml") is None


def test_each_row_has_a_parser_and_a_sample_of_its_format() -> None:
    known = {each.id for each in samples()}
    for row in ROWS:
        assert any(row.parser(peer)[0] for peer in PEERS)
        assert row.sample in known or row.sample in ("deepseek-v4", "deepseek-v4.1", "xlam")


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (answer(("write", '{"text": "a\\n"}'), text="on it"), Verdict.RIGHT),
        (answer(("write", '{"text": "a\\n"}')), Verdict.SHOWN),
        (answer(), Verdict.MISSED),
        (answer(error="cannot parse"), Verdict.REFUSED),
        (answer(("write", '{"text": "a"}')), Verdict.WRONG),
        (answer(("write", '{"text": ')), Verdict.WRONG),
        (answer(("other", '{"text": "a\\n"}')), Verdict.WRONG),
    ],
)
def test_an_answer_of_a_peer_is_judged_like_ours(given: dict[str, Any], verdict: Verdict) -> None:
    assert judged(case(CALL, contains=("on it",)), given) is verdict


def test_a_call_that_was_not_meant_is_false() -> None:
    assert judged(case(), answer(("write", ""))) is Verdict.FALSE


def test_lost_white_space_at_the_ends_of_values_is_told_apart() -> None:
    assert is_only_trimmed(case(CALL), called(answer(("write", '{"text": "a"}'))))
    assert not is_only_trimmed(case(CALL), called(answer(("write", '{"text": "b"}'))))


def results() -> dict[str, Any]:
    def row(source: str, ours: str, peer: str) -> dict[str, Any]:
        verdicts = {**dict.fromkeys(page.OURS, [ours] * 3), **dict.fromkeys(PEERS, [peer] * 3)}
        return {"source": source, "note": "a note", "verdicts": verdicts}

    return {
        "versions": dict.fromkeys(PEERS, "1.0"),
        "parsers": {peer: {row.parser(peer)[0]: row.sample != "xlam" for row in ROWS} for peer in PEERS},
        "only_trimmed": {peer: ["c"] for peer in PEERS},
        "cases": {
            "a": row("vllm-project/vllm#7", "right", "missed"),
            "b": row("composed", Verdict.REFUSED.value, "right"),
            "c": row("composed", "right", "wrong call"),
            "d": row("composed", "right", "no parser"),
        },
    }


def test_verdicts_count_each_kind() -> None:
    assert "| vllm 1.0 | 1 | 0 | 0 | 1 | 1 | 0 | 1 |" in page.verdicts(results())
    assert "| toolspeak gateway | 3 | 1 | 0 | 0 | 0 | 0 | 0 |" in page.verdicts(results())


def test_pairs_leave_out_cases_without_a_parser_and_own_issues() -> None:
    made = page.pairs(results())
    assert "| vllm | 3 | 1 (2) | 1 (2) | 1 (2) | 1 (0) |" in made
    assert "| vllm, without its own issues | 2 | 1 (1) | 1 (1) | 1 (1) | 1 (0) |" in made


def test_better_lists_what_a_peer_reads_and_we_do_not() -> None:
    made = page.better(results())
    assert "| b | whole, tokens, deltas |" in made
    assert "| a |" not in made
    lost = results()
    del lost["cases"]["b"]
    assert page.better(lost) == "There is no such case.\n"


def test_a_parser_that_failed_its_check_is_said_to_be_left_out() -> None:
    assert "`xlam` (left out)" in page.parsers(results())
    assert "| vllm | 1 | a |" in page.sources(results())
    assert "vllm 1 of 1" in page.trimmed(results())


def test_the_page_is_made_from_the_last_results() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.fresh(written)
    assert set(json.loads(Path(page.RESULTS).read_text(encoding="utf-8"))["cases"]) <= {c.id for c in field_cases()}
