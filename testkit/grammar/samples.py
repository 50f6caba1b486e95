"""Good responses of every wire, written by hand without toolspeak, to test the judges with."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testkit.grammar.seen import SeenCall


@dataclass(frozen=True, slots=True)
class Sample:
    """The content of a response. `error` breaks the stream after it."""

    reasoning: str = ""
    signature: str = ""
    text: str = ""
    calls: tuple[SeenCall, ...] = ()
    error: str = ""


NOW = SeenCall("call_1", "now", {"zone": "CET"})
BUS = SeenCall("call_2", "find_bus", {"stop": "Bærum", "limit": 2})
PATCH = SeenCall("call_3", "apply_patch", "*** Begin Patch\n*** End Patch\n", "custom")
AGENT = SeenCall("call_4", "close_agent", {}, "function", "agents")
SEARCH = SeenCall("call_5", "tool_search", {"query": "mail"}, "tool_search")
SAMPLES = {
    "text": Sample(text="Hello, you."),
    "nothing": Sample(),
    "one call": Sample(calls=(NOW,)),
    "two calls": Sample(text="Both. ", calls=(NOW, BUS)),
    "reasoning": Sample(reasoning="Let me see", signature="c2lnbmVk", calls=(NOW,)),
    "error": Sample(text="Hello", error="overloaded"),
    "custom": Sample(calls=(PATCH,)),
    "namespace": Sample(calls=(AGENT, PATCH)),
    "search": Sample(calls=(SEARCH,)),
}
USAGE = (7, 5)
Body = dict[str, Any]


def dump(value: object) -> str:
    """Write compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def halves(text: str) -> list[str]:
    """Cut a text in two."""
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half]


