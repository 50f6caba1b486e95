"""Reads tools and messages of an OpenAI-compatible server's own request objects.

The objects are pydantic models or plain dicts, by the server and its version; only the fields of the protocol are used.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from toolspeak.ir.tool import Tool

_FREE_TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""The parameters as which servers show a `custom` tool of the Responses API to the model."""
_UNTRUSTED_ROLES = ("user", "tool", "function")


def offered_tools(tools: Iterable[Any]) -> tuple[Tool, ...]:
    """Return the functions among a request's tools, in both shapes: with and without `function`."""
    found = (_tool(_field(tool, "function") or tool, _field(tool, "type")) for tool in tools)
    return tuple(tool for tool in found if tool is not None)


def _tool(function: Any, kind: Any) -> Tool | None:
    name = _field(function, "name")
    if not isinstance(name, str):
        return None  # a built-in tool of the server, such as `web_search`
    parameters = _FREE_TEXT if kind == "custom" else _field(function, "parameters") or {}
    return Tool(name, _field(function, "description") or "", parameters)


def untrusted_message_texts(conversation: Any) -> Iterator[str]:
    """Yield the texts that neither the model nor the operator wrote: those of users and of tool results."""
    if isinstance(conversation, str):
        yield conversation
        return
    for message in conversation:
        if _field(message, "role") in _UNTRUSTED_ROLES:
            yield from _texts(_field(message, "content"))
        elif str(_field(message, "type")).endswith("_output"):  # a result in the input of the Responses API
            yield from _texts(_field(message, "output"))


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        parts: Iterable[Any] = content or ()
        texts = (part if isinstance(part, str) else _field(part, "text") for part in parts)
        yield from (text for text in texts if isinstance(text, str))


def _field(value: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else getattr(value, name, None)
