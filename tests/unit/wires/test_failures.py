"""What an upstream's error means (WIRE-5): shapes, wordings and their traps, what is salvaged, linear time (P8)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from testkit.golden import CASES
from testkit.timing import BAR, growth
from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.wires.shared.failures import LONGEST_BODY, read_failure, status_of

FAILURES = CASES / "failures.jsonl"


def golden() -> list[dict[str, Any]]:
    cases = [json.loads(line) for line in FAILURES.read_text(encoding="utf-8").splitlines()]
    return [case for case in cases if case["dialect_hint"] == "http_error" and "classify" in case["expect"]]


def read(status: int, body: object) -> Failure:
    return read_failure(status, json.dumps(body).encode())


def kind(status: int, message: str, /, **more: object) -> FailureKind:
    """Classify a message in OpenAI's shape and as plain text: both must be the same."""
    failure = read(status, {"error": {"message": message, **more}})
    if not more:
        assert read_failure(status, message.encode()).kind is failure.kind
    return failure.kind


# The golden cases


def test_all_golden_errors_are_here() -> None:
    groups = [case["group"] for case in golden()]
    assert groups.count("upstream_error") == 32
    assert groups.count("result_roles") == 2


@pytest.mark.parametrize("case", golden(), ids=lambda case: case["id"])
def test_a_golden_error_is_classified_as_it_must_be_wire5(case: dict[str, Any]) -> None:
    failure = read_failure(case["http_status"], case["raw_output"].encode())
    assert failure.kind.value == case["expect"]["classify"]
    assert failure.status == case["http_status"]


def test_the_model_s_text_is_salvaged_from_groq_wire5() -> None:
    case = next(case for case in golden() if case["id"] == "ue-groq-tool-use-failed")
    salvage = read_failure(400, case["raw_output"].encode()).salvage
    assert salvage == '<function=web_search>{"query": "Hello!"}</function>'


def test_the_model_s_text_is_salvaged_from_llama_cpp_wire5() -> None:
    case = next(case for case in golden() if case["id"] == "ue-llamacpp-parse-failure")
    salvage = read_failure(500, case["raw_output"].encode()).salvage
    assert salvage == "<|tool_call_start|>[web_search_exa(query='x', numResults=5)]<|tool_call_end|>"


# Shapes


SHAPES: list[tuple[str, object]] = [
    ("openai", {"error": {"message": "No.", "type": "invalid_request_error", "param": None, "code": None}}),
    ("ollama", {"error": "No."}),
    ("vllm", {"object": "error", "message": "No.", "type": "BadRequestError", "param": None, "code": 400}),
    ("llama.cpp", {"code": 400, "message": "No.", "type": "invalid_request_error"}),
    ("anthropic", {"type": "error", "error": {"type": "e", "message": "No."}, "request_id": "req_1"}),
    ("gemini", {"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT", "details": []}}),
    ("gemini array", [{"error": {"code": 400, "message": "No.", "errors": [{"message": "No.", "reason": "r"}]}}]),
    ("gemini in gemini", {"error": {"message": '{"error": {"code": 400, "message": "No."}}', "code": 400}}),
    ("fastapi text", {"detail": "No."}),
    ("fastapi list", {"detail": [{"loc": ["body", "model"], "msg": "No.", "type": "missing"}]}),
    ("responses", {"type": "response.failed", "response": {"id": "r", "error": {"code": "e", "message": "No."}}}),
    ("responses event", {"type": "error", "code": "e", "message": "No.", "param": None, "sequence_number": 3}),
    ("tgi", {"error": "No.", "error_type": "validation"}),
    ("bedrock", {"message": "No."}),
    ("aws", {"__type": "ValidationException", "Message": "No."}),
    ("minimax", {"base_resp": {"status_code": 2013, "status_msg": "No."}}),
    ("cloudflare", {"success": False, "errors": [{"code": 7003, "message": "No."}]}),
    ("openrouter", {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "No."}}}),
    ("openrouter json", {"error": {"message": "Provider", "metadata": {"raw": '{"error":{"message":"No."}}'}}}),
]


