"""Writes a request for an upstream that speaks Chat Completions."""

from collections.abc import Iterable, Iterator
from typing import Final

from toolspeak.ir.constraint import Constraint, ConstraintForm, TextGrammar, TextSchema, TextTags
from toolspeak.ir.json import Json, JsonObject, as_list, as_object, object_at
from toolspeak.ir.message import Call, Image, Message, Opaque, Part, Reasoning, Result, Role, Text, part_text
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool, ToolChoice, ToolKind
from toolspeak.wires.openai_chat import NAME
from toolspeak.wires.shared.calls import custom_input, with_ids
from toolspeak.wires.shared.history import instructions_first, pair_history
from toolspeak.wires.shared.interface import EncodedRequest
from toolspeak.wires.shared.json_body import dump_body
from toolspeak.wires.shared.request_parts import (
    foreign_fields,
    image_to_url,
    is_own,
    own_fields,
    write_instructions_once,
)
from toolspeak.wires.shared.tools import ToolNames, write_tools_once

LONGEST_NAME: Final = 64

PATH: Final = "chat/completions"
IMAGE_FOLLOWS: Final = "[image: it follows in the next message]"


def encode_request(request: Request, quirks: Quirks) -> EncodedRequest:
    """Write a request, and name what this wire cannot express."""
    names = names_of(request)
    extra = dict(request.extra.get(NAME, {}))
    # Within one protocol the order of the client is kept.
    told = request.messages if NAME in request.extra else instructions_first(request.messages)
    messages = with_ids(pair_history(told), quirks.ids)
    constrained, dropped = write_constraint(request, quirks.constraint)
    body: JsonObject = {
        "model": request.model,
        "messages": write_instructions_once([*MessageWriter(names, quirks).write(messages)]),
        **_tools(request, names, extra.pop("tools", None)),
        **_sampling(request, extra),
        **_output(request, extra.pop("response_format", None)),
        **constrained,
        **({"logprobs": True, "top_logprobs": request.top_tokens} if request.top_tokens else {}),
        **_streaming(request, extra.pop("stream_options", None)),
        **extra,
    }
    return EncodedRequest(PATH, dump_body(body), (*foreign_fields(request, NAME), *dropped))


def names_of(request: Request) -> ToolNames:
    """Return the map between the tools' names and the names that this wire allows."""
    return ToolNames.of(request.tools, LONGEST_NAME)


def _sampling(request: Request, extra: JsonObject) -> JsonObject:
    sampling = request.sampling
    limit = "max_completion_tokens" if extra.pop("max_completion_tokens", None) is not None else "max_tokens"
    body: JsonObject = {
        limit: sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
        "reasoning_effort": sampling.effort,
    }
    return {key: value for key, value in body.items() if value is not None}


def _output(request: Request, asked: Json) -> JsonObject:
    if request.output_schema is None:
        return {}
    if not request.output_schema:
        return {"response_format": {"type": "json_object"}}
    said = asked if isinstance(asked, dict) else {"name": "answer"}
    return {"response_format": {"type": "json_schema", "json_schema": {**said, "schema": request.output_schema}}}


def _streaming(request: Request, options: Json) -> JsonObject:
    if not request.stream:
        return {}
    return {"stream": True, "stream_options": {**as_object(options), "include_usage": True}}


# ---------------------------------------------------------------- tools


def _tools(request: Request, names: ToolNames, hosted: Json) -> JsonObject:
    same_wire = NAME in request.extra
    allowed = () if same_wire else request.choice.allowed
    offered = request.offered()
    if offered is request.tools and offered and not allowed and not as_list(hosted):
        tools = write_tools_once(offered, NAME, lambda: [_tool(tool, names) for tool in offered])
        return {"tools": tools, **_choice(request, names, same_wire=same_wire)}
    some: list[Json] = [_tool(tool, names) for tool in offered if not allowed or tool.name in allowed]
    some += as_list(hosted)
    return {"tools": some, **_choice(request, names, same_wire=same_wire)} if some else {}


