"""Requests of the bench's client: a small question, 30 tools, a streamed text; on all five wires."""

import json
from typing import Any

from bench.gateway.answers import TOOL
from testkit.vendor_requests import WRITE, Ask

Body = dict[str, Any]

WORDS = (
    "Give the path relative to the root of the workspace; it must not leave it, and links are followed only inside. ",
    "When it is left out, the value of the settings is taken, and the answer says which value that was. ",
    "Large results are cut at the limit, with a note on how to get the rest in a second call. ",
)
NAMES = (
    *(TOOL, "read_file", "list_folder", "find_files", "search_text", "move_file", "delete_file", "make_folder"),
    *("run_command", "read_output", "stop_command", "open_page", "click_link", "fill_form", "take_picture"),
    *("list_issues", "read_issue", "write_comment", "close_issue", "list_branches", "make_branch", "merge_branch"),
    *("send_mail", "list_mails", "read_calendar", "add_meeting", "query_table", "describe_table", "plot", "translate"),
)
FRESH = b"#0000000"
"""Part of a tool's description; a request with another number has tools that no gateway has seen."""


def schema(number: int) -> Body:
    """Return the parameters of a tool, as agents write them."""
    text = {"type": "string", "minLength": 1}
    return {
        "type": "object",
        "properties": {
            "path": {**text, "description": WORDS[0]},
            "text": {"type": "string", "description": WORDS[number % 3]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000 + number, "description": WORDS[2]},
            "mode": {"type": "string", "enum": ["fast", "exact", f"kind_{number}"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "options": {
                "type": "object",
                "properties": {"dry_run": {"type": "boolean"}, "encoding": text},
                "additionalProperties": False,
            },
        },
        "required": ["path", "text"],
        "additionalProperties": False,
    }


def tools() -> list[Body]:
    """Return thirty tools in the words of OpenAI Chat."""
    made: list[Body] = []
    for number, name in enumerate(NAMES):
        spoken = f"{name.replace('_', ' ').capitalize()} {FRESH.decode()}. {WORDS[number % 3]}{WORDS[(number + 1) % 3]}"
        function = {"name": name, "description": spoken, "parameters": schema(number)}
        made.append({"type": "function", "function": function})
    return made


def small(model: str) -> bytes:
    """Return a question of some 870 bytes, without tools."""
    system = "You are a helpful assistant. " + WORDS[0] + WORDS[1] + WORDS[2]
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": "When does the first ferry leave? " + WORDS[1]},
        {"role": "assistant", "content": "At half past six. " + WORDS[2]},
        {"role": "user", "content": "And how is the harbour in the morning?"},
    ]
    return encoded({"model": model, "messages": messages, "temperature": 0.7, "max_tokens": 512})


def with_tools(model: str, *, stream: bool = False) -> bytes:
    """Return a question with 30 tools, 33 KB."""
    body: Body = {
        "model": model,
        "messages": [{"role": "user", "content": "Write down the ferries."}],
        "stream": stream,
    }
    return encoded({**body, "tools": tools(), "tool_choice": "auto"})


def streamed(model: str) -> bytes:
    """Return a question for a streamed text, without tools."""
    messages = [{"role": "user", "content": "Tell me about the harbour."}]
    return encoded({"model": model, "messages": messages, "stream": True})


def with_one_tool(model: str) -> bytes:
    """Return a question for a stream, with the tool that the answer may call."""
    body: Body = {"model": model, "messages": [{"role": "user", "content": "Write down the ferries."}], "stream": True}
    return encoded({**body, "tools": tools()[:1]})


def on_wire(wire: str, model: str) -> tuple[str, bytes]:
    """Return the path and the body of a streamed question, as a client of the wire writes it."""
    path, body = WRITE[wire](Ask(stream=True))
    if "model" in body:
        body["model"] = model
    return path.replace("/m:", f"/{model}:"), encoded(body)


def encoded(body: Body) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
