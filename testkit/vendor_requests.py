"""Requests as the vendors' clients write them, and as their servers understand them: the matrix's other side.

Written by hand; nothing here depends on toolspeak.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA: Body = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SYSTEM, QUESTION, RESULT = "Be brief.", "How is the weather?", "3 °C, snow"


@dataclass(frozen=True)
class Ask:
    """The client's request in a scenario; `history` is a call and its result, with an image or without."""

    stream: bool
    forced: bool = False
    history: bool = False
    image: bool = False


# ---------------------------------------------------------------- as clients write


def chat(ask: Ask) -> tuple[str, Body]:
    messages: list[Body] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    if ask.history:
        function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
        call = {"id": "call_1", "type": "function", "function": function}
        content: Any = RESULT
        if ask.image:
            url = {"url": f"data:image/png;base64,{PNG}"}
            content = [{"type": "text", "text": RESULT}, {"type": "image_url", "image_url": url}]
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": content})
    tool = {"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": SCHEMA}}
    body: Body = {"model": "m", "messages": messages, "tools": [tool], "stream": ask.stream, "max_tokens": 99}
    if ask.stream:
        body["stream_options"] = {"include_usage": True}
    if ask.forced:
        body["tool_choice"] = {"type": "function", "function": {"name": "get_weather"}}
    return "/v1/chat/completions", body


def responses(ask: Ask) -> tuple[str, Body]:
    items: list[Body] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    if ask.history:
        call = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
        output: Any = RESULT
        if ask.image:
            image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
            output = [{"type": "input_text", "text": RESULT}, image]
        items += [call, {"type": "function_call_output", "call_id": "call_1", "output": output}]
    tool = {"type": "function", "name": "get_weather", "description": "d", "parameters": SCHEMA, "strict": False}
    body: Body = {"model": "m", "instructions": SYSTEM, "input": items, "tools": [tool], "stream": ask.stream}
    body["max_output_tokens"] = 99
    if ask.forced:
        body["tool_choice"] = {"type": "function", "name": "get_weather"}
    return "/v1/responses", body


def anthropic(ask: Ask) -> tuple[str, Body]:
    messages: list[Body] = [{"role": "user", "content": QUESTION}]
    if ask.history:
        use = {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Oslo"}}
        content: Any = RESULT
        if ask.image:
            source = {"type": "base64", "media_type": "image/png", "data": PNG}
            content = [{"type": "text", "text": RESULT}, {"type": "image", "source": source}]
        result = {"type": "tool_result", "tool_use_id": "call_1", "content": content}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    tool = {"name": "get_weather", "description": "d", "input_schema": SCHEMA}
    body: Body = {"model": "m", "system": SYSTEM, "messages": messages, "tools": [tool], "stream": ask.stream}
    body["max_tokens"] = 99
    if ask.forced:
        body["tool_choice"] = {"type": "tool", "name": "get_weather"}
    return "/v1/messages", body


def gemini(ask: Ask) -> tuple[str, Body]:
    contents: list[Body] = [{"role": "user", "parts": [{"text": QUESTION}]}]
    if ask.history:
        call = {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}}
        response: Body = {"name": "get_weather", "response": {"output": RESULT}}
        if ask.image:
            response["parts"] = [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
        contents.append({"role": "model", "parts": [call]})
        contents.append({"role": "user", "parts": [{"functionResponse": response}]})
    tools = [{"functionDeclarations": [{"name": "get_weather", "description": "d", "parametersJsonSchema": SCHEMA}]}]
    body: Body = {"systemInstruction": {"parts": [{"text": SYSTEM}]}, "contents": contents, "tools": tools}
    body["generationConfig"] = {"maxOutputTokens": 99}
    if ask.forced:
        body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}}
    method = "streamGenerateContent?alt=sse" if ask.stream else "generateContent"
    return f"/v1beta/models/m:{method}", body


def ollama(ask: Ask) -> tuple[str, Body]:
    messages: list[Body] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
    if ask.history:
        call = {"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
        result: Body = {"role": "tool", "tool_name": "get_weather", "content": RESULT}
        if ask.image:
            result["images"] = [PNG]
        messages += [{"role": "assistant", "content": "", "tool_calls": [call]}, result]
    tool = {"type": "function", "function": {"name": "get_weather", "description": "d", "parameters": SCHEMA}}
    body: Body = {"model": "m", "messages": messages, "tools": [tool], "stream": ask.stream}
    body["options"] = {"num_predict": 99}
    return "/api/chat", body  # this wire cannot force a call


WRITE: dict[str, Callable[[Ask], tuple[str, Body]]] = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "ollama": ollama,
}


# ---------------------------------------------------------------- as servers understand


@dataclass(frozen=True)
class Understood:
    """A request as a vendor's server understands it."""

    system: str
    user: str
    tools: tuple[str, ...]
    schema: Body
    forced: bool
    call: tuple[str, Body] | None
    """The name and arguments of the call in the history."""
    result: str
    paired: bool
    """The result has the call's id (or, where ids are not needed, the call's position)."""
    image: bool
    limit: int
    stream: bool