def frame(data: object, event: str = "") -> bytes:
    """Write one server-sent event."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {data if isinstance(data, str) else dump(data)}\n\n".encode()


# ---------------------------------------------------------------- OpenAI Chat Completions

_CHAT_USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


def chat_stream(sample: Sample) -> bytes:
    """Write a stream of Chat Completions."""
    head: Body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    end: list[Body | str]
    if sample.error:
        end = [{"error": {"message": sample.error, "type": "server_error", "param": None, "code": None}}]
    else:
        stop = "tool_calls" if sample.calls else "stop"
        end = [head | _choice("delta", {}, stop), head | {"choices": [], "usage": _CHAT_USAGE}, "[DONE]"]
    chunks = [head | _choice("delta", delta, None) for delta in _chat_deltas(sample)]
    return b"".join(frame(chunk) for chunk in [*chunks, *end])


def chat_whole(sample: Sample) -> bytes:
    """Write a body of Chat Completions."""
    message: Body = {"role": "assistant", "content": sample.text or (None if sample.calls else ""), "refusal": None}
    message |= {"reasoning_content": sample.reasoning} if sample.reasoning else {}
    message |= {"tool_calls": [_chat_call(call) for call in sample.calls]} if sample.calls else {}
    head: Body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    choice = _choice("message", message, "tool_calls" if sample.calls else "stop")
    return dump(head | choice | {"usage": _CHAT_USAGE}).encode()


def _choice(key: str, value: Body, stop: str | None) -> Body:
    return {"choices": [{"index": 0, key: value, "logprobs": None, "finish_reason": stop}]}


def _chat_deltas(sample: Sample) -> Iterator[Body]:
    yield {"role": "assistant", "content": ""}
    for piece in halves(sample.reasoning):
        yield {"reasoning_content": piece}
    for piece in halves(sample.text):
        yield {"content": piece}
    for index, call in enumerate(sample.calls):
        key, field = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
        yield {"tool_calls": [{"index": index, **_chat_call(call), key: {"name": call.name, field: ""}}]}
        for piece in halves(_value(call)):
            yield {"tool_calls": [{"index": index, key: {field: piece}}]}


def _chat_call(call: SeenCall) -> Body:
    key, field = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
    return {"id": call.id, "type": key, key: {"name": call.name, field: _value(call)}}


def _value(call: SeenCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else dump(call.arguments)


# ---------------------------------------------------------------- OpenAI Responses

_RESPONSE: Body = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": None,
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}
_RESPONSES_USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 12,
}


def responses_stream(sample: Sample) -> bytes:
    """Write a stream of Responses."""
    begun: Body = _RESPONSE | {"status": "in_progress", "output": [], "usage": None}
    events: list[Body] = [{"type": f"response.{word}", "response": begun} for word in ("created", "in_progress")]
    for index, item in enumerate(_items(sample)):
        events += [event | {"output_index": index} for event in _item_events(item)]
    if sample.error:
        events.pop()
        failed: Body = {"status": "failed", "error": {"code": "server_error", "message": sample.error}, "output": []}
        events.append({"type": "response.failed", "response": _RESPONSE | failed | {"usage": None}})
    else:
        events.append({"type": "response.completed", "response": _completed(sample)})
    return b"".join(frame({"sequence_number": n, **e}, str(e["type"])) for n, e in enumerate(events))


def responses_whole(sample: Sample) -> bytes:
    """Write a body of Responses."""
    return dump(_completed(sample)).encode()


def _completed(sample: Sample) -> Body:
    return _RESPONSE | {"status": "completed", "output": list(_items(sample)), "usage": _RESPONSES_USAGE}


def _items(sample: Sample) -> Iterator[Body]:
    if sample.reasoning:
        summary = [{"type": "summary_text", "text": sample.reasoning}]
        yield {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": sample.signature}
    if sample.text or not sample.calls:
        part: Body = {"type": "output_text", "text": sample.text, "annotations": [], "logprobs": []}
        yield {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    for call in sample.calls:
        yield {"call_id": call.id, "status": "completed", **_call_item(call)}


def _call_item(call: SeenCall) -> Body:
    if call.kind == "tool_search":
        return {"id": "tsc_5", "type": "tool_search_call", "execution": "client", "arguments": call.arguments}
    space: Body = {"namespace": call.namespace} if call.namespace else {}
    if call.kind == "custom":
        return {"id": "ctc_3", "type": "custom_tool_call", "name": call.name, "input": call.arguments, **space}
    item_id = call.id.replace("call", "fc")
    return {"id": item_id, "type": "function_call", "name": call.name, "arguments": _value(call), **space}


_EMPTY: dict[str, Body] = {
    "message": {"content": []},
    "reasoning": {"summary": [], "encrypted_content": None},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
    "tool_search_call": {"arguments": {}},
}


def _item_events(item: Body) -> Iterator[Body]:
    begun = {"status": "in_progress"} if "status" in item else {}
    yield {"type": "response.output_item.added", "item": item | begun | _EMPTY[item["type"]]}
    place = {"item_id": item["id"]}
    match item["type"]:
        case "message":
            place |= {"content_index": 0}
            yield from _part_events("content_part", "output_text", place, item["content"][0])
        case "reasoning":
            place |= {"summary_index": 0}
            yield from _part_events("reasoning_summary_part", "reasoning_summary_text", place, item["summary"][0])
        case "function_call":
            yield from _text_events("function_call_arguments", place, "arguments", item["arguments"])
        case "custom_tool_call":
            yield from _text_events("custom_tool_call_input", place, "input", item["input"])
        case _:
            pass
    yield {"type": "response.output_item.done", "item": item}


def _part_events(part_name: str, text_name: str, place: Body, part: Body) -> Iterator[Body]:
    yield {"type": f"response.{part_name}.added", **place, "part": part | {"text": ""}}
    more: Body = {"logprobs": []} if text_name == "output_text" else {}
    yield from _text_events(text_name, place | more, "text", part["text"])
    yield {"type": f"response.{part_name}.done", **place, "part": part}


def _text_events(name: str, place: Body, key: str, text: str) -> Iterator[Body]:
    for piece in halves(text):
        yield {"type": f"response.{name}.delta", **place, "delta": piece}
    yield {"type": f"response.{name}.done", **place, key: text}


# ---------------------------------------------------------------- Anthropic Messages


def anthropic_stream(sample: Sample) -> bytes:
    """Write a stream of Messages."""
    usage = {"input_tokens": 7, "output_tokens": 0}
    start = _message(content=[], stop_reason=None, usage=usage)
    events: list[Body] = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, block in enumerate(_blocks(sample)):
        events += [event | {"index": index} for event in _block_events(block)]
    if sample.error:
        events[-1:] = [{"type": "error", "error": {"type": "overloaded_error", "message": sample.error}}]
    else:
        stop = {"stop_reason": "tool_use" if sample.calls else "end_turn", "stop_sequence": None}
        events.append({"type": "message_delta", "delta": stop, "usage": usage | {"output_tokens": 5}})
        events.append({"type": "message_stop"})
    return b"".join(frame(event, event["type"]) for event in events)


def anthropic_whole(sample: Sample) -> bytes:
    """Write a body of Messages."""
    stop = "tool_use" if sample.calls else "end_turn"
    usage = {"input_tokens": 4, "cache_read_input_tokens": 3, "output_tokens": 5}
    return dump(_message(content=list(_blocks(sample)), stop_reason=stop, usage=usage)).encode()


def _message(**more: object) -> Body:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, **more}


def _blocks(sample: Sample) -> Iterator[Body]:
    if sample.reasoning:
        yield {"type": "thinking", "thinking": sample.reasoning, "signature": sample.signature}
    if sample.text:
        yield {"type": "text", "text": sample.text}
    for call in sample.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _block_events(block: Body) -> Iterator[Body]:
    empty = {key: type(block[key])() for key in ("thinking", "signature", "text", "input") if key in block}
    yield {"type": "content_block_start", "content_block": block | empty}
    flows = {"thinking": "thinking_delta", "text": "text_delta", "tool_use": "input_json_delta"}
    key = "partial_json" if block["type"] == "tool_use" else block["type"]
    value = dump(block["input"]) if block["type"] == "tool_use" else block[key]
    deltas = [{"type": flows[block["type"]], key: piece} for piece in halves(value)]
    if "signature" in block:
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    for delta in deltas:
        yield {"type": "content_block_delta", "delta": delta}
    yield {"type": "content_block_stop"}


# ---------------------------------------------------------------- Gemini

_GEMINI_USAGE = {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "totalTokenCount": 12}


def gemini_stream(sample: Sample) -> bytes:
    """Write a stream of generateContent as server-sent events."""
    return b"".join(frame(chunk) for chunk in _gemini_chunks(sample))


def gemini_array(sample: Sample) -> bytes:
    """Write a stream of generateContent as one array."""
    return dump(list(_gemini_chunks(sample))).encode()


def gemini_whole(sample: Sample) -> bytes:
    """Write a body of generateContent."""
    parts = list(_parts(sample, whole=True)) or [{"text": ""}]
    return dump(_gemini(parts, finishReason="STOP") | {"usageMetadata": _GEMINI_USAGE}).encode()


def _gemini_chunks(sample: Sample) -> Iterator[Body]:
    for part in _parts(sample, whole=False):
        yield _gemini([part])
    if sample.error:
        yield {"error": {"code": 503, "message": sample.error, "status": "UNAVAILABLE"}}
    else:
        yield _gemini([{"text": ""}], finishReason="STOP") | {"usageMetadata": _GEMINI_USAGE}


def _gemini(parts: list[Body], **more: object) -> Body:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r-1"}


def _parts(sample: Sample, *, whole: bool) -> Iterator[Body]:
    for piece in [sample.reasoning] if whole and sample.reasoning else halves(sample.reasoning):
        yield {"text": piece, "thought": True}
    for piece in [sample.text] if whole and sample.text else halves(sample.text):
        yield {"text": piece}
    for index, call in enumerate(sample.calls):
        part: Body = {"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}}
        yield part | ({"thoughtSignature": sample.signature} if sample.signature and not index else {})


# ---------------------------------------------------------------- Ollama


def ollama_stream(sample: Sample) -> bytes:
    """Write a stream of chat lines."""
    lines = [_line(content="")]  # keeps the connection alive
    lines += [_line(content="", thinking=piece) for piece in halves(sample.reasoning)]
    lines += [_line(content=piece) for piece in halves(sample.text)]
    lines += [_line(content="", tool_calls=[_ollama_call(n, call)]) for n, call in enumerate(sample.calls)]
    lines.append({"error": sample.error} if sample.error else _line(content="") | _OLLAMA_END)
    return "".join(f"{dump(line)}\n" for line in lines).encode()


def ollama_whole(sample: Sample) -> bytes:
    """Write a body of chat."""
    message: Body = {"content": sample.text}
    message |= {"thinking": sample.reasoning} if sample.reasoning else {}
    calls = [_ollama_call(index, call) for index, call in enumerate(sample.calls)]
    return dump(_line(**message, **({"tool_calls": calls} if calls else {})) | _OLLAMA_END).encode()


_OLLAMA_END: Body = {
    "done": True,
    "done_reason": "stop",
    "total_duration": 9,
    "load_duration": 1,
    "prompt_eval_count": 7,
    "prompt_eval_duration": 2,
    "eval_count": 5,
    "eval_duration": 6,
}


def _line(**message: object) -> Body:
    head = {"model": "m", "created_at": "2026-01-02T03:04:05.678901Z"}
    return {**head, "message": {"role": "assistant", **message}, "done": False}


def _ollama_call(index: int, call: SeenCall) -> Body:
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": call.arguments}}