@pytest.mark.parametrize(("shape", "body"), SHAPES, ids=[name for name, _ in SHAPES])
def test_the_message_is_found_in_every_shape_wire5(shape: str, body: object) -> None:
    assert shape
    assert read(400, body).message == "No."
    assert read(400, body).kind is FailureKind.INVALID_REQUEST
    assert read_failure(400, b"\xef\xbb\xbf \n" + json.dumps(body, indent=2).encode() + b"\n").message == "No."
    assert read_failure(200, b"event: error\ndata: " + json.dumps(body).encode() + b"\n\n").message == "No."


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"upstream is gone\n", "upstream is gone"),
        (b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>", "502 Bad Gateway"),
        (b"<!DOCTYPE html><TITLE lang=en>\n a &amp; b\n</TITLE>", "a & b"),
        (b"<html><body><h1>Bad   Gateway</h1><hr></body></html>", "Bad Gateway"),
        (b"<Error><Code>Denied</Code></Error>", "Denied"),
        (b'{"error": "cut in the mid', '{"error": "cut in the mid'),
        (b'{"what": "is this"}', '{"what": "is this"}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"", "the upstream answered HTTP 502 and said nothing"),
        (b" \n\t ", "the upstream answered HTTP 502 and said nothing"),
        (b'{"error": {"message": ""}}', '{"error": {"message": ""}}'),
        (b"<br><br>", "the upstream answered HTTP 502 and said nothing"),
        (b"id: 7 is not a tenant", "id: 7 is not a tenant"),
    ],
)
def test_what_is_no_json_still_says_something(body: bytes, message: str) -> None:
    assert read_failure(502, body) == Failure(FailureKind.TRANSIENT, message, 502)


def test_an_error_event_behind_a_part_of_the_answer_is_found() -> None:
    stream = (
        b': OPENROUTER PROCESSING\n\ndata: {"id":"1","choices":[{"delta":{"content":"hi"}}]}\n\n'
        b'data: {"error":{"code":502,"message":"Provider died"},"choices":[]}\n\ndata: [DONE]\n\n'
    )
    assert read_failure(200, stream) == Failure(FailureKind.TRANSIENT, "Provider died", 200)


def test_an_error_event_may_be_plain_text() -> None:
    assert read_failure(200, b"event: error\ndata: too bad\n\n") == Failure(FailureKind.OTHER, "too bad", 200)


def test_no_status_and_no_word_is_a_disconnect() -> None:
    assert read_failure(0, b"") == Failure(FailureKind.DISCONNECTED, "the upstream gave no answer")
    assert read_failure(200, b"").kind is FailureKind.DISCONNECTED


def test_a_long_message_keeps_both_ends_and_both_count() -> None:
    failure = read_failure(500, b"cannot run {" + b"x" * 100_000 + b"}: llama3 does not support tools")
    assert failure.kind is FailureKind.TOOLS_UNSUPPORTED
    assert failure.message.startswith("cannot run {xxx")
    assert failure.message.endswith("xxx}: llama3 does not support tools")
    assert len(failure.message) < 5000


# Wordings of real servers that the golden cases lack


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "tools is not supported in this model. For a list of supported models, refer to https://x"),
        (400, "<400> InternalError.Algo.InvalidParameter: The tool call is not supported."),
        (400, "Function calling is not enabled for models/gemma-3-27b-it"),
        (400, "meta-llama/Llama-Vision-Free is not supported for JSON mode/function calling"),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
        (400, "This model doesn't support the toolConfig field. Remove toolConfig and try again."),
        (400, "This model doesn’t support tool use."),
        (400, "litellm.BadRequestError: bedrock does not support parameters {tools: ...}"),
        (400, "Unrecognized request argument supplied: tools"),
        (400, "Invalid tool_choice: this model does not support tools"),
        (403, "The model does not support function calling yet"),
        (
            400,
            "The model does not support tool use or function calling but tools or tool_choice have been specified on",
        ),
    ],
)
def test_no_tools_is_understood_wire5(status: int, message: str) -> None:
    assert kind(status, message) is FailureKind.TOOLS_UNSUPPORTED


