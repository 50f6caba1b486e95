"""The cases of the failure corpus that are the engine's: when it asks again, what it renders, how a turn ends.

Calls and text of the parser's cases are proven by `just corpus`; here the same texts go through whole turns. Cases that
no turn can answer alone are in OTHERS, each with its reason.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from testkit.corpus import native_frames
from testkit.golden import Case, failures
from tests.contract.test_wire_corpus import CASES
from tests.unit.engine.scene import OSLO, Ran, ask, roles, run, said, user, words, words_of, written
from toolspeak import wires
from toolspeak.dialects.core.output import counted_ids
from toolspeak.engine.prompt import CONTINUE
from toolspeak.engine.refusal import refuses_tools
from toolspeak.engine.settings import Mode, Settings
from toolspeak.ir.event import Event, Finished, StopReason, TextDelta
from toolspeak.ir.failure import FailureKind
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, Tool
from toolspeak.testing import Scripted, called

ASKS = ("retry_", "unknown_tool", "schema_error")
"""How the signals begin that mean: tell the model what was wrong, and let it try again."""

SILENT = {
    "tr-003-cut-before-required-key",
    "tr-004-cut-shell-command",
    "tr-007-xml-value-cut-by-length",
    "tr-008-opener-only",
    "hg-007-deep-nesting",
    "hg-009-openers-flood",
    "hg-010-whitespace-runaway",
    "hg-011-5000-digit-integer",
    "hg-012-float-overflow",
}
"""The case names a complaint and no retry; CHK-4 makes a correction of every complaint."""

OTHERS = {
    "tr-010-prose-instead-of-call-cut": "a text that is cut is still an answer; nudging on is the run's (RUN-1)",
    "tr-012-client-stop-sequence-cuts-call": "cannot happen: the client's stops do not go upstream (see below)",
    "st-002-function-closer-consumed": "cannot happen: no closer is sent as a stop sequence; the reader's option",
    "er-004-harmony-tokens-stripped": "the case offers no tools: a chat passes as it is (see below for one with tools)",
    "lp-001-identical-calls-identical-results": "loops are the run's (RUN-7)",
    "lp-002-polling-is-legal": "as above",
    "lp-003-reopen-runaway": "a limit that is configured: the reader's option, proven there",
    "ss-003-client-cancel": "the gateway notices; that a cancelled turn closes its upstream is in test_drive.py",
    "ss-004-no-failover-after-client-gone": "the gateway's",
    "ss-005-idle-prefill-killed-by-middlebox": "keep-alives are the gateway's",
    "ss-008-retry-must-not-repeat-side-effects": "tools run in runs only (RUN-3)",
    "pr-001-text-answer-is-inconclusive": "probing is its own issue (CAP-3)",
    "pr-002-call-as-text": "as above",
    "pr-003-empty-capabilities-vs-failure": "as above",
    "pr-004-static-table-outdated": "as above",
    "pr-005-many-tools-change-behaviour": "as above",
    "rf-claimed-success-without-call": "a verifier of runs: in one turn nobody knows what was done",
    "ij-007-hostile-tool-definition": "a bad request: the wires refuse the name",
}

STOPS = {"stop": StopReason.END, "length": StopReason.LENGTH, "tool_calls": StopReason.CALLS}
TURNS = {case.id: case for case in failures() if case.body == "text" and case.id not in OTHERS}
IN_TEXT = [id for id, case in TURNS.items() if case.deltas is None]
IN_DELTAS = [id for id, case in TURNS.items() if case.deltas is not None]


def answer(case: Case) -> list[Event]:
    """Say what the model said: natively through the wire, or as text in pieces."""
    if case.deltas is not None:
        decoder = wires.load("openai_chat").new_decoder(Request("m", (), case.tools, stream=True), counted_ids())
        return [*decoder.feed(b"".join(native_frames(case))), *decoder.finish()]
    pieces = [case.raw[start : start + 64] for start in range(0, len(case.raw), 64)]
    return [*map(TextDelta, pieces), Finished(STOPS[CASES[case.id].get("upstream_finish", "stop")])]


def settings_of(case: Case) -> Settings:
    """Emulate in the case's dialect; where it can only be read, the text has leaked out of a native answer."""
    emulated = case.deltas is None and case.dialect.writer is not None
    if case.dialect.name == "keyed":
        return Settings(mode=Mode.FORCE, key=CASES[case.id]["nonce"])
    return Settings(mode=Mode.FORCE if emulated else Mode.AUTO, dialect=case.dialect.name)


def turn(case: Case, *more: Scripted, retries: int | None = None) -> Ran:
    context = CASES[case.id].get("context", {})
    heard = [user("Go on.")]
    if "tool_result_contains" in context:
        heard += [said("", OSLO), Message(Role.TOOL, (Result("c1", (Text(context["tool_result_contains"]),)),))]
    request = Request("m", tuple(heard), case.tools, case.options.choice, Sampling(), stream=True)
    return run(replace(settings_of(case), retries=retries), answer(case), *more, request=request)


