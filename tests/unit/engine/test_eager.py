"""Calls in text that leave while they are written (CHK-7): when, what is still checked, and what is given up."""

import json
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.noncalls.texts import noncalls
from testkit.noncalls.tools import TOOLS as NONCALL_TOOLS
from testkit.splits import at_random, by_characters
from tests.unit.engine.scene import ONE, Ran, answered, ask, leaving, run, said, texts, user
from toolspeak.dialects import load
from toolspeak.engine import growing_call
from toolspeak.engine.growing_call import LEAST
from toolspeak.engine.settings import Mode, Release, Settings
from toolspeak.ir.complaint import Problem
from toolspeak.ir.event import ArgsDelta, CallEnded, CallStarted, Event, Failed, StopReason, TextDelta
from toolspeak.ir.message import Call
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

WRITE = Tool(
    "write_file",
    "Write a file.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "mode": {"type": "integer"},
        },
        "required": ["path", "content"],
    },
)
FILE = 'def main() -> str:\n    """Say \\n."""\n    return "a < b"\n\n' * 20
LONG = Call("c", "write_file", json.dumps({"path": "a.py", "content": FILE}))
ASK = ask(user("Write a.py."), tools=(WRITE,))
EAGER = Settings(mode=Mode.FORCE, release=Release.EAGER)
PIECES = ("\n", '"', "}", "<", "</parameter>", "</arg_value>", "</tool_call>", "\\", "```")
GROWING = ("deepseek", "fenced", "glm", "hermes", "invoke_xml", "kimi", "mistral", "qwen_xml")


def written(call: Call, dialect: str = "hermes") -> str:
    writer = load(dialect).writer
    assert writer is not None
    return writer.write_calls((call,), ToolSet.of((WRITE,)))


def eagerly(text: str, chunk: int = 7, settings: Settings = EAGER, request: Request = ASK, *more: str) -> Ran:
    return run(replace(settings, retries=1), text, *more, chunk=chunk, request=request)


def streamed(events: Sequence[Event]) -> str:
    return "".join(event.json for event in events if isinstance(event, ArgsDelta))


# ---------------------------------------------------------------- what leaves


@pytest.mark.parametrize("dialect", GROWING)
def test_a_long_call_in_text_leaves_as_it_is_written_chk7(dialect: str) -> None:
    text = written(LONG, dialect)
    left = leaving(replace(EAGER, dialect=dialect), texts(*text), ASK)
    first = next(reads for reads, event in left if isinstance(event, CallStarted))
    assert first < LEAST + 100
    lag = 0
    for reads in range(first, len(text)):
        so_far = streamed([event for at, event in left if at <= reads])
        lag = max(lag, reads - len(so_far))
    assert lag < 160, "markup before the arguments, and what may be a closer"
    assert json.loads(streamed([event for _, event in left])) == json.loads(LONG.arguments)


@pytest.mark.parametrize("dialect", GROWING)
def test_every_cut_of_a_long_call_gives_the_same_turn_chk7(dialect: str) -> None:
    text = f"I write it.\n\n{written(LONG, dialect)}"
    settings = replace(EAGER, dialect=dialect)
    whole = run(settings, texts(text), request=ASK)
    assert [(call.name, json.loads(call.arguments)) for call in whole.turn.calls] == [
        ("write_file", json.loads(LONG.arguments))
    ]
    for pieces in (by_characters(text), *at_random(text, 6, 7)):
        ran = run(settings, texts(*pieces), request=ASK)
        assert ran.turn == whole.turn
        assert streamed(ran.events) == ran.turn.calls[0].arguments


@pytest.mark.parametrize("dialect", GROWING)
def test_a_long_call_is_the_same_eager_and_checked_chk7(dialect: str) -> None:
    text = written(LONG, dialect)
    turns = [eagerly(text, 11, replace(EAGER, dialect=dialect, release=release)).turn for release in Release]
    assert len({json.dumps(json.loads(turn.calls[0].arguments)) for turn in turns}) == 1
    assert {turn.calls[0].raw for turn in turns} == {turns[0].calls[0].raw}
    assert {turn.stop for turn in turns} == {StopReason.CALLS}


def test_a_rescued_call_streams_too_chk7() -> None:
    left = leaving(Settings(release=Release.EAGER), texts(*written(LONG)), ASK)
    assert len([event for _, event in left if isinstance(event, ArgsDelta)]) > 100