def test_a_server_that_does_not_know_the_field_has_no_tools_wire5() -> None:
    body = {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted", "type": "extra_forbidden"}]}
    assert read(422, body) == Failure(
        FailureKind.TOOLS_UNSUPPORTED, "Extra inputs are not permitted", 422, field="tools"
    )


@pytest.mark.parametrize(
    "message",
    [
        "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required",
        "Upstream request failed: [invalidrequesterror] Thinking mode does not support this tool_choice",
        "Unsupported value: 'tool_choice' does not support 'required' with this model.",
        "tool_choice 'specified' is incompatible with thinking enabled",
        "Thinking may not be enabled when tool_choice forces tool use.",
        'Supported tool_choice values are "auto" and "none" currently.',
        "litellm.UnsupportedParamsError: x does not support parameters: ['tool_choice'], for model=y",
        "tool_choice param requires --jinja flag",
        "Failed to deserialize the JSON body: tool_choice: expected one of `none`, `auto`, `required` or a tool",
    ],
)
def test_a_refused_tool_choice_does_not_refuse_the_tools_wire5(message: str) -> None:
    assert kind(400, message) is FailureKind.TOOL_CHOICE_UNSUPPORTED


def test_a_refused_value_of_tool_choice_is_known_by_its_parameter_wire5() -> None:
    message = "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'."
    refused = FailureKind.TOOL_CHOICE_UNSUPPORTED
    assert kind(400, message, param="tool_choice", code="invalid_value") is refused
    assert kind(400, message, param="response_format", code="invalid_value") is FailureKind.INVALID_REQUEST


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "Cannot use tools with stream"),
        (400, "streaming is not supported with tools"),
        (400, "Streaming for tool calls is unsupported"),
        (400, "This model does not support function calling and streaming at the same time"),
        (400, "Tools are not supported in streaming mode."),
    ],
)
def test_no_tools_in_streams_is_not_no_tools_wire5(status: int, message: str) -> None:
    assert kind(status, message) is FailureKind.STREAMING_TOOLS_UNSUPPORTED


