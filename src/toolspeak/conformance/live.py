"""Asks a real model a few questions, streamed and whole, and judges only the form of the answers.

What a model answers is its own affair; whether a client can read it is the server's.
"""

from collections.abc import Callable, Iterator
from typing import Final

from toolspeak.conformance.cases import STREAM, WHOLE, CaseVerdict, ConformanceCase
from toolspeak.conformance.trial import ChatClient, NotReached, TrialResult
from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject, as_list, as_object, as_string
from toolspeak.runtime.transport import TransportError
from toolspeak.text.strict import parse

_OK: Final = 200
_MOST_TOKENS: Final = 1024
_WEATHER: Final[JsonObject] = {
    "name": "get_weather",
    "description": "Get the weather of a city now.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_TIME: Final[JsonObject] = {
    "name": "get_time",
    "description": "Get the local time of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_CALL: Final[JsonObject] = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
}


def _asked(text: str, *more: JsonObject) -> list[Json]:
    return [{"role": "user", "content": text}, *more]


_QUESTIONS: Final[dict[str, tuple[list[Json], tuple[JsonObject, ...], Json]]] = {
    "text": (_asked("Say hello in one short sentence."), (), None),
    "one call": (_asked("What is the weather in Oslo? Use the tool."), (_WEATHER,), None),
    "two calls": (_asked("What are the weather and the time in Oslo? Use both tools."), (_WEATHER, _TIME), None),
    "required call": (_asked("What is the weather in Bergen?"), (_WEATHER,), "required"),
    "after a result": (
        _asked(
            "What is the weather in Oslo?",
            {"role": "assistant", "content": None, "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 21 degrees."},
        ),
        (_WEATHER,),
        None,
    ),
}


def live_cases() -> tuple[ConformanceCase, ...]:
    """Return the questions; none has an expected answer."""
    return tuple(
        ConformanceCase(f"live-{kind.replace(' ', '-')}", kind, "", functions, "", ([],), tool_choice=choice)
        for kind, (_, functions, choice) in _QUESTIONS.items()
    )


async def ask_live(client: ChatClient, progress: Callable[[int, int], None]) -> list[TrialResult]:
    """Ask every question, streamed and whole. Raises `NotReached` if the server does not answer."""
    asked = [(case, way) for case in live_cases() for way in (STREAM, WHOLE)]
    results: list[TrialResult] = []
    for case, way in asked:
        try:
            answer = await client.ask(_request(case, client.target.model), way)
        except TransportError as error:
            raise NotReached(
                f"no server answers at {client.target.url}: {error}. Is it running, and is the URL right?"
            ) from None
        verdict = CaseVerdict.REFUSED if answer.error else CaseVerdict.RIGHT
        results.append(TrialResult(case, way, verdict, answer))
        progress(len(results), len(asked))
    return results


async def first_model(client: ChatClient) -> str:
    """Return the first model that the server lists. Raises `NotReached` if there is none."""
    try:
        status, _, data = await client.exchange("GET", "/models")
        listed = list(_listed(data)) if status == _OK else []
    except TransportError as error:
        raise NotReached(
            f"no server answers at {client.target.url}: {error}. Is it running, and is the URL right?"
        ) from None
    if not listed:
        raise NotReached(f"{client.target.url}/models lists no model (status {status}). Pass --model NAME, or a --key.")
    return listed[0]


def _listed(data: bytes) -> Iterator[str]:
    try:
        body = as_object(parse(data.decode()))
    except (BadJson, UnicodeDecodeError):
        return
    for row in as_list(body.get("data")):
        if name := as_string(as_object(row).get("id")):
            yield name


def _request(case: ConformanceCase, model: str) -> JsonObject:
    messages = _QUESTIONS[case.kind][0]
    body: JsonObject = {"model": model, "messages": messages, "temperature": 0, "max_tokens": _MOST_TOKENS}
    if case.functions:
        body["tools"] = [{"type": "function", "function": function} for function in case.functions]
    if case.tool_choice is not None:
        body["tool_choice"] = case.tool_choice
    return body