def _tool(tool: Tool, names: ToolNames) -> JsonObject:
    body: JsonObject = {"name": names.out(tool.name)}
    if tool.description:
        body["description"] = tool.description
    if own_fields(tool.vendor, NAME).get("type") == "custom":
        return {"type": "custom", "custom": {**body, **_format(tool)}}
    body["parameters"] = tool.parameters
    if tool.strict:
        body["strict"] = True
    return {"type": "function", "function": {**body, **own_fields(tool.vendor, NAME)}}


def _format(tool: Tool) -> JsonObject:
    if tool.grammar is None:
        return {"format": {"type": "text"}}
    grammar: JsonObject = {"syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
    return {"format": {"type": "grammar", "grammar": grammar}}


def _choice(request: Request, names: ToolNames, *, same_wire: bool) -> JsonObject:
    choice = request.choice
    body: JsonObject = {}
    if choice.allowed and same_wire:
        body["tool_choice"] = _allowed(request, names)
    elif choice.mode is ChoiceMode.NAMED:
        body["tool_choice"] = _reference(request, choice.name, names)
    elif choice.mode is not ChoiceMode.AUTO:
        body["tool_choice"] = choice.mode.value
    if not choice.parallel:
        body["parallel_tool_calls"] = False
    return body


def _allowed(request: Request, names: ToolNames) -> JsonObject:
    choice: ToolChoice = request.choice
    tools: list[Json] = [_reference(request, name, names) for name in choice.allowed]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode.value, "tools": tools}}


def _reference(request: Request, name: str, names: ToolNames) -> JsonObject:
    custom = any(tool.name == name and own_fields(tool.vendor, NAME).get("type") == "custom" for tool in request.tools)
    kind = "custom" if custom else "function"
    return {"type": kind, kind: {"name": names.out(name)}}


# ---------------------------------------------------------------- messages


class MessageWriter:
    """Writes the messages of one request."""

    def __init__(self, names: ToolNames, quirks: Quirks) -> None:
        """Write names with `names`, in the form that `quirks` demands."""
        self._names = names
        self._quirks = quirks

    def write(self, messages: Iterable[Message]) -> Iterator[Json]:
        """Write a history in which each call has its result."""
        for message in messages:
            if message.role is Role.TOOL:
                yield from self._results(message.parts)
            elif message.role is Role.ASSISTANT:
                yield self._assistant(message)
            else:
                yield {
                    "role": message.role.value,
                    "content": _content(message.parts),
                    **own_fields(message.vendor, NAME),
                }

    def _assistant(self, message: Message) -> JsonObject:
        calls: list[Json] = [self._call(part) for part in message.parts if isinstance(part, Call)]
        texts = [part for part in message.parts if isinstance(part, Text | Opaque)]
        body: JsonObject = {"role": "assistant", "content": _said(texts)}
        if not body["content"] and calls:
            body["content"] = None if self._quirks.null_content else ""
        body |= self._reasoning(message.parts)
        if calls:
            body["tool_calls"] = calls
        return body | own_fields(message.vendor, NAME)

    def _reasoning(self, parts: Iterable[Part]) -> JsonObject:
        thoughts = [part for part in parts if isinstance(part, Reasoning) and part.text]
        if not thoughts or not self._quirks.reasoning_history:
            return {}
        key = "reasoning" if own_fields(thoughts[0].vendor, NAME).get("reasoning") else "reasoning_content"
        return {key: "".join(thought.text for thought in thoughts)}

    def _call(self, call: Call) -> JsonObject:
        said = own_fields(call.vendor, NAME)
        if said.get("type") == ToolKind.CUSTOM:
            custom: JsonObject = {"name": self._names.out(call.name), "input": custom_input(call.arguments)}
            return {"id": call.id, "type": "custom", "custom": custom}
        function: JsonObject = {"name": self._names.out(call.name), "arguments": call.arguments}
        return {"id": call.id, "type": "function", **said, "function": {**function, **object_at(said, "function")}}

    def _results(self, parts: Iterable[Part]) -> Iterator[Json]:
        """Write results, then a user message with their images: OpenAI accepts only text in results."""
        images: list[Part] = []
        for result in parts:
            if isinstance(result, Result):
                yield self._result(result)
                images += [piece for piece in result.content if isinstance(piece, Image)]
        if images and not self._quirks.image_results:
            yield {"role": "user", "content": _content(images)}

    def _result(self, result: Result) -> JsonObject:
        body: JsonObject = {"role": "tool", "tool_call_id": result.call_id, "content": self._result_content(result)}
        return body | own_fields(result.vendor, NAME)

    def _result_content(self, result: Result) -> Json:
        if self._quirks.image_results and any(isinstance(piece, Image) for piece in result.content):
            return [_part(piece if isinstance(piece, Image) else Text(part_text(piece))) for piece in result.content]
        texts = [IMAGE_FOLLOWS if isinstance(piece, Image) else part_text(piece) for piece in result.content]
        if len(texts) == 1:
            return texts[0]
        return [{"type": "text", "text": text} for text in texts] if texts else ""


