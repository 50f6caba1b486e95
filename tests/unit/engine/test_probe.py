"""A probe is a pure program: evidence in layers, the cheap first, and each with its reason (CAP-3)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import msgspec
import pytest

from toolspeak.engine.effects import AskOnce, Look, ProbeAnswer, ProbeProgram
from toolspeak.engine.probe import FEW, MANY, probe
from toolspeak.engine.verdict import Depth, Finding, Layer, Verdict, measured
from toolspeak.facts.model import UNKNOWN_MODEL, ModelFacts, Source, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.event import Event, Failed, Finished, StopReason, TextDelta, Usage
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.ir.message import Result
from toolspeak.ir.quirks import IdForm, Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode
from toolspeak.testing import called, failed

LEAK = '{"name": "roll_dice", "arguments": {"sides": 20}}'
MISSING = Failure(FailureKind.NOT_FOUND, "no such page", 404)
PROPS = {
    "default_generation_settings": {"n_ctx": 4096},
    "build_info": "b1",
    "chat_template": "{% if tools %}",
    "chat_template_caps": {"supports_tools": True, "supports_parallel_tool_calls": True},
}
SHOW = {
    "details": {"family": "llama"},
    "model_info": {"llama.context_length": 8192},
    "template": "{{ .Tools }}",
    "capabilities": ["completion", "tools"],
}
Says: TypeAlias = Callable[[Request], list[Event] | Failure]


def kind_of(request: Request) -> str:
    """Name the question that a request asks."""
    if not request.tools:
        return "plain"
    if any(isinstance(part, Result) for message in request.messages for part in message.parts):
        return "continued"
    if request.sampling.max_tokens in (1, 16):
        return "offered"
    if request.choice.mode is ChoiceMode.REQUIRED:
        return "forced"
    if len(request.tools) == len(MANY):
        return "many"
    if request.stream:
        return "streamed"
    return "twice" if "two times" in repr(request.messages) else "asked"


def native(times: int = 1) -> list[Event]:
    events = [event for index in range(times) for event in called("roll_dice", '{"sides": 20}', f"c{index}")]
    return [*events, Finished(StopReason.CALLS, Usage(90, 9))]


def words(text: str = "17", tokens: int = 90) -> list[Event]:
    return [TextDelta(text), Finished(StopReason.END, Usage(tokens, 3))]


GOOD: dict[str, Any] = {
    "plain": words(tokens=30),
    "offered": words(),
    "forced": native(),
    "asked": native(),
    "many": native(),
    "twice": native(2),
    "streamed": native(),
    "continued": words("You rolled 17."),
}


def run(program: ProbeProgram, answers: Callable[[Look | AskOnce], ProbeAnswer]) -> Verdict:
    answer: ProbeAnswer = None
    try:
        while True:
            answer = answers(program.send(answer))
    except StopIteration as stop:
        verdict: Verdict = stop.value
        return verdict


@dataclass
class Server:
    """What is asked of it, in order, and what it answers."""

    pages: Mapping[str, object] = field(default_factory=dict[str, object])
    says: Mapping[str, Any] = field(default_factory=lambda: GOOD)
    asked: list[str] = field(default_factory=list[str])

    def run(self, depth: Depth = Depth.FULL, model: str = "m") -> Verdict:
        return run(probe(model, depth), self._answer)

    def _answer(self, effect: Look | AskOnce) -> ProbeAnswer:
        if isinstance(effect, Look):
            self.asked.append(effect.path)
            page = self.pages.get(effect.path, MISSING)
            return page if isinstance(page, Failure) else json.dumps(page).encode()
        kind = kind_of(effect.request)
        self.asked.append(kind)
        said = self.says[kind]
        return [Failed(said)] if isinstance(said, Failure) else said


def probed(depth: Depth = Depth.FULL, pages: Mapping[str, object] | None = None, **says: object) -> Verdict:
    return Server(pages or {}, GOOD | says).run(depth)


def finding(verdict: Verdict, layer: Layer) -> Finding:
    return next(found for found in verdict.evidence if found.layer is layer)


# ---------------------------------------------------------------- the whole way


def test_a_server_whose_calls_come_as_calls_is_native_in_every_layer_cap3() -> None:
    server = Server({"models": {"data": [{"id": "m", "owned_by": "llamacpp"}]}, "/props": PROPS})
    verdict = server.run()
    assert server.asked == [
        *("models", "/props", "plain", "offered", "forced", "asked", "many", "twice", "streamed", "continued")
    ]
    assert (verdict.tools, verdict.parallel, verdict.streamed, verdict.continues) == (Support.NATIVE, True, True, True)
    assert verdict.confidence >= 0.9
    assert (verdict.server, verdict.context_tokens, verdict.depth) == ("llamacpp", 4096, Depth.FULL)
    assert verdict.constraint is ConstraintForm.LLAMACPP
    assert [found.layer for found in verdict.evidence] == [
        *(Layer.METADATA, Layer.TOKENS, Layer.FORCED, Layer.CALL, Layer.MANY),
        *(Layer.PARALLEL, Layer.STREAMED, Layer.CONTINUED),
    ]
    assert all(found.reason for found in verdict.evidence)


def test_a_verdict_survives_json_cap4() -> None:
    verdict = probed(pages={"models": {"data": [{"id": "m", "owned_by": "llamacpp"}]}, "/props": PROPS})
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict


@pytest.mark.parametrize(
    ("depth", "asked"),
    [(Depth.LOOK, []), (Depth.TOKENS, ["plain", "offered"])],
)
def test_a_shallow_probe_asks_no_more_than_it_may_cap3(depth: Depth, asked: list[str]) -> None:
    server = Server({"models": {"data": [{"id": "m", "owned_by": "llamacpp"}]}, "/props": PROPS})
    verdict = server.run(depth)
    assert server.asked == ["models", "/props", *asked]
    assert (verdict.tools, verdict.depth) == (Support.NATIVE, depth)
    assert verdict.confidence == 0.5


# ---------------------------------------------------------------- 1: what the server says


def test_a_template_without_tools_is_not_believed_before_it_is_counted_cap3() -> None:
    bare = PROPS | {"chat_template": "{{ messages }}", "chat_template_caps": {"supports_tools": False}}
    server = Server({"models": {"data": [{"id": "m", "owned_by": "llamacpp"}]}, "/props": bare})
    looked = server.run(Depth.LOOK)
    assert looked.tools is Support.NONE
    assert looked.confidence < 0.9
    assert server.run().tools is Support.NATIVE  # the prompt grew, and a call came


def test_an_older_llamacpp_is_judged_by_its_template_cap3() -> None:
    pages = {"/props": {"default_generation_settings": {"n_ctx": 1}, "chat_template": "{{ messages }}"}}
    assert probed(Depth.LOOK, pages).tools is Support.NONE
    pages["/props"]["chat_template"] = "{% if tools %}"
    assert probed(Depth.LOOK, pages).tools is Support.NATIVE


def test_ollama_without_the_capability_is_asked_nothing_more_cap3() -> None:
    server = Server({"/api/show": SHOW | {"capabilities": ["completion"]}, "/api/version": {"version": "0.20.0"}})
    verdict = server.run()
    assert server.asked == ["models", "/props", "/api/show", "/api/version"]
    assert (verdict.tools, verdict.server, verdict.context_tokens) == (Support.NONE, "ollama", 8192)
    assert "no `tools`" in verdict.why


def test_openrouter_tells_what_each_model_supports_cap3() -> None:
    entries = [
        {"id": "a", "supported_parameters": ["tools", "structured_outputs"], "context_length": 100},
        {"id": "b", "supported_parameters": ["temperature"]},
    ]
    server = Server({"models": {"data": entries}})
    with_tools, without = server.run(Depth.LOOK, "a"), server.run(Depth.LOOK, "b")
    assert server.asked == ["models", "models"]
    assert (with_tools.tools, without.tools) == (Support.NATIVE, Support.NONE)
    assert (with_tools.context_tokens, with_tools.constraint) == (100, ConstraintForm.JSON_SCHEMA)
    assert without.constraint is ConstraintForm.NONE


def test_lm_studio_and_vllm_are_known_by_their_pages_cap3() -> None:
    studio = {"data": [{"id": "m", "capabilities": ["tool_use"], "max_context_length": 7}]}
    verdict = probed(Depth.LOOK, {"/api/v0/models": studio})
    assert (verdict.server, verdict.tools, verdict.context_tokens) == ("lmstudio", Support.NATIVE, 7)
    listed = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 9}]}
    verdict = probed(Depth.LOOK, {"models": listed, "/version": {"version": "0.12.0"}})
    assert (verdict.server, verdict.tools, verdict.context_tokens) == ("vllm", Support.UNKNOWN, 9)
    assert verdict.constraint is ConstraintForm.VLLM


def test_the_fingerprint_changes_with_build_template_and_model_and_with_nothing_else_cap4() -> None:
    def mark(model: str = "m", **more: object) -> str:
        pages = {
            "models": {"data": [{"id": "m", "owned_by": "llamacpp", "created": next(times)}]},
            "/props": PROPS | more,
        }
        return Server(pages).run(Depth.LOOK, model).fingerprint

    times = count()
    changes: tuple[dict[str, str], ...] = (
        {},
        {"build_info": "b2"},
        {"chat_template": "tools!"},
        {"model_path": "/other.gguf"},
    )
    marks = [mark(**more) for more in changes]
    assert len({*marks}) == 4
    assert mark() == marks[0]
    assert mark(media_marker="changes at every start") == marks[0]


@pytest.mark.parametrize("page", [b"<html>", b"[]", b"null", b'{"data": 5}', b'{"data": [5, {"id": 7}]}'])
def test_pages_that_make_no_sense_say_nothing_cap3(page: bytes) -> None:
    assert run(probe("m", Depth.LOOK), lambda _: page).tools is Support.UNKNOWN


# ---------------------------------------------------------------- 2: tokens


def test_as_many_tokens_with_tools_as_without_are_tools_dropped_in_silence_cap3() -> None:
    server = Server(says=GOOD | {"offered": words(tokens=30)})
    verdict = server.run()
    assert server.asked[-2:] == ["plain", "offered"]
    assert verdict.tools is Support.NONE
    assert verdict.confidence >= 0.9
    assert "dropped in silence" in verdict.why


def test_a_refusal_says_none_in_the_servers_own_words_cap3() -> None:
    verdict = probed(offered=failed(FailureKind.TOOLS_UNSUPPORTED, "m does not support tools"))
    assert verdict.tools is Support.NONE
    assert "«m does not support tools»" in verdict.why


def test_who_does_not_count_tokens_is_asked_for_calls_cap3() -> None:
    verdict = probed(plain=words(tokens=0), offered=words(tokens=0))
    assert verdict.tools is Support.NATIVE
    assert "does not count" in finding(verdict, Layer.TOKENS).reason


def test_a_server_that_wants_no_temperature_is_asked_without_cap3() -> None:
    refused = failed(FailureKind.INVALID_REQUEST, "temperature: only 1 is supported")
    sent: list[Request] = []

    def answers(effect: Look | AskOnce) -> ProbeAnswer:
        if isinstance(effect, Look):
            return MISSING
        sent.append(effect.request)
        return [Failed(refused)] if effect.request.sampling.temperature is not None else words(tokens=len(sent))

    verdict = run(probe("o9", Depth.TOKENS), answers)
    assert [request.sampling.temperature for request in sent] == [0.0, None, None]
    assert sent[-1].sampling.max_tokens == 16
    assert "longer" in finding(verdict, Layer.TOKENS).reason


# ---------------------------------------------------------------- 3 and 4: calls


def test_a_call_that_comes_as_text_leaks_cap3() -> None:
    verdict = probed(forced=words("\n\n\n"), asked=words(LEAK), twice=words(LEAK), streamed=words(LEAK))
    assert (verdict.tools, verdict.parallel, verdict.continues) == (Support.LEAKS, False, True)
    assert verdict.why == "the call comes as text"
    assert "though it was demanded" in finding(verdict, Layer.FORCED).reason


def test_native_with_one_tool_and_leaking_with_eleven_is_leaking_cap3() -> None:
    verdict = probed(many=words(LEAK))
    assert verdict.tools is Support.LEAKS
    assert verdict.why == "native with 1 tool, but with 11 tools the call comes as text"


def test_leaking_only_in_a_stream_is_leaking_cap3() -> None:
    verdict = probed(streamed=words(LEAK))
    assert verdict.tools is Support.LEAKS
    assert "in a stream" in verdict.why


def test_a_call_that_the_server_could_not_read_is_a_leak_cap3() -> None:
    broken = failed(FailureKind.NATIVE_PARSER_FAILED, "Failed to call a function", salvage=LEAK)
    verdict = probed(asked=broken)
    assert verdict.tools is Support.LEAKS
    assert "quotes it in an error" in verdict.why


def test_a_demanded_call_that_cannot_be_read_does_not_spoil_a_native_verdict_cap3() -> None:
    verdict = probed(forced=failed(FailureKind.NATIVE_PARSER_FAILED, "tool_use_failed", salvage="roll"))
    assert verdict.tools is Support.NATIVE
    assert "«tool_use_failed»" in finding(verdict, Layer.FORCED).reason


def test_a_model_that_calls_only_if_it_must_is_native_with_less_confidence_cap3() -> None:
    verdict = probed(asked=words("I cannot roll dice."))
    assert (verdict.tools, verdict.confidence) == (Support.NATIVE, 0.6)


def test_a_model_that_does_not_call_is_unknown_whatever_its_server_says_cap3() -> None:
    pages = {"models": {"data": [{"id": "m", "owned_by": "llamacpp"}]}, "/props": PROPS}
    server = Server(pages, GOOD | {"forced": words("\n"), "asked": words("Nice!")})
    verdict = server.run()
    assert (verdict.tools, verdict.confidence, verdict.stopped) == (Support.UNKNOWN, 0.0, False)
    assert server.asked[-1] == "asked"


def test_a_call_of_a_tool_that_nobody_offered_is_none_cap3() -> None:
    other = [*called("launch", "{}"), Finished(StopReason.CALLS, Usage(90, 9))]
    assert probed(forced=other, asked=other).tools is Support.UNKNOWN


# ---------------------------------------------------------------- 5 to 7


def test_one_call_instead_of_two_is_not_parallel_cap3() -> None:
    assert probed(twice=native()).parallel is False
    assert probed(twice=words("Twice?")).parallel is None


def test_tools_that_are_refused_in_a_stream_are_told_cap3() -> None:
    verdict = probed(streamed=failed(FailureKind.STREAMING_TOOLS_UNSUPPORTED, "no streaming with tools"))
    assert (verdict.tools, verdict.streamed) == (Support.NATIVE, False)


@pytest.mark.parametrize("said", [words(""), failed(FailureKind.HISTORY_PAIRING, "a result without a call")])
def test_a_history_that_is_not_answered_is_told_cap3(said: object) -> None:
    verdict = probed(continued=said)
    assert (verdict.tools, verdict.continues) == (Support.NATIVE, False)


# ---------------------------------------------------------------- what is not about tools


@pytest.mark.parametrize(
    "kind",
    [
        *(FailureKind.TRANSIENT, FailureKind.TIMEOUT, FailureKind.RATE_LIMITED, FailureKind.AUTH),
        *(FailureKind.DISCONNECTED, FailureKind.NOT_FOUND, FailureKind.OTHER),
    ],
)
@pytest.mark.parametrize("at", ["plain", "offered", "forced", "asked"])
def test_what_fails_without_being_about_tools_stays_unknown_cap4(kind: FailureKind, at: str) -> None:
    pages = {"models": {"data": [{"id": "m", "owned_by": "llamacpp"}]}, "/props": PROPS}
    server = Server(pages, GOOD | {at: failed(kind, "not now", 503)})
    verdict = server.run()
    assert server.asked[-1] == at, "it goes on asking"
    assert (verdict.tools, verdict.confidence, verdict.stopped) == (Support.UNKNOWN, 0.0, True)
    assert "not now" in verdict.evidence[-1].reason
    assert verdict.context_tokens == 4096  # what was found before stays found


def test_what_was_sure_before_the_failure_stays_sure_cap4() -> None:
    verdict = probed(twice=failed(FailureKind.RATE_LIMITED, "slow down", 429))
    assert (verdict.tools, verdict.stopped, verdict.parallel) == (Support.NATIVE, True, None)


@pytest.mark.parametrize("kind", [FailureKind.DISCONNECTED, FailureKind.AUTH, FailureKind.TRANSIENT])
def test_a_server_that_is_away_is_asked_once_cap4(kind: FailureKind) -> None:
    server = Server({"models": failed(kind, "away", 503)})
    verdict = server.run()
    assert server.asked == ["models"]
    assert (verdict.tools, verdict.stopped) == (Support.UNKNOWN, True)


# ---------------------------------------------------------------- what is done with it


def test_measured_facts_beat_tables_and_never_the_user_cap3() -> None:
    none = Verdict(Support.NONE, 0.95, context_tokens=100)
    assert measured(UNKNOWN_MODEL, none) == ModelFacts(Support.NONE, context_tokens=100, source=Source.MEASURED)
    assert measured(ModelFacts(Support.NATIVE, source=Source.TABLE), none).tools is Support.NONE
    said = ModelFacts(tools=Support.NATIVE, context_tokens=5)
    assert measured(said, none) == said
    assert measured(UNKNOWN_MODEL, Verdict(Support.NONE, 0.3)) == UNKNOWN_MODEL
    assert measured(UNKNOWN_MODEL, Verdict()) is UNKNOWN_MODEL


def test_a_probe_has_one_tool_and_eleven() -> None:
    assert (len(FEW), len(MANY)) == (1, 11)
    assert FEW[0] in MANY


def test_a_server_that_names_itself_is_told_constraints_in_its_form_unless_somebody_says_one_chk8() -> None:
    found = Verdict(server="llamacpp", constraint=ConstraintForm.LLAMACPP)
    kimi = ModelFacts(quirks=Quirks(IdForm.KIMI))
    assert measured(kimi, found).quirks == Quirks(IdForm.KIMI, constraint=ConstraintForm.LLAMACPP)
    for said in (
        ModelFacts(quirks=Quirks(constraint=ConstraintForm.JSON_SCHEMA)),
        ModelFacts(said=frozenset({"quirks.constraint"})),
    ):
        assert measured(said, found) is said
