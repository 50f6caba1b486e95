"""Three plain ways to emulate calls, as others describe them, each with its own plain parser and nothing more.

Decision    a first request that answers with JSON which tools to call; without one, a second that answers in words
Action      a fenced block `json action` inside the answer; an example; one more try after "I have no tools"
Inline      a line `{"tool": …, "args": …}`, found by scanning; a tool `final_output` for the end
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bench.accuracy.score import Delivered
from bench.accuracy.speak import Said, Where, said_turn
from toolspeak.ir.message import Call, Message, Result, Role, Text, part_text
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Fold

READER = json.JSONDecoder()

# ---------------------------------------------------------------- decision

DECISION = """You choose tools for an assistant. Reply with one JSON object and nothing else: no prose, no Markdown.

The object has this form:
{{"tools": [{{"name": "TOOL_NAME", "arguments": {{"PARAMETER": "VALUE"}}}}]}}

If no tool is needed, reply with {{"tools": []}}.
Use only these tools, and give arguments that fit their JSON schemas:
{tools}"""


@dataclass(frozen=True, slots=True)
class Decision:
    """Two requests: what to call, and if that is nothing, the answer."""

    where: Where

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        prompt = _system(DECISION.format(tools=_schemas(tools)))
        decided = await asked(self.where, [prompt, *_for_decision(messages)])
        if decided.failure:
            return decided
        calls = tuple(_decided(decided.text))
        return Said("", calls) if calls else await asked(self.where, messages)


def _for_decision(messages: Sequence[Message]) -> Iterator[Message]:
    """Leave out system texts, results, and all but the last answer, which loses its calls."""
    last = max((index for index, one in enumerate(messages) if one.role is Role.ASSISTANT), default=-1)
    for index, message in enumerate(messages):
        if message.role is Role.USER:
            yield message
        elif index == last and (text := _text(message)):
            yield _assistant(text)


def _decided(text: str) -> Iterator[Delivered]:
    """Read the first object that has tools, wherever it stands."""
    for value in objects(text):
        if isinstance(value.get("tools"), list):
            for entry in value["tools"]:
                yield from _delivered(entry, "name", "arguments")
            return


# ---------------------------------------------------------------- json action

ACTION = """You can act through tools. To use one, write a fenced block with the info string `json action`:

```json action
{{"tool": "NAME", "parameters": {{"key": "value"}}}}
```

Write one block for each call, then stop and wait for the results. When no tool is needed, answer normally.

Available tools, each with the JSON schema of its parameters:
{tools}

Example. The user asks: what is the weather in Oslo? With a tool named lookup_weather you would write:
```json action
{{"tool": "lookup_weather", "parameters": {{"city": "Oslo"}}}}
```
The result comes in the next message; then you act again or answer."""
NEXT = "\n\nGo on with the task: write the next `json action` block, or answer if you have all you need."
AGAIN = """Your last reply had no `json action` block. The tools are available.
Reply now with at least one valid `json action` block. Do not explain."""
FENCE = re.compile(r"```json action[^\n]*\n(.*?)```", re.DOTALL)
REFUSES = re.compile(
    r"\b(?:don't|do not|cannot|can't|unable to) (?:have|access|use)\b[^.]{0,40}\b(?:tools?|functions?|access)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Action:
    """Fenced blocks inside the answer."""

    where: Where

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        prompt = _system(ACTION.format(tools=_schemas(tools)))
        sent = [prompt, *as_text(messages, _action, NEXT)]
        answer = await asked(self.where, sent)
        if answer.failure or _acted(answer.text) or not REFUSES.search(answer.text):
            return _with_actions(answer)
        return _with_actions(await asked(self.where, [*sent, _assistant(answer.text), _user(AGAIN)]))


def _action(call: Call) -> str:
    return f'```json action\n{{"tool": {json.dumps(call.name)}, "parameters": {call.arguments}}}\n```'


def _with_actions(answer: Said) -> Said:
    return Said(FENCE.sub("", answer.text).strip(), _acted(answer.text), answer.failure)


def _acted(text: str) -> tuple[Delivered, ...]:
    found = (value for block in FENCE.findall(text) for value in objects(block))
    return tuple(call for value in found for call in _delivered(value, "tool", "parameters"))


# ---------------------------------------------------------------- inline

INLINE = """You are a general-purpose assistant that solves requests with tools.