def asks(id: str) -> bool:
    return CASES[id]["expect"].get("signal", "").startswith(ASKS) or id in SILENT


# ---------------------------------------------------------------- asking again


@pytest.mark.parametrize("id", [*IN_TEXT, *IN_DELTAS])
def test_the_engine_asks_again_exactly_when_the_case_says_so_chk5(id: str) -> None:
    ran = turn(TURNS[id], "Well then.", "Well then.")
    assert (ran.outcome.requests > 1) is asks(id)


@pytest.mark.parametrize("id", [id for id in TURNS if asks(id)])
def test_the_correction_says_what_the_case_complains_of_chk4(id: str) -> None:
    ran = turn(TURNS[id], "Well then.", "Well then.")
    wanted = [problem["error"] for problem in CASES[id]["expect"].get("invalid", [])]
    assert [complaint.problem.value for complaint in ran.outcome.complaints] == wanted
    assert words(ran.sent[1]).startswith(words(ran.sent[0]))
    assert len(words(ran.sent[1])) > len(words(ran.sent[0]))


@pytest.mark.parametrize("id", IN_TEXT)
def test_a_turn_delivers_the_calls_of_the_case_p3(id: str) -> None:
    case = TURNS[id]
    assert turn(case, retries=0).calls == [(call["name"], call["arguments"]) for call in case.calls]


@pytest.mark.parametrize("id", [id for id in IN_TEXT if not asks(id) and TURNS[id].text is not None])
def test_a_turn_shows_the_text_of_the_case_p1(id: str) -> None:
    assert turn(TURNS[id]).turn.text.strip() == (TURNS[id].text or "").strip()


def test_silent_and_other_cases_are_what_they_are_said_to_be_chk4() -> None:
    assert set(OTHERS) <= set(CASES)
    assert {id for id in SILENT if CASES[id]["expect"].get("invalid")} == SILENT
    assert not [id for id in SILENT if CASES[id]["expect"].get("signal", "").startswith(ASKS)]
    assert len(IN_TEXT) + len(IN_DELTAS) > 210


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("id", [id for id, case in CASES.items() if case["group"] == "refusal"])
def test_only_a_claim_to_have_no_tools_is_asked_again_chk6(id: str) -> None:
    claims = CASES[id]["expect"].get("signal") == "retry_refusal"
    assert refuses_tools(CASES[id]["raw_output"]) is claims
    ran = turn(next(case for case in failures() if case.id == id), *[CASES[id]["raw_output"]] * 2)
    assert ran.outcome.requests == (3 if claims else 1)
    assert ran.turn.text == CASES[id]["expect"]["text"]


def test_the_refusals_are_in_ten_languages_chk6() -> None:
    assert len({case["lang"] for case in CASES.values() if case["group"] == "refusal" and "lang" in case}) == 10


# ---------------------------------------------------------------- empty answers


@pytest.mark.parametrize("id", [id for id in TURNS if CASES[id]["group"] == "empty_response"])
def test_an_empty_answer_is_asked_again_and_then_an_error_p6(id: str) -> None:
    assert turn(TURNS[id], "Well then.").turn.text == "Well then."
    raw = TURNS[id].raw
    ran = turn(TURNS[id], raw, raw)
    assert ran.outcome.requests == 3
    assert ran.turn.failure is not None


def test_stripped_harmony_is_read_where_tools_are_offered_mode8() -> None:
    raw = CASES["er-004-harmony-tokens-stripped"]["raw_output"]
    ran = run(Settings(dialect="harmony"), raw)
    assert (ran.turn.text, ran.turn.reasoning) == ("four", "User asks 2+2. Answer in one word.")


# ---------------------------------------------------------------- tool choice


def test_a_required_call_is_insisted_on_and_then_an_error_chk1() -> None:
    case = TURNS["tc-001-required-but-text"]
    ran = turn(case, case.raw, case.raw)
    assert (ran.turn.text, ran.outcome.requests) == ("", 3)
    assert ran.turn.failure is not None
    assert len({words_of(sent.messages[-1]) for sent in ran.sent[1:]}) == 2


def test_only_the_named_tool_will_do_chk1() -> None:
    case = TURNS["tc-002-named-but-other"]
    right = written(OSLO, dialect=case.dialect.name, tools=case.tools)
    assert turn(case, right).calls == [("get_weather", {"city": "Oslo"})]


# ---------------------------------------------------------------- how a turn ends


def test_a_delivered_call_ends_the_turn_with_calls_fr_001() -> None:
    ran = turn(TURNS["fr-001-stop-becomes-tool-calls"])
    assert ran.turn.stop is StopReason.CALLS


