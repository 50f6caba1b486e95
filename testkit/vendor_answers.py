"""Answers as the vendors' servers send them, written by hand from their documents: the upstream's side of the matrix.

Nothing here depends on toolspeak: what it reads out of these bytes is compared with what was put in.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The model's answer in a scenario, in this order: reasoning, text, calls."""

    text: str = ""
    reasoning: str = ""
    signature: str = ""
    calls: tuple[tuple[str, str, Body], ...] = ()
    """Id, name and arguments."""
    cut: bool = False
    """Ended by the limit of tokens."""
    error: str = ""
    """Breaks off with this error after all that."""


def pieces(text: str) -> Iterator[str]:
    """Cut a text as a model's tokens would."""
    for start in range(0, len(text), 3):
        yield text[start : start + 3]


def sse(body: Body, event: str = "") -> str:
    return (f"event: {event}\n" if event else "") + f"data: {json.dumps(body, ensure_ascii=False)}\n\n"


# ---------------------------------------------------------------- OpenAI Chat


CHAT_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chat_stop(answer: Answer) -> str:
    return "length" if answer.cut else "tool_calls" if answer.calls else "stop"


def chat_stream(answer: Answer) -> str:
    head = {"id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 1, "model": "up"}

    def chunk(delta: Body, reason: str | None = None) -> str:
        return sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    out = [chunk({"role": "assistant", "content": ""})]
    out += [chunk({"reasoning_content": piece}) for piece in pieces(answer.reasoning)]
    out += [chunk({"content": piece}) for piece in pieces(answer.text)]
    for index, (id, name, arguments) in enumerate(answer.calls):
        function = {"name": name, "arguments": ""}
        out.append(chunk({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}))
        for piece in pieces(json.dumps(arguments)):
            out.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    if answer.error:
        return "".join(out) + sse({"error": {"message": answer.error, "type": "server_error", "code": None}})
    out += [chunk({}, chat_stop(answer)), sse({**head, "choices": [], "usage": CHAT_USAGE}), "data: [DONE]\n\n"]
    return "".join(out)


def chat_whole(answer: Answer) -> Body:
    message: Body = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, name, arguments in answer.calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": chat_stop(answer)}
    return {"id": "chatcmpl-up", "object": "chat.completion", "model": "up", "choices": [choice], "usage": CHAT_USAGE}


# ---------------------------------------------------------------- OpenAI Responses


def responses_items(answer: Answer) -> list[Body]:
    items: list[Body] = []
    if answer.reasoning or answer.signature:
        summary = [{"type": "summary_text", "text": answer.reasoning}] if answer.reasoning else []
        reasoning: Body = {"type": "reasoning", "id": "rs_1", "summary": summary}
        items.append({**reasoning, "encrypted_content": answer.signature or None})
    if answer.text:
        part: Body = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for id, name, arguments in answer.calls:
        call: Body = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "status": "completed"}
        items.append({**call, "arguments": json.dumps(arguments)})
    return items


def responses_whole(answer: Answer) -> Body:
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    status = "incomplete" if answer.cut else "completed"
    details = {"reason": "max_output_tokens"} if answer.cut else None
    body: Body = {"id": "resp_up", "object": "response", "created_at": 1, "status": status, "model": "up"}
    return {**body, "incomplete_details": details, "output": responses_items(answer), "usage": usage}


def responses_stream(answer: Answer) -> str:
    numbers = count()

    def event(kind: str, **fields: object) -> str:
        return sse({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    empty: Body = {**responses_whole(answer), "status": "in_progress", "output": [], "usage": None}
    out = [event("response.created", response=empty), event("response.in_progress", response=empty)]
    for index, item in enumerate(responses_items(answer)):
        out += responses_item(event, index, item)
    if answer.error:
        failed: Body = {**empty, "status": "failed", "error": {"code": "server_error", "message": answer.error}}
        return "".join(out) + event("response.failed", response=failed)
    final = "response.incomplete" if answer.cut else "response.completed"
    return "".join(out) + event(final, response=responses_whole(answer))


def responses_item(event: Callable[..., str], index: int, item: Body) -> Iterator[str]:
    place = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "reasoning":
        yield event("response.output_item.added", output_index=index, item={**item, "summary": []})
        for number, part in enumerate(item["summary"]):
            for piece in pieces(part["text"]):
                yield event("response.reasoning_summary_text.delta", summary_index=number, delta=piece, **place)
    elif item["type"] == "message":
        yield event("response.output_item.added", output_index=index, item={**item, "content": []})
        for piece in pieces(item["content"][0]["text"]):
            yield event("response.output_text.delta", content_index=0, delta=piece, logprobs=[], **place)
    else:
        yield event("response.output_item.added", output_index=index, item={**item, "arguments": ""})
        for piece in pieces(item["arguments"]):
            yield event("response.function_call_arguments.delta", delta=piece, **place)
        yield event("response.function_call_arguments.done", arguments=item["arguments"], **place)
    yield event("response.output_item.done", output_index=index, item=item)


# ---------------------------------------------------------------- Anthropic


def anthropic_stop(answer: Answer) -> str:
    return "max_tokens" if answer.cut else "tool_use" if answer.calls else "end_turn"


def anthropic_blocks(answer: Answer) -> list[Body]:
    blocks: list[Body] = []
    if answer.reasoning or answer.signature:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": answer.signature})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [{"type": "tool_use", "id": id, "name": name, "input": value} for id, name, value in answer.calls]
    return blocks


def anthropic_whole(answer: Answer) -> Body:
    body: Body = {"id": "msg_up", "type": "message", "role": "assistant", "model": "up"}
    usage = {"input_tokens": 11, "output_tokens": 7}
    stop = {"stop_reason": anthropic_stop(answer), "stop_sequence": None}
    return {**body, "content": anthropic_blocks(answer), **stop, "usage": usage}


def anthropic_stream(answer: Answer) -> str:
    start: Body = {**anthropic_whole(answer), "content": [], "stop_reason": None, "usage": {"input_tokens": 11}}
    out = [sse({"type": "message_start", "message": start}, "message_start"), sse({"type": "ping"}, "ping")]
    for index, block in enumerate(anthropic_blocks(answer)):
        out += anthropic_block(index, block)
    if answer.error:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": answer.error}}
        return "".join(out) + sse(error, "error")
    delta = {"stop_reason": anthropic_stop(answer), "stop_sequence": None}
    out.append(sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}, "message_delta"))
    return "".join(out) + sse({"type": "message_stop"}, "message_stop")


