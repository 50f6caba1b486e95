"""The comparison with other parsers: cuts, choice of a parser, the judge, and tables from results made by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.field_peers import called, is_only_trimmed, judged
from bench.peers import page
from bench.peers.parsers import PEERS, ROWS, Question, deltas, opened_reasoning, row_of, tokens
from bench.peers.suite import SuiteCase, as_result, suite_cases
from testkit.field import FieldCase, Verdict, field_cases
from testkit.golden import samples

CALL = {"name": "write", "arguments": {"text": "a\n"}}


def case(*calls: object, contains: tuple[str, ...] = ()) -> FieldCase:
    return FieldCase(
        id="c",
        kind="qwen-json",
        source="vllm-project/vllm#1",
        functions=({"name": "write", "parameters": {"type": "object"}},),
        text="text",
        accepted=(list(calls),),
        model="qwen3:8b",
        dialect="hermes",
        contains=contains,
    )


def answer(*calls: tuple[str, str], text: str = "", **more: str) -> dict[str, Any]:
    return {"text": text, "calls": [{"name": name, "arguments": arguments} for name, arguments in calls], **more}


def test_special_tokens_are_never_cut_and_nothing_is_lost() -> None:
    text = 'Hi <tool_call>\n{"name": "a_long_name_of_a_tool"}</tool_call> <|channel|>'
    assert {"<tool_call>", "</tool_call>", "<|channel|>"} <= set(tokens(text))
    assert "".join(tokens(text)) == text
    assert deltas(text, "seed", 1) == [[token] for token in tokens(text)]
    assert [token for delta in deltas(text, "seed", 4) for token in delta] == tokens(text)
    assert max(map(len, deltas(text, "seed", 4))) <= 4


def test_every_text_survives_its_cut() -> None:
    texts = [each.text for each in field_cases()] + [each.fixture.raw_output for each in suite_cases()]
    assert all("".join(tokens(text)) == text for text in texts)


def test_no_cut_is_inside_what_surrounds_keys_and_strings_in_json() -> None:
    assert tokens('{"a":"b","c"}') == ['{"', "a", '":', '"', "b", '",', '"', "c", '"}']


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


def suite_case(name: str) -> SuiteCase:
    return next(each for each in suite_cases() if each.fixture.id == name)


@pytest.mark.parametrize(
    ("name", "vllm", "sglang", "ai_sdk"),
    [
        ("qwen3-hermes/single-call-thinking", ("hermes", "qwen3"), ("qwen25", "qwen3"), "hermes"),
        ("qwen3-xml/coder-marker-in-arguments", ("qwen3_coder", ""), ("qwen3_coder", ""), "qwen3Coder"),
        ("deepseek/v41-long-arguments", ("deepseek_v41", "deepseek_v41"), ("deepseekv41", "deepseek-v41"), ""),
        ("glm/glm45-no-call", ("glm45", "glm45"), ("glm45", "glm45"), ""),
        ("kimi/k2i-vllm-multiline-json", ("kimi_k2", ""), ("kimi_k2", ""), ""),
    ],
)
def test_the_suite_names_the_parsers_for_a_model(
    name: str, vllm: tuple[str, str], sglang: tuple[str, str], ai_sdk: str
) -> None:
    case = suite_case(name)
    assert case.parsers("vllm") == vllm
    assert case.parsers("sglang") == sglang
    assert case.parsers("@ai-sdk-tool/parser")[0] == ai_sdk


def test_every_fixture_has_a_parser_at_both_servers() -> None:
    assert all(each.parsers(peer)[0] for each in suite_cases() for peer in ("vllm", "sglang"))


def asked(name: str) -> Question:
    return suite_case(name).question


def test_a_question_tells_what_the_prompt_and_the_request_tell() -> None:
    assert asked("kimi/k3-single-call").opened
    assert asked("deepseek/v32-truncated-mid-arguments").thinking is False
    assert asked("gpt-oss/harmony-single-call").stop == "<|call|>"
    assert not asked("gpt-oss/harmony-truncated-in-arguments").stop
    assert asked("gpt-oss/harmony-single-call").ids
    assert "[ARGS]" not in asked("mistral/v3-single-call").special
    assert {"[ARGS]", "[THINK]"} <= set(asked("mistral/v13-parallel-calls").special)
    sent = asked("glm/glm45-no-call").ask("glm45", "", {"whole": 0, "tokens": 1})
    assert (sent["forced"], sent["template"]["thinking"], sent["reasoning"]) == (None, True, None)
    assert "".join(piece for delta in sent["streams"]["tokens"] for piece in delta) == sent["text"]


WEATHER = ("get_weather", '{"city": "Paris", "unit": "c"}')
THOUGHT = "The user asks for the weather in Paris. I should call get_weather."


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (answer(WEATHER, reasoning=f"{THOUGHT}\n"), Verdict.RIGHT),
        (answer(WEATHER), Verdict.SHOWN),
        (answer(WEATHER, text="<|call|>", reasoning=THOUGHT), Verdict.SHOWN),
        (answer(reasoning=THOUGHT), Verdict.MISSED),
        (answer(error="cannot parse"), Verdict.MISSED),
        (answer(("get_weather", '{"city": "Rome", "unit": "c"}'), reasoning=THOUGHT), Verdict.WRONG),
        (answer(WEATHER, WEATHER, reasoning=THOUGHT), Verdict.WRONG),
    ],
)
def test_the_checks_of_the_suite_judge_a_peer(given: dict[str, Any], verdict: Verdict) -> None:
    assert suite_case("gpt-oss/harmony-single-call").judge(as_result(given)) is verdict


def test_a_call_from_a_truncated_output_is_false_and_an_error_is_accepted() -> None:
    cut = suite_case("gpt-oss/harmony-truncated-in-arguments")
    assert cut.judge(as_result(answer(WEATHER))) is Verdict.FALSE
    assert cut.judge(as_result(answer(error="cannot parse"))) is Verdict.RIGHT
    assert as_result(answer(text="a", error="a warning")).exception is None


def test_the_reason_is_said_where_we_are_not_right() -> None:
    limit = suite_case("glm/glm47-missing-last-close-arg-value")
    assert "refused" in limit.reason(limit.ours(0))
    right = suite_case("gpt-oss/harmony-single-call")
    assert [right.judge(right.ours(most)) for most in (0, 1, 4)] == [Verdict.RIGHT] * 3
    assert not right.reason(right.ours(0))
    assert right.reason(as_result(answer())).startswith("expected_match: ")


def results() -> dict[str, Any]:
    def row(source: str, ours: str, peer: str) -> dict[str, Any]:
        verdicts = {**dict.fromkeys(page.OURS, [ours] * 3), **dict.fromkeys(PEERS, [peer] * 3)}
        return {"source": source, "note": "a note", "verdicts": verdicts}

    def fixture(kind: str, ours: str, peer: str, *, truncated: bool = False) -> dict[str, Any]:
        read = row("https://github.com/vllm-project/vllm/x", ours, peer)
        verdicts = {name: read["verdicts"][name] for name in (page.GATEWAY, *PEERS)}
        return {**read, "kind": kind, "truncated": truncated, "verdicts": verdicts}

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
        "fixtures": {
            "kimi/a": fixture("engine_test", "right", "false call", truncated=True),
            "kimi/b": fixture("template_render", "missed", "right"),
            "glm/c": fixture("template_render", "right", "no parser"),
        },
    }


def test_verdicts_count_each_kind() -> None:
    assert "| vllm 1.0 | 1 | 0 | 0 | 1 | 1 | 0 | 1 |" in page.verdicts(results())
    assert "| toolspeak gateway | 3 | 1 | 0 | 0 | 0 | 0 | 0 |" in page.verdicts(results())


def test_pairs_leave_out_cases_without_a_parser_and_own_issues() -> None:
    made = page.pairs(results())
    assert "| vllm | 3 | 1 (2) | 1 (2) | 1 (2) | 1 (0) |" in made
    assert "| vllm, without its own issues and tests | 2 | 1 (1) | 1 (1) | 1 (1) | 1 (0) |" in made


def test_better_lists_what_a_peer_reads_and_we_do_not() -> None:
    made = page.better(results())
    assert "| b | whole, tokens, deltas |" in made
    assert "| a |" not in made
    lost = results()
    del lost["cases"]["b"]
    assert page.better(lost) == "None.\n"


def test_a_parser_that_failed_its_check_is_said_to_be_left_out() -> None:
    assert "`xlam` (left out)" in page.parsers(results())
    assert "| vllm | 1 | a |" in page.sources(results())
    assert "vllm 1 of 1" in page.trimmed(results())


def test_the_tables_of_the_suite() -> None:
    made = {name: page.TABLES[f"suite-{name}"](results()) for name in ("verdicts", "families", "truncated", "better")}
    assert "| vllm 1.0 | 1 | 0 | 0 | 0 | 1 | 1 |" in made["verdicts"]
    assert "| toolspeak gateway | 2 | 0 | 1 | 0 | 0 | 0 |" in made["verdicts"]
    assert "asked again" not in made["verdicts"]
    assert "told the format" not in made["verdicts"]
    assert "| kimi | 2 | 1, 1 | 1, 1 |" in made["families"]
    assert "| glm | 1 | 1, 1 | – |" in made["families"]
    assert "the 1 truncated outputs (whole texts): toolspeak gateway 0 of 0, vllm 1 of 1," in made["truncated"]
    assert "| kimi/b | whole, tokens, deltas |" in made["better"]
    assert "kimi/a" not in made["better"]
    assert "| tests of vllm-project/vllm | 1 |" in page.origins(results())


def test_the_page_is_made_from_the_last_results() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.fresh(written)
    last = json.loads(Path(page.RESULTS).read_text(encoding="utf-8"))
    assert set(last["cases"]) <= {each.id for each in field_cases()}
    assert set(last["fixtures"]) == {each.fixture.id for each in suite_cases()}