ENDS = {id: CASES[id]["expect"]["finish_reason"] for id in IN_TEXT if "finish_reason" in CASES[id]["expect"]}


@pytest.mark.parametrize(("id", "reason"), ENDS.items())
def test_a_turn_ends_as_the_case_says_p3(id: str, reason: str) -> None:
    assert turn(TURNS[id], retries=0).turn.stop is STOPS[reason]


def test_the_client_s_stops_do_not_go_upstream_tr_012() -> None:
    case = next(case for case in failures() if case.id == "tr-012-client-stop-sequence-cuts-call")
    stops = tuple(CASES[case.id]["context"]["client_stop"])
    request = ask(tools=case.tools, stop=stops)
    ran = run(settings_of(case), case.raw + 'and a second"}}</tool_call>', request=request)
    assert not set(stops) & set(ran.sent[0].sampling.stop)
    assert [name for name, _ in ran.calls] == ["note"]


# ---------------------------------------------------------------- histories


def history(id: str) -> tuple[Message, ...]:
    """Read the messages of a case, and complete what it leaves out: a question, and the call of each result."""
    messages: list[dict[str, Any]] = CASES[id]["messages"]
    if messages[0]["role"] == "tool":
        function = {"name": "read_file", "arguments": '{"path": "a"}'}
        call = {"id": messages[0]["tool_call_id"], "type": "function", "function": function}
        messages = [{"role": "assistant", "tool_calls": [call]}, *messages]
    if messages[0]["role"] != "user":
        messages = [{"role": "user", "content": "Go on."}, *messages]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    return wires.load("openai_chat").decode_request(body, "").messages


def rendered(id: str, dialect: str = "hermes") -> Request:
    tools = [Tool(tool["name"], "", tool.get("parameters", {})) for tool in CASES[id]["tools"]]
    request = ask(*history(id), tools=tools)
    return run(Settings(mode=Mode.FORCE, dialect=dialect), "Well then.", request=request).sent[0]


def test_a_follow_up_without_tools_can_still_be_read_by_the_model_tn_001() -> None:
    """INL-4 goes further than the case: the tools of the history stay on offer."""
    sent = rendered("tn-001-follow-up-without-tools")
    assert not [part for message in sent.messages for part in message.parts if isinstance(part, Call | Result)]
    assert roles(sent) == ["system", "user", "assistant", "user"]
    assert "3C" in words(sent)


@pytest.mark.parametrize("settings", [Settings(chat=True), Settings(mode=Mode.FORCE)])
def test_a_chat_about_earlier_calls_has_no_contract_tn_001(settings: Settings) -> None:
    choice = replace(AUTO, mode=AUTO.mode.NONE)
    request = ask(*history("tn-001-follow-up-without-tools"), tools=(), choice=choice)
    sent = run(settings, "Well then.", request=request).sent[0]
    assert "# Tools" not in words(sent)
    assert "3C" in words(sent)


@pytest.mark.parametrize("dialect", ["hermes", "decision_json", "invoke_xml", "qwen_xml"])
@pytest.mark.parametrize("id", [id for id in CASES if id[:6] in ("ij-004", "ij-005", "ij-006", "ij-008", "ij-009")])
def test_a_result_has_one_closing_delimiter_and_no_special_tokens_safe2(id: str, dialect: str) -> None:
    frame = words_of(rendered(id, dialect).messages[-1]).removesuffix(CONTINUE).strip()
    closer = frame.splitlines()[-1]
    assert frame.count(closer) == 1
    assert not [mark for mark in ("<|im_end|>", "<|im_start|>", "\U000e0069") if mark in frame]


def test_a_result_that_pretends_to_be_framed_is_framed_again_safe2() -> None:
    last = words_of(rendered("ij-005-result-starts-with-wrapper").messages[-1])
    assert last.startswith("<tool_response>")
    assert "already wrapped, trust me" in last


def test_what_the_user_says_is_never_a_call_safe1() -> None:
    request = ask(*history("ij-012-user-text-is-never-parsed"), tools=(Tool("shell"),))
    assert run(Settings(mode=Mode.FORCE, dialect="hermes"), "Well then.", request=request).calls == []


def test_a_prefill_is_never_the_begin_of_a_call_safe1() -> None:
    request = ask(*history("ij-013-assistant-prefill-smuggling"), tools=(Tool("shell"),))
    settings = Settings(mode=Mode.FORCE, dialect="hermes", retries=0)
    assert run(settings, "</tool_call>\nDone.", request=request).calls == []


def test_a_tainted_argument_is_the_run_s_to_judge_and_still_a_call_ij_011() -> None:
    case = TURNS["ij-011-tainted-argument-needs-approval"]
    assert turn(case).calls == [(call["name"], call["arguments"]) for call in case.calls]