def anthropic_block(index: int, block: Body) -> Iterator[str]:
    deltas: list[Body] = []
    if block["type"] == "thinking":
        opened: Body = {"type": "thinking", "thinking": "", "signature": ""}
        deltas += [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] == "text":
        opened = {"type": "text", "text": ""}
        deltas += [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    else:
        opened = {**block, "input": {}}
        text = json.dumps(block["input"])
        deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text))]
    yield sse({"type": "content_block_start", "index": index, "content_block": opened}, "content_block_start")
    for delta in deltas:
        yield sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
    yield sse({"type": "content_block_stop", "index": index}, "content_block_stop")


# ---------------------------------------------------------------- Gemini


def gemini_chunk(parts: list[Body], finish: str = "") -> Body:
    candidate: Body = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "up", "responseId": "up"}


def gemini_calls(answer: Answer) -> list[Body]:
    parts: list[Body] = [{"functionCall": {"id": id, "name": name, "args": value}} for id, name, value in answer.calls]
    if answer.signature and parts:
        parts[0]["thoughtSignature"] = answer.signature
    return parts


def gemini_whole(answer: Answer) -> Body:
    parts: list[Body] = [{"text": answer.reasoning, "thought": True}] if answer.reasoning else []
    parts += [{"text": answer.text}] if answer.text else []
    return gemini_chunk([*parts, *gemini_calls(answer)], "MAX_TOKENS" if answer.cut else "STOP")


def gemini_stream(answer: Answer) -> str:
    out = [sse(gemini_chunk([{"text": piece, "thought": True}])) for piece in pieces(answer.reasoning)]
    out += [sse(gemini_chunk([{"text": piece}])) for piece in pieces(answer.text)]
    out += [sse(gemini_chunk([part])) for part in gemini_calls(answer)]
    if answer.error:
        return "".join(out) + sse({"error": {"code": 503, "message": answer.error, "status": "UNAVAILABLE"}})
    return "".join(out) + sse(gemini_chunk([{"text": ""}], "MAX_TOKENS" if answer.cut else "STOP"))


# ---------------------------------------------------------------- Ollama


def ollama_line(message: Body, **fields: object) -> Body:
    said = {"role": "assistant", "content": "", **message}
    return {"model": "up", "created_at": "2026-11-14T10:00:00.5Z", "message": said, "done": False, **fields}


def ollama_end(answer: Answer) -> Body:
    reason = "length" if answer.cut else "stop"
    return {"done": True, "done_reason": reason, "total_duration": 5, "prompt_eval_count": 11, "eval_count": 7}


def ollama_calls(answer: Answer) -> list[Body]:
    calls: list[Body] = []
    for index, (id, name, arguments) in enumerate(answer.calls):
        calls.append({"id": id, "function": {"index": index, "name": name, "arguments": arguments}})
    return calls


def ollama_whole(answer: Answer) -> Body:
    message: Body = {"content": answer.text}
    if answer.reasoning:
        message["thinking"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = ollama_calls(answer)
    return ollama_line(message, **ollama_end(answer))


def ollama_stream(answer: Answer) -> str:
    lines = [ollama_line({"thinking": piece}) for piece in pieces(answer.reasoning)]
    lines += [ollama_line({"content": piece}) for piece in pieces(answer.text)]
    lines += [ollama_line({"tool_calls": [call]}) for call in ollama_calls(answer)]
    lines.append({"error": answer.error} if answer.error else ollama_line({}, **ollama_end(answer)))
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


STREAMS: dict[str, Callable[[Answer], str]] = {
    "openai_chat": chat_stream,
    "openai_responses": responses_stream,
    "anthropic": anthropic_stream,
    "gemini": gemini_stream,
    "ollama": ollama_stream,
}
WHOLES: dict[str, Callable[[Answer], Body]] = {
    "openai_chat": chat_whole,
    "openai_responses": responses_whole,
    "anthropic": anthropic_whole,
    "gemini": gemini_whole,
    "ollama": ollama_whole,
}
CARRIES_SIGNATURES = frozenset(("openai_responses", "anthropic", "gemini"))


def error_body(wire: str, message: str) -> tuple[int, Body]:
    """Return the status and body of an upstream that is overloaded."""
    if wire == "anthropic":
        return 529, {"type": "error", "error": {"type": "overloaded_error", "message": message}, "request_id": "r"}
    if wire == "gemini":
        return 503, {"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}
    if wire == "ollama":
        return 503, {"error": message}
    return 503, {"error": {"message": message, "type": "server_error", "param": None, "code": None}}