def _said(parts: list[Text | Opaque]) -> Json:
    """Write the assistant's content: one string, unless a part has fields besides its text."""
    if any(part.vendor is not None and part.vendor.wire == NAME for part in parts):
        return [_part(part) for part in parts]
    return "".join(part.text for part in parts if isinstance(part, Text))


def _content(parts: Iterable[Part]) -> Json:
    """Write the content of a user or system message; a single plain text is written as a string."""
    written = list(parts)
    if len(written) == 1 and isinstance(written[0], Text) and not own_fields(written[0].vendor, NAME):
        return written[0].text
    return [_part(part) for part in written] if written else ""


def _part(part: Part) -> JsonObject:
    match part:
        case Text(text, vendor) if own_fields(vendor, NAME).get("type") == "refusal":
            return {"type": "refusal", "refusal": text}
        case Text(text, vendor):
            return {"type": "text", "text": text, **own_fields(vendor, NAME)}
        case Image():
            return {"type": "image_url", "image_url": {"url": image_to_url(part), **own_fields(part.vendor, NAME)}}
        case Opaque(vendor, label):
            return vendor.fields if is_own(part, NAME) else {"type": "text", "text": f"[{label} omitted]"}
        case Reasoning(text):
            return {"type": "text", "text": text}
        case Call() | Result():
            return {"type": "text", "text": ""}


# ---------------------------------------------------------------- constrained decoding
#
# OpenAI has no field for a grammar, and each server that imitates its wire has added its own (CHK-8).

_STRICT: Final = (ConstraintForm.STRICT, ConstraintForm.VLLM, ConstraintForm.SGLANG)
"""Servers that accept `strict` and enforce it."""
_TAGS: Final = (ConstraintForm.VLLM, ConstraintForm.SGLANG)


def write_constraint(request: Request, form: ConstraintForm) -> tuple[JsonObject, tuple[str, ...]]:
    """Write the constraint; the second value names it if it is dropped: no form for it, or a request with tools."""
    constraint = request.constraint
    if constraint is None:
        return {}, ()
    body = {} if request.tools or request.extra.get(NAME, {}).get("tools") else _body(constraint, form)
    return body, () if body else (f"constraint: {type(constraint).__name__}",)


def _body(constraint: Constraint, form: ConstraintForm) -> JsonObject:
    match constraint:
        case TextSchema(schema, name) if form is not ConstraintForm.NONE:
            said: JsonObject = {"name": name, "schema": schema, **({"strict": True} if form in _STRICT else {})}
            return {"response_format": {"type": "json_schema", "json_schema": said}}
        case TextTags(tags) if form in _TAGS:
            return {"response_format": {"type": "structural_tag", "format": tags}}
        case TextGrammar(gbnf) if form is ConstraintForm.LLAMACPP:
            return {"grammar": gbnf}
        case TextGrammar(gbnf) if form is ConstraintForm.VLLM:
            return {"structured_outputs": {"grammar": gbnf}}
        case TextGrammar(gbnf) if form is ConstraintForm.SGLANG:
            return {"ebnf": gbnf}
        case TextGrammar() | TextTags() | TextSchema():
            return {}