@pytest.mark.parametrize(
    ("expected", "status", "message"),
    [
        (FailureKind.NATIVE_PARSER_FAILED, 500, "error parsing tool call: raw='ls', err=invalid character 'l'"),
        (
            FailureKind.NATIVE_PARSER_FAILED,
            500,
            "XML syntax error on line 35: element <parameter> closed by </function>",
        ),
        (FailureKind.NATIVE_PARSER_FAILED, 400, "no triggers set for lazy grammar!"),
        (
            FailureKind.MODEL_SCHEMA_ERROR,
            400,
            "tool call validation failed: attempted to call tool 'x' which was not in",
        ),
        (FailureKind.TOO_MANY_TOOLS, 400, "'tools' : maximum number of items is 128"),
        (
            FailureKind.TOO_MANY_TOOLS,
            400,
            "tools[0].function_declarations: [FIELD_INVALID] At most 512 function declarations",
        ),
        (FailureKind.TOO_MANY_TOOLS, 400, "You may not include more than 128 tools in your request."),
        (
            FailureKind.TOOL_NAME_INVALID,
            400,
            "tools.7.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
        ),
        (FailureKind.TOOL_NAME_INVALID, 400, "Invalid 'tools[0].function.name': string does not match pattern."),
        (
            FailureKind.TOOL_NAME_INVALID,
            400,
            "* GenerateContentRequest.tools[0].function_declarations[20].name: Invalid function name. Must start with",
        ),
        (FailureKind.TOOL_NAME_INVALID, 400, "Function name was a b but must be a-z, A-Z, 0-9, or contain underscores"),
        (FailureKind.TOOL_CALL_ID_FORMAT, 400, "Invalid 'messages[2].tool_calls[0].id': string too long."),
        (
            FailureKind.TOOL_CALL_ID_FORMAT,
            400,
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-z]+$'",
        ),
        (FailureKind.TOOL_CALL_ID_FORMAT, 400, "Invalid 'input[2].id': 'a'. Expected an ID that begins with 'fc'."),
        (
            FailureKind.TOOL_CALL_ID_FORMAT,
            400,
            "Value at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must",
        ),
        (
            FailureKind.HISTORY_PAIRING,
            400,
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t",
        ),
        (FailureKind.HISTORY_PAIRING, 400, "Messages with role 'tool' must be a response to a preceding message with"),
        (FailureKind.HISTORY_PAIRING, 400, "messages with role 'tool' must be a response to a preceeding message with"),
        (FailureKind.HISTORY_PAIRING, 400, "An assistant message with 'tool_calls' must be followed by tool messages"),
        (FailureKind.HISTORY_PAIRING, 400, "No tool output found for function call call_U80UaBc1."),
        (FailureKind.HISTORY_PAIRING, 400, "No tool call found for function call output with call_id call_x0jSAN."),
        (FailureKind.HISTORY_PAIRING, 400, "Please ensure that the number of function response parts is equal to the"),
        (FailureKind.HISTORY_PAIRING, 400, "Not the same number of function calls and responses"),
        (FailureKind.HISTORY_PAIRING, 400, "invalid params, tool result's tool id(call_function_1) not found (2013)"),
        (FailureKind.HISTORY_NEEDS_SIGNATURE, 400, "messages.5.content.0: Invalid `signature` in `thinking` block"),
        (FailureKind.HISTORY_NEEDS_SIGNATURE, 400, "Expected `thinking` or `redacted_thinking`, but found `tool_use`."),
        (FailureKind.HISTORY_NEEDS_SIGNATURE, 400, "The reasoning_content in the thinking mode must be passed back."),
        (
            FailureKind.HISTORY_NEEDS_SIGNATURE,
            400,
            "Item 'fc_1' was provided without its required 'reasoning' item: 'rs'",
        ),
        (FailureKind.HISTORY_NEEDS_TOOLS, 400, "Requests which include `tool_use` blocks must define tools."),
        (FailureKind.ROLE_ORDER, 400, 'messages: roles must alternate between "user" and "assistant"'),
        (FailureKind.ROLE_ORDER, 400, "A conversation must alternate between user and assistant roles."),
        (
            FailureKind.ROLE_ORDER,
            400,
            "This model does not support assistant message prefill. The conversation must end",
        ),
        (FailureKind.ROLE_ORDER, 400, "Unexpected role RoleEnum.tool"),
        (
            FailureKind.ROLE_ORDER,
            400,
            "Expected last role User or Tool (or Assistant with prefix True) for serving but",
        ),
        (FailureKind.ROLE_ORDER, 400, "invalid params, chat content has invalid message role: system (2013)"),
        (FailureKind.CONTENT_SHAPE, 400, "Invalid type for 'messages[0].content': expected a string, but got an array"),
        (FailureKind.CONTENT_SHAPE, 422, "messages[0].content: invalid type: sequence, expected a string at line 5"),
        (
            FailureKind.CONTENT_SHAPE,
            400,
            "invalid params, invalid function arguments json string, tool_call_id: (2013)",
        ),
        (
            FailureKind.CONTENT_SHAPE,
            500,
            "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]",
        ),
        (
            FailureKind.CONTENT_SHAPE,
            400,
            "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string",
        ),
        (FailureKind.CONTEXT_LENGTH, 400, "prompt is too long: 202095 tokens > 200000 maximum"),
        (FailureKind.CONTEXT_LENGTH, 400, "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000"),
        (FailureKind.CONTEXT_LENGTH, 500, "the request exceeds the available context size. try increasing the context"),
        (
            FailureKind.CONTEXT_LENGTH,
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed",
        ),
        (FailureKind.CONTEXT_LENGTH, 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096"),
        (
            FailureKind.CONTEXT_LENGTH,
            400,
            "This model's maximum prompt length is 131072 but the request contains 200000",
        ),
        (FailureKind.CONTEXT_LENGTH, 400, "Input is too long for requested model."),
        (FailureKind.AUTH, 400, "API key not valid. Please pass a valid API key."),
        (FailureKind.PERMISSION, 402, "Insufficient Balance"),
        (FailureKind.PERMISSION, 400, "Your credit balance is too low to access the Anthropic API."),
        (FailureKind.NOT_FOUND, 400, "The model `gpt-9` does not exist or you do not have access to it."),
        (FailureKind.NOT_FOUND, 404, "model 'llama9' not found"),
        (FailureKind.TOO_LARGE, 413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000"),
        (FailureKind.RATE_LIMITED, 403, "API rate limit exceeded for installation"),
        (FailureKind.TIMEOUT, 504, "anything"),
        (FailureKind.TIMEOUT, 0, "litellm.Timeout: request timed out."),
        (FailureKind.DISCONNECTED, 0, "peer closed connection without sending complete message body"),
        (FailureKind.DISCONNECTED, 503, "upstream connect error or disconnect/reset before headers. reset reason: x"),
        (FailureKind.TRANSIENT, 529, "Overloaded"),
        (FailureKind.TRANSIENT, 0, "The model is overloaded. Please try again later."),
        (FailureKind.INVALID_REQUEST, 418, "I am a teapot"),
        (FailureKind.OTHER, 501, "Not implemented"),
        (FailureKind.OTHER, 302, "Found"),
        (FailureKind.OTHER, 0, "?"),
    ],
)
def test_a_wording_of_a_real_server_is_understood_wire5(expected: FailureKind, status: int, message: str) -> None:
    assert kind(status, message) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, FailureKind.TRANSIENT),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}, FailureKind.RATE_LIMITED),
        ({"type": "error", "error": {"type": "authentication_error", "message": "No"}}, FailureKind.AUTH),
        ({"type": "error", "error": {"type": "permission_error", "message": "No"}}, FailureKind.PERMISSION),
        ({"type": "error", "error": {"type": "not_found_error", "message": "No"}}, FailureKind.NOT_FOUND),
        ({"type": "error", "error": {"type": "request_too_large", "message": "No"}}, FailureKind.TOO_LARGE),
        ({"type": "error", "error": {"type": "timeout_error", "message": "No"}}, FailureKind.TIMEOUT),
        ({"type": "error", "error": {"type": "api_error", "message": "No"}}, FailureKind.TRANSIENT),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "No"}}, FailureKind.INVALID_REQUEST),
        ({"type": "error", "code": "context_length_exceeded", "message": "No"}, FailureKind.CONTEXT_LENGTH),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "No"}, FailureKind.RATE_LIMITED),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_is_overloaded", "message": "No"}}},
            FailureKind.TRANSIENT,
        ),
        ({"error": {"code": 429, "message": "No", "status": "RESOURCE_EXHAUSTED"}}, FailureKind.RATE_LIMITED),
        ({"error": {"code": 503, "message": "No", "status": "UNAVAILABLE"}}, FailureKind.TRANSIENT),
        ({"error": {"code": 404, "message": "No"}}, FailureKind.NOT_FOUND),
        ({"error": {"code": "401", "message": "No"}}, FailureKind.AUTH),
    ],
)
def test_inside_a_stream_that_began_well_the_code_tells_wire5(body: object, expected: FailureKind) -> None:
    assert read(200, body).kind is expected
    assert read(0, body).kind is expected