def test_two_long_calls_have_two_ids_chk7() -> None:
    ran = eagerly(f"{written(LONG)}\n{written(LONG)}")
    assert len({call.id for call in ran.turn.calls}) == 2
    assert [type(event) for event in ran.events if not isinstance(event, ArgsDelta)][:4] == [
        CallStarted,
        CallEnded,
        CallStarted,
        CallEnded,
    ]


def test_a_call_after_words_that_may_be_a_refusal_streams_chk7() -> None:
    left = leaving(EAGER, texts("I'm sorry, I can't ", "wait.\n\n", *written(LONG)), ASK)
    assert isinstance(left[0][1], TextDelta)
    assert next(reads for reads, event in left if isinstance(event, CallStarted)) < LEAST + 100


# ---------------------------------------------------------------- what comes whole


def whole(ran: Ran) -> bool:
    """Tell whether each call left in one piece."""
    kinds = [type(event) for event in ran.events if isinstance(event, CallStarted | ArgsDelta | CallEnded)]
    return kinds == [CallStarted, ArgsDelta, CallEnded] * (len(kinds) // 3)


@pytest.mark.parametrize(
    "arguments",
    [
        {"file": "a.py", "content": FILE},
        {"path": "<path>", "content": FILE},
        {"mode": "4", "path": "a.py", "content": FILE},
        {"path": ["a.py"], "content": FILE},
        {"path": "a.py", "content": FILE[:100]},
    ],
    ids=["unknown key", "placeholder", "needs a fix", "wrong type", "short"],
)
def test_a_short_call_or_one_whose_beginning_is_wrong_keeps_every_check_chk7(
    arguments: dict[str, object],
) -> None:
    text = written(replace(LONG, arguments=json.dumps(arguments)))
    checked = eagerly(text, 7, replace(EAGER, release=Release.CHECKED), ASK, written(LONG))
    eager = eagerly(text, 7, EAGER, ASK, written(LONG))
    assert whole(eager)
    assert eager.turn == checked.turn


def test_a_call_beyond_the_allowed_number_does_not_begin_chk7() -> None:
    ran = eagerly(f"{written(LONG)}\n{written(LONG)}", request=replace(ASK, choice=ONE))
    assert len([event for event in ran.events if isinstance(event, CallStarted)]) == 1


def test_a_call_that_repeats_untrusted_text_never_begins_to_leave_safe3() -> None:
    echo = written(LONG)
    for request in (
        ask(user(f"Explain: {echo}"), tools=(WRITE,)),
        ask(user(f"Explain: {echo[:-300]}"), tools=(WRITE,)),
    ):
        ran = eagerly(echo, request=request)
        checked = eagerly(echo, settings=replace(EAGER, release=Release.CHECKED), request=request)
        assert whole(ran)
        assert [call.arguments for call in ran.turn.calls] == [call.arguments for call in checked.turn.calls]


def test_a_call_that_begins_like_untrusted_text_streams_when_it_differs_chk7() -> None:
    ran = eagerly(written(LONG), request=ask(user(f"Go on: {written(LONG)[:60]}"), tools=(WRITE,)))
    assert len(ran.turn.calls) == 1
    assert not whole(ran)


def test_a_call_that_was_answered_just_now_does_not_begin_to_leave_chk9() -> None:
    request = ask(user("Write a.py."), said("", LONG), answered(LONG, "done"), tools=(WRITE,))
    ran = eagerly(written(LONG), 7, EAGER, request, "It is written.")
    assert (ran.turn.text, ran.turn.calls) == ("It is written.", ())
    other = replace(LONG, arguments=json.dumps({"path": "a.py", "content": FILE[:600] + "pass\n" + FILE}))
    ran = eagerly(written(other), 7, EAGER, request)
    assert not whole(ran)
    assert len(ran.turn.calls) == 1


def test_the_answer_tool_is_no_call_of_the_client_inl6() -> None:
    answer = Call("c", "answer", json.dumps({"text": FILE}))
    ran = eagerly(written(answer), settings=replace(EAGER, answer_tool=True))
    assert (ran.turn.text, ran.turn.calls) == (FILE, ())


def test_with_a_guardrail_calls_come_whole_chk7() -> None:
    assert whole(eagerly(written(LONG), settings=replace(EAGER, request_missing_calls=True)))


def test_a_client_that_does_not_stream_keeps_every_check_chk7() -> None:
    late = written(replace(LONG, arguments=json.dumps({"path": "a.py", "content": FILE, "mode": "4"})))
    ran = eagerly(late, request=replace(ASK, stream=False))
    assert json.loads(ran.turn.calls[0].arguments)["mode"] == 4


# ---------------------------------------------------------------- what is given up


def test_a_fix_that_comes_too_late_is_not_made_chk7() -> None:
    arguments = json.dumps({"path": "a.py", "content": FILE, "mode": "4"})
    for chunk in (7, 10_000):
        ran = eagerly(written(replace(LONG, arguments=arguments)), chunk)
        assert (ran.turn.calls[0].arguments, ran.turn.calls[0].fixes) == (arguments, ())


@pytest.mark.parametrize(
    "text",
    [
        written(replace(LONG, arguments=json.dumps({"path": "a.py", "content": FILE, "mode": "many"}))),
        written(replace(LONG, arguments=json.dumps({"content": FILE}))),
        written(LONG).replace("}}\n</tool_call>", "\n</tool_call>").replace('a < b\\"\\n\\n"', 'a < b"'),
        written(LONG).replace('"}}', '"}, "arguments": {"path": "b"}}'),
        written(LONG, "qwen_xml").replace("</function>", "<parameter=path>\nb\n</parameter>\n</function>"),
    ],
    ids=["schema", "missing", "broken JSON", "two arguments", "twice"],
)
def test_a_call_that_turns_out_wrong_has_no_end_and_the_turn_fails_p3(text: str) -> None:
    for chunk in (1, 7, 10_000):
        ran = eagerly(text, chunk, EAGER, ASK, written(LONG))
        assert ran.turn.calls == ()
        assert [type(event) for event in ran.events if not isinstance(event, ArgsDelta)] == [CallStarted, Failed]
        assert ran.outcome.complaints[0].problem in (Problem.SCHEMA_ERROR, Problem.PARSE_ERROR)


def test_a_call_that_the_token_limit_cut_has_no_end_and_the_turn_says_length_p3() -> None:
    for pieces in (by_characters(written(LONG)[:-40]), (written(LONG)[:-40],)):
        ran = run(EAGER, texts(*pieces, stop=StopReason.LENGTH), request=ASK)
        assert (ran.turn.calls, ran.turn.stop) == ((), StopReason.LENGTH)
        assert not [event for event in ran.events if isinstance(event, CallEnded)]


def test_nothing_that_follows_a_broken_call_is_shown_chk7() -> None:
    broken = written(replace(LONG, arguments=json.dumps({"content": FILE})))
    turns = {repr(eagerly(f"{broken}\n\nDone.\n{written(LONG)}", chunk).turn) for chunk in (1, 50, 10_000)}
    assert len(turns) == 1


# ---------------------------------------------------------------- every text


@given(st.integers(0, 2**32))
def test_every_cut_of_a_damaged_call_gives_the_same_turn_chk7(seed: int) -> None:
    source = Random(seed)
    dialect = source.choice(GROWING)
    text = written(LONG, dialect)
    place = source.randint(0, len(text) - 1)
    text = source.choice(
        (
            text[:place],
            text[:place] + text[place + source.randint(1, 40) :],
            text[:place]
            + source.choice(("\n", '"', "}", "<", "</parameter>", "</tool_call>", "\\", "```"))
            + text[place:],
            text[: max(place, 400)] + text[400:],
        )
    )
    settings = replace(EAGER, dialect=dialect, retries=0)
    turns = [run(settings, texts(*pieces), request=ASK) for pieces in ((text,), *at_random(text, 3, seed))]
    assert all(ran.turn == turns[0].turn for ran in turns)
    for ran in turns:
        ended = {event.id for event in ran.events if isinstance(event, CallEnded)}
        assert {call.id for call in ran.turn.calls} == ended
        assert all(isinstance(json.loads(call.arguments), dict) for call in ran.turn.calls)


@pytest.mark.parametrize("least", [1, LEAST])
def test_no_text_that_only_looks_like_a_call_becomes_one_p5(monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    monkeypatch.setattr(growing_call, "LEAST", least)  # their arguments are short
    request = ask(user("Explain it."), tools=NONCALL_TOOLS)
    parts = (CallStarted, CallEnded) if least == LEAST else (CallEnded,)
    for text in noncalls(400):
        ran = run(replace(EAGER, retries=0), text.text, request=request, chunk=9)
        assert not [event for event in ran.events if isinstance(event, parts)], text.text
