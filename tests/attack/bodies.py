"""Legal requests that are as expensive as their size allows, on each wire. All end below the default of body_bytes."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from testkit.protocols import question

Body = dict[str, Any]
MIB = 1 << 20
LIMIT = 32 * MIB
"""The default of limits.body_bytes."""
NEARLY = LIMIT - 64 * 1024
TEXT = 28 * MIB


def _message(wire: str, role: str, text: str) -> str:
    """Write one message as JSON text."""
    content = json.dumps(text, ensure_ascii=False)
    if wire == "gemini":
        return f'{{"role":"{"model" if role == "assistant" else role}","parts":[{{"text":{content}}}]}}'
    return f'{{"role":"{role}","content":{content}}}'


def _tool(wire: str, name: str, schema: str) -> str:
    match wire:
        case "anthropic":
            return f'{{"name":"{name}","description":"d","input_schema":{schema}}}'
        case "openai_responses":
            return f'{{"type":"function","name":"{name}","description":"d","parameters":{schema}}}'
        case "gemini":
            return f'{{"name":"{name}","description":"d","parametersJsonSchema":{schema}}}'
        case _:
            return f'{{"type":"function","function":{{"name":"{name}","description":"d","parameters":{schema}}}}}'


def _pair(wire: str, number: int) -> str:
    """Write a call and its result."""
    id = f"call_{number}"
    match wire:
        case "anthropic":
            use = f'{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}'
            result = f'{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}'
            return f'{{"role":"assistant","content":[{use}]}},{{"role":"user","content":[{result}]}}'
        case "openai_responses":
            call = f'{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}'
            return f'{call},{{"type":"function_call_output","call_id":"{id}","output":"r"}}'
        case "gemini":
            call = '{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}'
            response = '{"functionResponse":{"name":"f","response":{"output":"r"}}}'
            return f'{call},{{"role":"user","parts":[{response}]}}'
        case "ollama":
            call = '{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]}'
            return f'{call},{{"role":"tool","tool_name":"f","content":"r"}}'
        case _:
            function = '{"name":"f","arguments":"{}"}'
            call = f'{{"id":"{id}","type":"function","function":{function}}}'
            made = f'{{"role":"assistant","content":null,"tool_calls":[{call}]}}'
            return f'{made},{{"role":"tool","tool_call_id":"{id}","content":"r"}}'


def _parts(wire: str, texts: Iterator[str]) -> str:
    """Write one message of many parts."""
    kind = {"openai_responses": '"type":"input_text",', "gemini": ""}.get(wire, '"type":"text",')
    parts = ",".join(f'{{{kind}"text":"{text}"}}' for text in texts)
    if wire == "ollama":  # this wire has no parts: its list of images is as long
        return f'{{"role":"user","content":"x","images":[{",".join(["" + chr(34) + "aGk=" + chr(34)] * 200_000)}]}}'
    return f'{{"role":"user","{"parts" if wire == "gemini" else "content"}":[{parts}]}}'


def _write(wire: str, messages: str = "", tools: str = "", extra: str = "") -> tuple[str, bytes]:
    """Put messages and tools into a wire's request."""
    asked = question(wire, model="fast", stream=False)
    body: Body = {name: value for name, value in (asked.body or {}).items() if name != "tools"}
    place = {"openai_responses": "input", "gemini": "contents"}.get(wire, "messages")
    body[place] = "@MESSAGES@"
    text = json.dumps(body).replace('"@MESSAGES@"', f"[{messages or _message(wire, 'user', 'Hi')}]", 1)
    if tools:
        listed = f'[{{"functionDeclarations":[{tools}]}}]' if wire == "gemini" else f"[{tools}]"
        text = f'{text[:-1]},"tools":{listed}}}'
    if extra:
        text = f"{text[:-1]},{extra}}}"
    return asked.path, text.encode()