def test_a_spent_quota_is_no_rate_limit() -> None:
    message = "You exceeded your current quota, please check your plan and billing details."
    assert kind(429, message, type="insufficient_quota", code="insufficient_quota") is FailureKind.PERMISSION
    assert kind(429, message, status="RESOURCE_EXHAUSTED") is FailureKind.RATE_LIMITED


def test_a_refusal_inside_a_gateway_s_500_is_a_refusal() -> None:
    assert kind(500, "tools.0.type: wrong", type="invalid_request_error") is FailureKind.INVALID_REQUEST
    assert kind(500, "boom", type="server_error") is FailureKind.TRANSIENT


# Texts that speak of tools and say nothing about their support


@pytest.mark.parametrize(
    ("expected", "status", "message"),
    [
        (
            FailureKind.HISTORY_NEEDS_TOOLS,
            400,
            "Bedrock doesn't support tool calling without `tools=` param specified.",
        ),
        (
            FailureKind.INVALID_REQUEST,
            400,
            "Function calling with a response mime type: 'application/json' is unsupported",
        ),
        (FailureKind.INVALID_REQUEST, 400, "json mode cannot be combined with tool/function calling"),
        (FailureKind.INVALID_REQUEST, 400, "Tool use with function calling is unsupported"),
        (FailureKind.INVALID_REQUEST, 400, "Tools are not supported when response_format is set"),
        (FailureKind.INVALID_REQUEST, 400, "The model does not support tools with images"),
        (
            FailureKind.INVALID_REQUEST,
            400,
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
        ),
        (FailureKind.INVALID_REQUEST, 400, "Parallel tool calls are not supported"),
        (FailureKind.INVALID_REQUEST, 400, "Built-in tools are not supported by this endpoint"),
        (FailureKind.INVALID_REQUEST, 400, "This model does not support tools of type web_search_20250305"),
        (FailureKind.INVALID_REQUEST, 400, "tools: Tool names must be unique."),
        (FailureKind.INVALID_REQUEST, 400, "Missing required parameter: 'tools[0].name'."),
        (FailureKind.INVALID_REQUEST, 400, "Invalid schema for function 'f': 'x' is not valid under any of the given"),
        (FailureKind.INVALID_REQUEST, 400, "tools.0.input_schema: JSON schema is invalid. It must match draft 2020-12"),
        (FailureKind.INVALID_REQUEST, 400, '"llama3" does not support thinking'),
        (
            FailureKind.INVALID_REQUEST,
            400,
            "This model does not support image input. Remove the result of tool screenshot",
        ),
        (
            FailureKind.INVALID_REQUEST,
            400,
            "Support for tool use: see our documentation. The temperature is out of range.",
        ),
        (FailureKind.RATE_LIMITED, 429, "llama3 does not support tools at this rate; too many tools per minute"),
        (FailureKind.AUTH, 401, "This key does not support tools."),
        (FailureKind.NOT_FOUND, 404, "model 'tools-not-supported' not found"),
        (FailureKind.TRANSIENT, 503, "tool service busy"),
        (FailureKind.TIMEOUT, 504, "tools took too long"),
        (FailureKind.CONTEXT_LENGTH, 400, "context window exceeded: 128 tools take 90000 tokens. Too many tools?"),
        (FailureKind.ROLE_ORDER, 400, "Unexpected role 'tool' after role 'user'"),
        (FailureKind.TOOLS_UNSUPPORTED, 400, "x does not support tools, images or streaming"),
    ],
)
def test_a_text_that_mentions_tools_is_not_about_their_support_wire5(
    expected: FailureKind, status: int, message: str
) -> None:
    assert kind(status, message) is expected


