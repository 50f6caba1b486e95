"""A trace as Markdown, as a cURL command, as a case of the corpus, and cut down to the smallest failing text."""

import json
import shlex

from tests.unit.traces.scene import record
from toolspeak.dialects import load
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.complaint import Problem
from toolspeak.traces.export import as_case, as_curl, as_markdown, shrink, smallest
from toolspeak.traces.replay import client_request, replay_turn
from toolspeak.traces.trace import AnswerPart, without_content

NO_TOOLS = ModelFacts(tools=Support.NONE, dialect="hermes")
BAD = 'Sure, I will look it up. <tool_call>\n{"name": "get_weather", "arguments": {"days": 3}}\n</tool_call> Done.'
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def test_a_case_is_read_by_the_corpus_as_the_trace_was() -> None:
    trace, _ = record(CALL, facts=NO_TOOLS)
    case = json.loads(json.dumps(as_case(trace, 0)))
    assert case["expect"]["calls"] == [{"name": "get_weather", "arguments": {"city": "Oslo"}}]
    read = load(case["dialect"]).read(case["text"], client_request(trace).tools)
    assert [call.name for call in read.calls] == ["get_weather"]
    assert case["tools"][0]["parameters"]["required"] == ["city"]


def test_shrink_finds_a_smaller_text_that_fails_alike() -> None:
    trace, _ = record(BAD, CALL, facts=NO_TOOLS)
    small = shrink(trace, 0)
    assert len(small) < len(BAD) / 2
    assert "Sure" not in small
    trace.attempts[0].parts = [AnswerPart("text", small)]
    complaints = replay_turn(trace).attempts[0].turn.complaints
    assert [(one.name, one.problem) for one in complaints] == [("get_weather", Problem.SCHEMA_ERROR)]


def test_smallest_keeps_what_is_needed() -> None:
    assert smallest("xxaxxbxx", lambda text: "a" in text and "b" in text) == "ab"


def test_smallest_ends_after_its_tries() -> None:
    assert len(smallest("x" * 100 + "a", lambda text: "a" in text, tries=1)) > 1


def test_curl_quotes_the_body_for_a_shell_and_holds_no_key() -> None:
    trace, _ = record("It's sunny.", body='{"model": "small", "messages": [{"role": "user", "content": "It\'s?"}]}')
    words = shlex.split(as_curl(trace, "http://127.0.0.1:4141/").replace("\\\n", ""))
    assert words[1] == "http://127.0.0.1:4141/v1/chat/completions"
    assert json.loads(words[-1]) == json.loads(trace.body)
    assert "Bearer $TOOLSPEAK_KEY" in words[5]


def test_markdown_tells_the_whole_story_and_cannot_be_broken_by_fences() -> None:
    trace, _ = record(f"```\n# not a heading\n```\n{BAD}", CALL, facts=NO_TOOLS)
    page = as_markdown(trace)
    assert "Sent because its calls cannot run" in page
    assert "\n````\n```\n# not a heading" in page
    assert "rejected: get_weather: schema_error" in page


def test_markdown_of_a_trace_without_content_has_the_figures() -> None:
    trace, _ = record(BAD, CALL, facts=NO_TOOLS)
    page = as_markdown(without_content(trace))
    assert "Attempt 2: inline" in page
    assert "Oslo" not in page
