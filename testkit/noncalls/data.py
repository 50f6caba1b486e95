"""Family 5: JSON that is an answer, a file or a definition, and no call."""

import json
from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from testkit.noncalls.draft import Draft, shown
from testkit.noncalls.tools import NAMES, STRANGERS, TOOLS, arguments
from testkit.noncalls.words import PEOPLE, WORDS, intro, outro, sentence, stamp
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool

Make: TypeAlias = Callable[[Random], Json]
READERS: Final = ("llama_json", "inline_json", "decision_json", "steps_json", "langchain")


def package(dice: Random) -> Json:
    """Make a package.json, named like a tool."""
    scripts: JsonObject = {"test": "jest", "shell": "node", "search": "node search.js"}
    return {"name": dice.choice(NAMES), "version": f"1.{dice.randint(0, 9)}.0", "private": True, "scripts": scripts}


def openapi(dice: Random) -> Json:
    """Make an OpenAPI description."""
    name = dice.choice(NAMES)
    parameter: JsonObject = {"name": "city", "in": "query", "schema": {"type": "string"}}
    get: JsonObject = {"operationId": name, "parameters": [parameter], "responses": {"200": {"description": "ok"}}}
    return {"openapi": "3.1.0", "info": {"title": name, "version": "1"}, "paths": {f"/{name}": {"get": get}}}


def definition(dice: Random) -> Json:
    """Define one tool, in the form of one of the vendors."""
    return _defined(dice, dice.choice(TOOLS))


def definitions(dice: Random) -> Json:
    """Define several tools."""
    key = dice.choice(("tools", "functions", "tools", ""))
    listed: list[Json] = [_defined(dice, tool) for tool in dice.sample(TOOLS, dice.randint(1, 3))]
    return {key: listed} if key else listed


def _defined(dice: Random, tool: Tool) -> JsonObject:
    about: JsonObject = {"name": tool.name, "description": tool.description}
    match dice.randint(0, 6):
        case 0:
            return {"name": tool.name, "parameters": tool.parameters}
        case 1:
            return {**about, "parameters": tool.parameters}
        case 2:
            return {"type": "function", "function": {**about, "parameters": tool.parameters}}
        case 3:
            return {**about, "input_schema": tool.parameters}
        case 4:
            return {**about, "inputSchema": tool.parameters}
        case 5:
            return {"type": "function", **about, "parameters": tool.parameters, "strict": True}
        case _:
            return {tool.name: {"description": tool.description, "parameters": tool.parameters}}


def users(dice: Random) -> Json:
    """List people."""
    return [{"name": name, "id": dice.randint(1, 99), "input": None} for name in dice.sample(PEOPLE, 3)]


def settings(dice: Random) -> Json:
    """Configure things that are named like tools."""
    one, other = dice.sample(NAMES, 2)
    level: JsonObject = {"enabled": dice.random() < 0.5, "level": dice.randint(1, 3)}
    choices: list[Json] = [
        {one: level},
        {one: level, other: level},
        [{"name": one, **level}, {"name": other, **level}],
        {"name": one, "description": "runs it", "command": "ls", "owner": other},
        {"tool": one, "calls": dice.randint(0, 99), "errors": 0},
        {"name": one, "status": "passed", "duration": 0.3},
        {"name": one, "args": ["--all", "x"], "cwd": "/"},
        {"command": {"name": one, "args": ["query"], "help": "Find it."}},
        {"version": "2.0.0", "tasks": [{"type": "shell", "command": "make", "label": other}]},
    ]
    return dice.choice(choices)


