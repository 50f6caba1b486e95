"""The fixtures of canitoolcall for the peers: the parsers that it names for a model, the request, and its verdict.

canitoolcall lists the parsers of vLLM and SGLang for each model, from model cards and from the code of the servers, and
its checks judge what they return. `bench.conformance` judges our readers by the same checks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from canitoolcall.adapters import sglang, vllm
from canitoolcall.checks import case_status, run_checks
from canitoolcall.fixtures import Family, Fixture, load_families, load_fixtures
from canitoolcall.results import CheckResult, Observation, ParsedToolCall, ParseResult, Status

from bench.conformance import LIMITS, OPENERS, has_right_calls, offered_tools, parsed, prompt_end
from bench.peers.parsers import SPECIAL, Question, deltas, row_of
from testkit.field import Verdict

RIGHT_STATUS: Final = (Status.PASS, Status.SOFT_PASS)
AI_SDK: Final = {"qwen3-hermes": "hermes", "qwen3-xml": "qwen3Coder"}
"""@ai-sdk-tool/parser has formats for these families of the suite."""
NOT_IN_VOCABULARY: Final = (
    (r"Mistral-7B-Instruct-v0\.3", ("[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]")),
    (r"Magistral-Small-2506|Mistral-Small-3\.2|Devstral-Small-2507", ("[THINK]", "[/THINK]")),
)
"""Special tokens of younger tokenizers of Mistral: vLLM recognizes the format of the calls by the vocabulary."""


@dataclass(frozen=True)
class SuiteCase:
    """One fixture with the metadata of its family."""

    fixture: Fixture
    family: Family

    @cached_property
    def question(self) -> Question:
        """What a server knows when it reads the output."""
        fixture, prompt = self.fixture, prompt_end(self.fixture, self.family)
        absent = [names for pattern, names in NOT_IN_VOCABULARY if re.search(pattern, fixture.reference_model)]
        is_ended = fixture.family == "gpt-oss" and not fixture.truncated
        return Question(
            fixture.raw_output,
            offered_tools(fixture),
            fixture.id,
            prompt,
            fixture.thinking,
            opened=prompt.rstrip().endswith(OPENERS),
            follows_request=True,
            stop=sglang.harmony_stop_token(fixture.raw_output) if is_ended else "",
            ids=(fixture.output_token_ids or ()) if fixture.family == "gpt-oss" else (),
            special=tuple(token for token in SPECIAL if not any(token in names for names in absent)),
        )

    def parsers(self, peer: str) -> tuple[str, str]:
        """Return the parsers of calls and of reasoning of a peer, empty if there is none."""
        family, model = self.fixture.family, self.fixture.reference_model
        if peer == "vllm":
            chosen = vllm.resolve_parsers(family, model)
            choice = chosen.choice if chosen else None
            return (choice.tool_parser, choice.reasoning_parser or "") if choice else ("", "")
        if peer == "sglang":
            rule = sglang.resolve_parsers(family, model)
            if rule and rule.tool_call_parser:
                return rule.tool_call_parser, rule.reasoning_parser or ""
            row = row_of(model, "")  # the suite knows an older SGLang, which had no parser for DeepSeek V4.1
            return row.sglang if row else ("", "")
        return AI_SDK.get(family, ""), "think"

    def ours(self, most: int) -> ParseResult:
        """Read the output as the gateway does, in deltas of at most so many tokens; 0 is whole."""
        text = self.fixture.raw_output
        pieces = ["".join(delta) for delta in deltas(text, self.fixture.id, most)] if most else [text]
        return parsed(self.fixture, self.family, pieces)

    def failures(self, result: ParseResult) -> list[CheckResult]:
        """Return the checks of canitoolcall that one reading fails."""
        rows = run_checks(self.fixture, self.family, Observation(result, {}))
        return [row for row in rows if row.status not in RIGHT_STATUS] if case_status(rows) not in RIGHT_STATUS else []

    def judge(self, result: ParseResult) -> Verdict:
        """Return the verdict of canitoolcall's checks in the words of the field cases."""
        if not self.failures(result):
            return Verdict.RIGHT
        if has_right_calls(self.fixture, result):
            return Verdict.SHOWN
        if not result.tool_calls:
            return Verdict.MISSED
        expected = self.fixture.expected
        return Verdict.WRONG if expected and expected.tool_calls else Verdict.FALSE

    def reason(self, result: ParseResult) -> str:
        """Return why a reading of ours is not right, or nothing."""
        failures = self.failures(result)
        said = next((f"{row.check}: {row.detail}" for row in failures), "")
        return LIMITS.get(self.fixture.id, said) if failures else ""


def suite_cases() -> list[SuiteCase]:
    """Return all fixtures."""
    families = load_families()
    return [SuiteCase(fixture, families[fixture.family]) for fixture in load_fixtures()]


def as_result(answer: Mapping[str, Any]) -> ParseResult:
    """Return the answer of a peer as canitoolcall's checks want it; an error beside text or calls is a warning."""
    error = None if answer["text"] or answer["calls"] else answer.get("error")
    calls = tuple(ParsedToolCall(call["name"], call["arguments"]) for call in answer["calls"])
    return ParseResult(answer["text"] or None, answer.get("reasoning") or None, calls, error)