def test_what_the_model_wrote_is_not_taken_for_the_server_s_words_wire5() -> None:
    said = "This model's maximum context length is 8 tokens. Rate limit exceeded, try again in 5s. Incorrect API key."
    failure = kind(500, f"Failed to parse input at pos 0: {said}"), kind(500, f"error parsing tool call: raw='{said}'")
    assert set(failure) == {FailureKind.NATIVE_PARSER_FAILED}
    assert read_failure(500, f"Failed to parse input at pos 0: {said}".encode()).retry_after is None
    body = {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": said}}
    assert read(400, body).kind is FailureKind.NATIVE_PARSER_FAILED


# Salvage


def test_a_long_generation_is_salvaged_whole() -> None:
    text = '<tool_call>{"content": "' + "x\n" * 100_000 + '"}</tool_call>  '
    assert read(500, {"error": {"message": f"Failed to parse input at pos 0: {text}"}}).salvage == text
    assert read(400, {"error": {"message": "Failed.", "failed_generation": text}}).salvage == text


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Failed to parse input at pos 4209: ", "code": 500}},
        {"error": {"message": "Failed to parse input at pos 12", "code": 500}},
        # Arguments alone, without the tool's name: no dialect could make a call of them.
        {"error": "error parsing tool call: raw='{\"a\": 1}]', err=invalid character ']' after top-level value"},
        {
            "error": {
                "message": "Failed.",
                "code": "tool_use_failed",
                "failed_generation": "Tool use failed: JSON does not",
            }
        },
        {"error": {"message": "Failed.", "code": "tool_use_failed", "failed_generation": ["x"]}},
    ],
)
def test_where_no_text_is_quoted_nothing_is_salvaged(body: object) -> None:
    failure = read(500, body)
    assert failure.kind is FailureKind.NATIVE_PARSER_FAILED
    assert failure.salvage == ""