# Tool Call Format

When you need a tool, write only the JSON of the call on a new line:

{{"tool": "tool_name", "args": {{"param": "value"}}}}

It runs at once, and you get its result to go on with.

# Available Tools

{tools}

- **final_output**: Say that the task is done, with a summary for the user
  - Format: {{"tool": "final_output", "args": {{"summary": "what_was_accomplished"}}}}

# Instructions

1. Look at the request and break it into smaller steps if needed
2. Call ONE tool at a time
3. STOP when the request is satisfied
4. Call final_output when done"""
BEGIN = re.compile(r'\{\s*"tool"\s*:\s*"')
FINAL = "final_output"


@dataclass(frozen=True, slots=True)
class Inline:
    """JSON on a line of its own."""

    where: Where

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Said:
        prompt = _system(INLINE.format(tools="\n\n".join(map(_listed, tools))))
        answer = await asked(self.where, [prompt, *as_text(messages, _inline, "")])
        if answer.failure:
            return answer
        found = tuple(_inlined(answer.text))
        summaries = [json.loads(call.arguments).get("summary", "") for call in found if call.name == FINAL]
        calls = tuple(call for call in found if call.name != FINAL)
        return Said("\n".join([answer.text, *map(str, summaries)]), calls)


def _listed(tool: Tool) -> str:
    properties: Any = tool.parameters.get("properties") or {}
    args = {name: f"{_kind(schema)}: {schema.get('description', '')}" for name, schema in properties.items()}
    form = json.dumps({"tool": tool.name, "args": args}, ensure_ascii=False)
    return f"- **{tool.name}**: {tool.description}\n  - Format: {form}"


def _kind(schema: dict[str, Any]) -> str:
    return str(schema.get("type", "any"))


def _inline(call: Call) -> str:
    return f'{{"tool": {json.dumps(call.name)}, "args": {call.arguments}}}'


def _inlined(text: str) -> Iterator[Delivered]:
    at = 0
    while begin := BEGIN.search(text, at):
        value, at = _read(text, begin.start())
        yield from _delivered(value, "tool", "args")


# ---------------------------------------------------------------- all three


async def asked(where: Where, messages: Sequence[Message]) -> Said:
    """Ask for words only."""
    folding = Fold()
    async for batch in where.upstream().open(Request(where.model, tuple(messages), sampling=where.sampling)):
        folding.feed(batch)
    return said_turn(folding.turn())


def as_text(messages: Sequence[Message], written: Callable[[Call], str], after: str) -> Iterator[Message]:
    """Write calls and results of the history as text."""
    for message in messages:
        match message.role:
            case Role.ASSISTANT:
                calls = [written(part) for part in message.parts if isinstance(part, Call)]
                yield _assistant("\n".join(filter(None, [_text(message), *calls])))
            case Role.TOOL:
                results = [_result(part) for part in message.parts if isinstance(part, Result)]
                yield _user("\n".join(results) + after)
            case _:
                yield message


def _result(result: Result) -> str:
    return f"Result of {result.name or 'the tool'}:\n{''.join(map(part_text, result.content))}"


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Find the JSON objects in a text, from left to right."""
    at = text.find("{")
    while at >= 0:
        value, end = _read(text, at)
        if isinstance(value, dict):
            yield value
        at = text.find("{", end)


def _read(text: str, at: int) -> tuple[Any, int]:
    try:
        return READER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at + 1


def _delivered(entry: object, name: str, arguments: str) -> Iterator[Delivered]:
    if not isinstance(entry, dict):
        return
    fields = cast("dict[str, object]", entry)
    called, given = fields.get(name), fields.get(arguments, {})
    if isinstance(called, str):
        yield Delivered(called, given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))


def _schemas(tools: Iterable[Tool]) -> str:
    return "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}, ensure_ascii=False
        )
        for tool in tools
    )


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _system(text: str) -> Message:
    return Message(Role.SYSTEM, (Text(text),))


def _user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


def _assistant(text: str) -> Message:
    return Message(Role.ASSISTANT, (Text(text),))