def texts(content: str | list[Body] | None) -> str:
    """Join the texts of a content, whatever its form."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or [] if "text" in part)


def of_chat(path: str, body: Body) -> Understood:
    assert path == "chat/completions"
    messages: list[Body] = body["messages"]
    calls: list[Body] = [call for message in messages for call in message.get("tool_calls", ())]
    results = [message for message in messages if message["role"] == "tool"]
    function: Body = calls[0]["function"] if calls else {}
    return Understood(
        system="\n".join(texts(message["content"]) for message in messages if message["role"] == "system"),
        user=texts(next(message for message in messages if message["role"] == "user")["content"]),
        tools=tuple(tool["function"]["name"] for tool in body["tools"]),
        schema=body["tools"][0]["function"]["parameters"],
        forced=body.get("tool_choice") == {"type": "function", "function": {"name": "get_weather"}},
        call=(function["name"], json.loads(function["arguments"])) if function else None,
        result="\n".join(texts(message["content"]) for message in results),
        paired=[call["id"] for call in calls] == [result["tool_call_id"] for result in results],
        image=PNG in json.dumps([message for message in messages if message["role"] == "user"]),
        limit=body["max_tokens"],
        stream=body.get("stream", False),
    )


def of_responses(path: str, body: Body) -> Understood:
    assert path == "responses"
    items: list[Body] = body["input"]
    calls = [item for item in items if item.get("type") == "function_call"]
    results = [item for item in items if item.get("type") == "function_call_output"]
    said = [item for item in items if item.get("type", "message") == "message"]
    system = [body["instructions"]] if body.get("instructions") else []
    system += [texts(item["content"]) for item in said if item["role"] in ("system", "developer")]
    return Understood(
        system="\n".join(system),
        user=texts(next(item for item in said if item["role"] == "user")["content"]),
        tools=tuple(tool["name"] for tool in body["tools"]),
        schema=body["tools"][0]["parameters"],
        forced=body.get("tool_choice") == {"type": "function", "name": "get_weather"},
        call=(calls[0]["name"], json.loads(calls[0]["arguments"])) if calls else None,
        result="\n".join(texts(item["output"]) for item in results),
        paired=[call["call_id"] for call in calls] == [result["call_id"] for result in results],
        image=PNG in json.dumps(results),
        limit=body["max_output_tokens"],
        stream=body.get("stream", False),
    )


def of_anthropic(path: str, body: Body) -> Understood:
    assert path == "messages"
    messages: list[Body] = body["messages"]
    blocks = [block for message in messages for block in message["content"] if isinstance(message["content"], list)]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    results = [block for block in blocks if block["type"] == "tool_result"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"][: len(messages)]
    return Understood(
        system=texts(body.get("system")),
        user=texts(messages[0]["content"]),
        tools=tuple(tool["name"] for tool in body["tools"]),
        schema=body["tools"][0]["input_schema"],
        forced=body.get("tool_choice") == {"type": "tool", "name": "get_weather"},
        call=(calls[0]["name"], calls[0]["input"]) if calls else None,
        result="\n".join(texts(result["content"]) for result in results),
        paired=[call["id"] for call in calls] == [result["tool_use_id"] for result in results],
        image=PNG in json.dumps(results),
        limit=body["max_tokens"],
        stream=body.get("stream", False),
    )


def of_gemini(path: str, body: Body) -> Understood:
    assert path in ("models/m:generateContent", "models/m:streamGenerateContent?alt=sse")
    parts = [part for content in body["contents"] for part in content["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    declarations = body["tools"][0]["functionDeclarations"]
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    return Understood(
        system=texts(body["systemInstruction"]["parts"]),
        user=texts(body["contents"][0]["parts"]),
        tools=tuple(tool["name"] for tool in declarations),
        schema=declarations[0].get("parametersJsonSchema") or declarations[0]["parameters"],
        forced=config.get("mode") == "ANY" and config.get("allowedFunctionNames") == ["get_weather"],
        call=(calls[0]["name"], calls[0]["args"]) if calls else None,
        result="\n".join(str(next(iter(result["response"].values()))) for result in results),
        paired=[call["name"] for call in calls] == [result["name"] for result in results],
        image=PNG in json.dumps(parts),
        limit=body["generationConfig"]["maxOutputTokens"],
        stream="stream" in path,
    )


def of_ollama(path: str, body: Body) -> Understood:
    assert path == "api/chat"
    messages: list[Body] = body["messages"]
    calls: list[Body] = [call["function"] for message in messages for call in message.get("tool_calls", ())]
    results = [message for message in messages if message["role"] == "tool"]
    return Understood(
        system="\n".join(message["content"] for message in messages if message["role"] == "system"),
        user=next(message for message in messages if message["role"] == "user")["content"],
        tools=tuple(tool["function"]["name"] for tool in body["tools"]),
        schema=body["tools"][0]["function"]["parameters"],
        forced=len(body["tools"]) == 1,  # the most that this wire can express
        call=(calls[0]["name"], calls[0]["arguments"]) if calls else None,
        result="\n".join(message["content"] for message in results),
        paired=[call["name"] for call in calls] == [result["tool_name"] for result in results],
        image=any(message.get("images") == [PNG] for message in messages),
        limit=body["options"]["num_predict"],
        stream=body.get("stream", True),
    )


UNDERSTAND: dict[str, Callable[[str, Body], Understood]] = {
    "openai_chat": of_chat,
    "openai_responses": of_responses,
    "anthropic": of_anthropic,
    "gemini": of_gemini,
    "ollama": of_ollama,
}