def other_action(dice: Random) -> Json:
    """Use the words of calls for something else."""
    word = dice.choice(WORDS)
    choices: list[Json] = [
        {"action": "deploy", "input": {"target": word}},
        {"tool": "hammer", "args": {"size": dice.randint(1, 9)}},
        {"function": f"f(x) = {dice.randint(2, 9)}x", "parameters": {"x": 1}},
        {"name": word, "arguments": ["for", "against"]},
        {"name": dice.choice(STRANGERS), "arguments": {"id": 1}},
        {"tools": [{"name": word, "price": 12}, {"name": "saw", "price": 9}]},
        {"tools": ["hammer", word]},
        {"id": dice.randint(1, 9), "type": "Feature", "name": word},
        {"recipient": dice.choice(PEOPLE), "input": word},
        {"command": "start", "params": {"speed": 3}},
        {"thought": "It is late.", "answer": word},
    ]
    return dice.choice(choices)


def geo(dice: Random) -> Json:
    """Make GeoJSON."""
    point: JsonObject = {"type": "Point", "coordinates": [dice.randint(-90, 90), dice.randint(-90, 90)]}
    feature: JsonObject = {"type": "Feature", "properties": {"name": dice.choice(NAMES)}, "geometry": point}
    return {"type": "FeatureCollection", "features": [feature]}


def trace(dice: Random) -> Json:
    """Record a call that was made, with its result."""
    name = dice.choice(NAMES)
    args: JsonObject = dict(arguments(dice, name))
    result: JsonObject = {dice.choice(("result", "output", "response", "content")): {"temp": dice.randint(-9, 30)}}
    name_key, args_key = dice.choice((("name", "arguments"), ("tool", "input"), ("tool", "args"), ("name", "input")))
    record: JsonObject = {name_key: name, args_key: args, **result}
    return record if dice.random() < 0.6 else [record, {**record, "duration_ms": dice.randint(1, 99)}]


def conversation(dice: Random) -> Json:
    """Record a conversation as an API would."""
    name = dice.choice(NAMES)
    function: JsonObject = {"name": name, "arguments": json.dumps(arguments(dice, name))}
    call: JsonObject = {"id": "call_1", "type": "function", "function": function}
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": [call]}
    asked: JsonObject = {"role": "user", "content": sentence(dice, name)}
    result: JsonObject = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
    whole: JsonObject = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    request: JsonObject = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    choices: list[Json] = [[asked, message, result], whole, {"messages": [asked, message, result]}, request]
    return dice.choice(choices)


MAKERS: Final[tuple[Make, ...]] = (
    *(package, openapi, definition, definition, definitions, definitions, users, settings, settings, other_action),
    *(other_action, geo, trace, conversation),
)


def data(dice: Random) -> Draft:
    """Make an answer in JSON."""
    if dice.random() < 0.1:
        return _strings(dice)
    make = dice.choice(MAKERS)
    text = json.dumps(make(dice), indent=dice.choice((None, None, 2, 4)), ensure_ascii=dice.random() < 0.5)
    return Draft(f"json/{make.__name__}", _placed(dice, text), READERS)


def _placed(dice: Random, text: str) -> str:
    """Put it somewhere: alone, in a fence, or with prose."""
    name = dice.choice(NAMES)
    match dice.randint(0, 6):
        case 0 | 1:
            return text
        case 6:
            return f"<tools>\n{text}\n</tools>{dice.choice(('', chr(10) + outro(dice, name)))}"
        case 2:
            return f"```json\n{text}\n```"
        case 3:
            return f"{intro(dice, name)}\n\n```json\n{text}\n```\n\n{outro(dice, name)}"
        case 4:
            return f"{intro(dice, name)}\n\n{text}"
        case _:
            return f"{text}\n\n{outro(dice, name)}"


def _strings(dice: Random) -> Draft:
    """Make JSON whose strings hold a whole call."""
    call = shown(dice)
    rows: list[Json] = [
        {"role": "user", "content": sentence(dice, call.name)},
        {"role": "assistant", "content": call.text, "at": stamp(dice)},
    ]
    choices: list[Json] = [rows, {"messages": rows}, rows[1]]
    text = json.dumps(dice.choice(choices), ensure_ascii=dice.random() < 0.5, indent=dice.choice((None, 2)))
    return Draft("json/strings", text, (*READERS, *call.dialects))
