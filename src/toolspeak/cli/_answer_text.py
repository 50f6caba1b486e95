"""How an answer was got: a dim line for people, an object for programs.

native checked · 1 request · 21 tokens in, 13 out · 0.8 s
"""

from collections.abc import Iterator
from typing import Final

from toolspeak.cli.terminal import Paint, counted, sign
from toolspeak.client import Answer
from toolspeak.engine.outcome import EMULATED
from toolspeak.engine.plan import Way
from toolspeak.errors import BadJson
from toolspeak.ir.event import StopReason, Usage
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.text.strict import parse

_CUTS: Final = {
    StopReason.LENGTH: "cut off: the model has no tokens left for more",
    StopReason.FILTER: "cut off by a filter of the upstream",
}


def last_lines(answer: Answer, seconds: float, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Say what was done, and what is wrong with the answer."""
    stop = answer.turn.stop
    if stop is not None and stop in _CUTS:
        yield paint.ink(_CUTS[stop], "yellow")
    plan, _, why = answer.plan.line.partition(": ")
    emulated = EMULATED in answer.warnings and answer.plan.way is not Way.FORCE
    said = [f"{plan}, then emulated" if emulated else plan, counted(answer.requests, "request")]
    if answer.complaints:
        said.append(counted(len(answer.complaints), "complaint"))
    said += [*_tokens(answer.usage), f"{seconds:.1f} s"]
    for line in (f" {sign('·', '|')} ".join(said), *([why] if expand else [])):
        yield paint.ink(line, dim=True) if paint.on else f"[{line}]"


def _tokens(usage: Usage) -> Iterator[str]:
    """Count them, where the upstream does."""
    if usage.input_tokens or usage.output_tokens:
        yield f"{counted(usage.input_tokens, 'token')} in, {usage.output_tokens} out"


def answer_object(answer: Answer, seconds: float) -> JsonObject:
    """Say it for programs."""
    turn, usage = answer.turn, answer.usage
    return {
        "text": turn.text,
        "reasoning": turn.reasoning,
        "calls": [_call(call) for call in answer.calls],
        "complaints": [
            {"problem": str(one.problem), "name": one.name, "detail": one.detail} for one in answer.complaints
        ],
        "stop": str(turn.stop) if turn.stop else None,
        "plan": answer.plan.line,
        "warnings": [*answer.warnings],
        "requests": answer.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "seconds": round(seconds, 3),
    }


def _call(call: Call) -> JsonObject:
    return {
        "id": call.id,
        "name": call.name,
        "arguments": _value(call.arguments),
        "fixes": _fixes(call.fixes),
        "raw": call.raw,
    }


def _value(json: str) -> Json:
    """Read arguments; what a model of an untouched upstream wrote wrong stays text."""
    try:
        return parse(json)
    except BadJson:
        return json


def _fixes(fixes: tuple[Fix, ...]) -> list[Json]:
    return [{"what": fix.what, "path": fix.path} for fix in fixes]