def _until(limit: int, make: Callable[[int], str]) -> str:
    """Join pieces up to a size."""
    size = len(make(0)) + 8
    return ",".join(make(number) for number in range(limit // size))


def schemas(wire: str) -> tuple[str, bytes]:
    """120 tools with a schema of 200 KB each."""
    one = ",".join(f'"p{n}":{{"type":"string","description":"d","enum":["a","b"]}}' for n in range(3_200))
    schema = f'{{"type":"object","properties":{{{one}}}}}'
    return _write(wire, tools=",".join(_tool(wire, f"t{n}", schema) for n in range(120)))


def nested_schemas(wire: str) -> tuple[str, bytes]:
    """Schemas of many references and branches."""
    branches = ",".join('{"$ref":"#/$defs/a"}' for _ in range(4_000))
    schema = f'{{"type":"object","$defs":{{"a":{{"type":"object","properties":{{"x":{{"anyOf":[{branches}]}}}}}}}}}}'
    return _write(wire, tools=",".join(_tool(wire, f"t{n}", schema) for n in range(120)))


def small_tools(wire: str) -> tuple[str, bytes]:
    """As many small tools as fit."""
    return _write(wire, tools=_until(NEARLY, lambda n: _tool(wire, f"t{n}", '{"type":"object"}')))


def messages(wire: str) -> tuple[str, bytes]:
    """Hundreds of thousands of messages."""
    return _write(wire, _until(26 * MIB, lambda n: _message(wire, "assistant" if n % 2 else "user", "")))


def pairs(wire: str) -> tuple[str, bytes]:
    """70,000 calls with their results."""
    schema = '{"type":"object"}'
    made = f"{_message(wire, 'user', 'Hi')},{','.join(_pair(wire, n) for n in range(70_000))}"
    return _write(wire, made, _tool(wire, "f", schema))


def parts(wire: str) -> tuple[str, bytes]:
    """One message of hundreds of thousands of parts."""
    return _write(wire, _parts(wire, (str(n % 10) for n in range(700_000))))


def markers(wire: str) -> tuple[str, bytes]:
    """28 MB of a chat template's token."""
    return _write(wire, _message(wire, "user", "<|im_start|>" * (TEXT // 12)), _tool(wire, "f", '{"type":"object"}'))


def backticks(wire: str) -> tuple[str, bytes]:
    """28 MB of backticks."""
    return _write(wire, _message(wire, "user", "`" * TEXT), _tool(wire, "f", '{"type":"object"}'))


def fences(wire: str) -> tuple[str, bytes]:
    """28 MB of fences, one on each line."""
    text = "```tool_call\n" * (TEXT // 14)
    return _write(wire, _message(wire, "user", text), _tool(wire, "f", '{"type":"object"}'))


def one_string(wire: str) -> tuple[str, bytes]:
    """One string of nearly the whole limit."""
    return _write(wire, _message(wire, "user", "word " * (NEARLY // 5 - 200)))


def escapes(wire: str) -> tuple[str, bytes]:
    """One string in which each character is an escape."""
    path, body = _write(wire, _message(wire, "user", "@"))
    return path, body.replace(b'"@"', b'"' + b"\\u00e9" * (TEXT // 6) + b'"', 1)


def accepted_escapes(wire: str) -> tuple[str, bytes]:
    """As many escapes and characters as are accepted: the most expensive text that is answered."""
    path, body = _write(wire, _message(wire, "user", "@"))
    return path, body.replace(b'"@"', b'"' + b"\\u00e9" * 1_990_000 + b"word " * 1_270_000 + b'"', 1)


def nesting(wire: str) -> tuple[str, bytes]:
    """Nest a schema: one that is nested 100,000 levels deep."""
    depth = 100_000
    schema = '{"type":"object","properties":{"a":' * depth + '{"type":"object"}' + "}}" * depth
    return _write(wire, tools=_tool(wire, "f", schema))


def brackets(wire: str) -> tuple[str, bytes]:
    """28 MB of opened brackets in a field that the wire does not know."""
    half = TEXT // 2
    return _write(wire, extra=f'"metadata_x":{"[" * half}{"]" * half}')


def numbers(wire: str) -> tuple[str, bytes]:
    """One integer of megabytes, and many small ones."""
    return _write(wire, extra=f'"metadata_x":[{"9" * (4 * MIB)},{",".join("1" for _ in range(8 * MIB))}]')


def keys(wire: str) -> tuple[str, bytes]:
    """Write a million keys of one object."""
    return _write(wire, extra=f'"metadata_x":{{{",".join(f"{chr(34)}k{n}{chr(34)}:1" for n in range(1_800_000))}}}')


BODIES: dict[str, Callable[[str], tuple[str, bytes]]] = {
    each.__name__: each
    for each in (
        *(schemas, nested_schemas, small_tools, messages, pairs, parts, markers, backticks, fences, one_string),
        *(escapes, accepted_escapes, nesting, brackets, numbers, keys),
    )
}
QUICK = ("schemas", "messages", "pairs", "markers", "backticks")