# Field


@pytest.mark.parametrize(
    ("message", "param", "field"),
    [
        ("No.", "tools[16].function.name", "tools[16].function.name"),
        ("No.", "messages.[3].role", "messages[3].role"),
        ("messages.93: `tool_use` ids were found", None, "messages[93]"),
        ("messages.12.content.0: unexpected", None, "messages[12].content[0]"),
        ("tools.7.custom.name: String should match", None, "tools[7].custom.name"),
        ("Invalid 'tools[0].function.name': string too long", None, "tools[0].function.name"),
        ("Invalid 'tools': array too long", None, "tools"),
        ("ValidationException: messages: text content", None, "messages"),
        ("* GenerateContentRequest.tools[0].name: Invalid", None, "tools[0].name"),
        ("Param Incorrect", "messages[2] assistant content must contain", ""),
        ("Unknown tool. Available tools: a, b", None, ""),
        ("Invalid input: no", "", ""),
        ("No.", None, ""),
    ],
)
def test_the_field_is_the_parameter_or_the_path_in_the_message(message: str, param: str | None, field: str) -> None:
    assert read(400, {"error": {"message": message, "param": param}}).field == field


def test_fastapi_s_place_becomes_the_field() -> None:
    body = {
        "detail": [{"loc": ["body", "messages", 0, "content"], "msg": "Input should be a valid string", "type": "s"}]
    }
    failure = read(422, body)
    assert failure.field == "messages[0].content"
    assert failure.kind is FailureKind.CONTENT_SHAPE


# Waiting


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 1.2s. Visit", 1.2),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 6m0.5s.", 360.5),
        ("Please try again in 1h2m3s", 3723.0),
        ("Please retry after 12s.", 12.0),
        ("Please retry after 2 seconds.", 2.0),
        ("Please retry in 57.96s.", 57.96),
        ("Too many tokens, please wait before trying again.", None),
        ("retry 3 more times", None),
        ("Please try again later", None),
    ],
)
def test_the_pause_is_read_from_the_message(message: str, seconds: float | None) -> None:
    assert read_failure(429, message.encode()).retry_after == pytest.approx(seconds)


@pytest.mark.parametrize(("delay", "seconds"), [("12s", 12.0), ("0.5s", 0.5), ("soon", None), (7, None), (None, None)])
def test_gemini_s_retry_info_is_read(delay: object, seconds: float | None) -> None:
    details = [{"@type": "x.Help"}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    body = [{"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": details}}]
    assert read(429, body).retry_after == seconds
    assert read(429, {"error": "Quota", "retry_after": 3}).retry_after == 3.0
    assert read(429, {"error": "Quota", "retry_after": -3}).retry_after is None