def test_a_retry_answers_every_call_of_the_turn_id_009() -> None:
    tools = (Tool("get_weather", "", {"type": "object", "required": ["city"]}), Tool("shell"))
    bad: Sequence[Event] = [*called("get_weather", "{}", "a"), *called("no_such_tool", "{}", "b")]
    ran = run(Settings(), bad, "Well then.", request=ask(tools=tools))
    results = [part for message in ran.sent[1].messages for part in message.parts if isinstance(part, Result)]
    assert [result.call_id for result in results] == ["a", "b"]


# ---------------------------------------------------------------- what an upstream cannot do


def after(id: str, *more: Scripted, request: Request) -> Ran:
    """Let the upstream fail as in the case, and then answer."""
    failure = wires.load("openai_chat").decode_failure(CASES[id]["http_status"], CASES[id]["raw_output"].encode())
    return run(Settings(), failure, *more, request=request)


def classified(*kinds: FailureKind) -> list[str]:
    return [id for id, case in CASES.items() if case["expect"].get("classify") in kinds and "http_status" in case]


@pytest.mark.parametrize("id", classified(FailureKind.TOOLS_UNSUPPORTED, FailureKind.TOO_MANY_TOOLS))
def test_an_upstream_without_tools_is_emulated_mode3(id: str) -> None:
    ran = after(id, written(OSLO), request=ask())
    assert ran.calls == [("get_weather", {"city": "Oslo"})]
    assert ran.sent[1].tools == ()


@pytest.mark.parametrize(
    "id", [id for id, case in CASES.items() if case["expect"].get("classify") == "tool_choice_unsupported"]
)
def test_a_tool_choice_that_is_not_known_is_dropped_and_enforced_here_chk1(id: str) -> None:
    request = ask(choice=replace(AUTO, mode=AUTO.mode.REQUIRED))
    ran = after(id, called("get_weather", '{"city": "Oslo"}'), request=request)
    assert [sent.choice for sent in ran.sent] == [request.choice, AUTO]
    assert after(id, "Well then.", request=request).turn.failure is not None


def test_tools_that_cannot_be_streamed_are_not_streamed_mode5() -> None:
    ran = after("ue-bedrock-streaming", called("now"), request=ask())
    assert [sent.stream for sent in ran.sent] == [True, False]


@pytest.mark.parametrize("id", ["ue-groq-tool-use-failed", "ue-llamacpp-parse-failure"])
def test_the_call_inside_an_error_is_used_mode8(id: str) -> None:
    tools = [Tool("web_search"), Tool("web_search_exa")]
    ran = after(id, request=ask(tools=tools))
    assert len(ran.calls) == ran.outcome.requests == 1


@pytest.mark.parametrize("id", ["ue-llamacpp-grammar", "ue-groq-schema-mismatch"])
def test_a_server_that_breaks_on_calls_is_emulated_mode8(id: str) -> None:
    assert after(id, written(OSLO), request=ask()).calls == [("get_weather", {"city": "Oslo"})]


@pytest.mark.parametrize("id", [id for id in CASES if id.startswith("ue-negative")])
def test_what_has_nothing_to_do_with_tools_is_the_client_s_error_p6(id: str) -> None:
    ran = after(id, written(OSLO), request=ask())
    assert ran.outcome.requests == 1
    assert ran.turn.failure is not None
    assert ran.turn.failure.kind == CASES[id]["expect"]["classify"]


def test_an_upstream_that_wants_the_tools_of_its_history_gets_them_tn_002() -> None:
    request = ask(*history("tn-001-follow-up-without-tools"), tools=())
    ran = after("tn-002-bedrock-toolconfig-required", "Well then.", request=request)
    assert [tool.name for tool in ran.sent[1].tools] == ["get_weather"]
    assert ran.turn.text == "Well then."


@pytest.mark.parametrize("id", ["ro-001-tool-role-rejected", "ro-002-user-after-tool"])
def test_an_upstream_that_refuses_the_roles_gets_text_that_alternates_inl3(id: str) -> None:
    request = ask(*history("tn-001-follow-up-without-tools"), user("And now?"))
    ran = after(id, "Well then.", request=request)
    assert roles(ran.sent[1]) == ["system", "user", "assistant", "user"]
    assert ran.turn.text == "Well then."


def test_an_image_in_a_result_is_never_dropped_ro_004() -> None:
    sent = rendered("ro-004-image-in-tool-result")
    assert "done" in words(sent)
    assert "follows" in words_of(sent.messages[-1])
    assert any(type(part).__name__ == "Image" for part in sent.messages[-1].parts)


def test_a_failure_of_every_kind_ends_the_turn_p6() -> None:
    for kind in FailureKind:
        failure = replace(wires.load("openai_chat").decode_failure(500, b"x"), kind=kind)
        assert run(Settings(), *[failure] * 6).turn.failure is not None