# Our own answer


def test_every_kind_has_a_status_wire5() -> None:
    statuses = {kind: status_of(kind) for kind in FailureKind}
    assert all(400 <= status <= 599 for status in statuses.values())
    assert statuses[FailureKind.AUTH] == 401
    assert statuses[FailureKind.TOOLS_UNSUPPORTED] == 400
    assert statuses[FailureKind.NATIVE_PARSER_FAILED] == 502
    assert statuses[FailureKind.TRANSIENT] == 503


# Whatever comes


def test_a_body_is_read_up_to_its_limit_p7() -> None:
    def found(size: int) -> str:
        start, end = b'{"error":"No.","pad":"', b'"}'
        body = start + b"x" * (size - len(start) - len(end)) + end
        assert len(body) == size
        return read_failure(400, body).message

    assert [found(LONGEST_BODY - 1), found(LONGEST_BODY)] == ["No.", "No."]
    assert found(LONGEST_BODY + 1).startswith('{"error":"No.","pad":"xxx')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "code", "details", "loc", "param", "raw", "retry_after", "status"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.integers(), st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@example(200, b"data:\n\n")
@example(400, b"data")
@example(400, b"[]")
@example(429, b'{"error": "x", "retry_after": 1' + b"0" * 400 + b"}")
@example(429, b'{"error": "x", "code": 1' + b"0" * 4000 + b"}")
@example(400, b'{"error":{"details":{"retryDelay":"1s"}}}')
@example(400, b'{"code": "\xc2\xb2\xc2\xb2\xc2\xb2"}')
def test_any_bytes_give_a_failure_that_says_something_wire5(status: int, body: bytes) -> None:
    for read_as in (body, b"event: error\ndata: " + body):
        failure = read_failure(status, read_as)
        assert failure.message
        assert failure.status == status
        failure.message.encode()


def dumped(body: object) -> bytes:
    return json.dumps(body).encode()


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "one letter": lambda size: b"a" * size,
    "json that never closes": lambda size: b'{"error":' * (size // 9),
    "arrays in arrays": lambda size: b"[" * (size // 2) + b"]" * (size // 2),
    "objects in a long array": lambda size: b"[" + b"{}," * (size // 3) + b"{}]",
    "tags": lambda size: b"<" * size,
    "titles": lambda size: b"<title" * (size // 6),
    "ampersands": lambda size: b"<p>" + b"&" * size,
    "events": lambda size: b"data: 1\n\n" * (size // 9),
    "events with other line ends": lambda size: b"data: 1\r\r" * (size // 9),
    "empty data": lambda size: b"data:\n" * (size // 6),
    "a long message": lambda size: dumped({"error": {"message": "tool_choice " * (size // 12)}}),
    "many models": lambda size: dumped(
        {"error": {"message": "model model: " * (size // 13), "param": "a." * (size // 100)}}
    ),
    "nearly": lambda size: b"does not support tools with " * (size // 28),
    "paths": lambda size: b"tools[0]." * (size // 9),
    "pauses": lambda size: b"try again in 1h1h1h1h" * (size // 21),
    "nested texts": lambda size: dumped({"message": json.dumps({"message": json.dumps({"message": "x" * size})})}),
    "codes": lambda size: dumped({"code": "rate " * (size // 10), "type": "rate " * (size // 11), "message": "x"}),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_body_costs_little_p8(make: Callable[[int], bytes]) -> None:
    """Read whole, and longer than what is read, where it ends in the middle of its JSON."""
    assert len(read_failure(400, make(1_000_000)).message) < 5000
    for size in (LONGEST_BODY // 3, 2 * LONGEST_BODY):
        assert growth(lambda body: read_failure(400, body), make(size), make(2 * size)) < BAR
