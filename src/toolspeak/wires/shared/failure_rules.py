"""The rules that classify an upstream's error by its wording (WIRE-5).

The first matching rule decides, so that the order is part of the data: a wording that contains another one comes
first. The wordings are those of real servers; add each new one to the tests too.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from toolspeak.ir.failure import FailureKind


@dataclass(frozen=True, slots=True)
class FailureRule:
    """Says `kind` of an error that has one of `statuses` and this wording; None: any.

    The wording is looked for in three lines, lower-cased and without quotation marks: codes and types, the parameter,
    the message. Gaps in it are bounded, so that no text takes more than linear time.
    """

    kind: FailureKind
    wording: re.Pattern[str] | None = None
    statuses: Container[int] | None = None

    def fits(self, status: int, text: str) -> bool:
        """Whether this rule matches an error."""
        if self.statuses is not None and status not in self.statuses:
            return False
        return self.wording is None or self.wording.search(text) is not None


def _says(*wordings: str) -> re.Pattern[str]:
    return re.compile("|".join(wordings), re.MULTILINE)


def _code(*codes: str) -> re.Pattern[str]:
    return re.compile(rf"\A(?:[^\n]* )?(?:{'|'.join(codes)})(?:[ \n])")


_TOOLS = r"(?:tools|functions|(?:tool|function)[ _-]?(?:use|usage|calls?|calling))\b"
_CHOICE = r"tool[_ ]?choice"
# "tools are not supported with json mode" says nothing about tools alone.
_UNLESS = r"(?! (?:with (?!this)|together|when|while|alongside|and (?!tool|function)|of |in (?!this)))"
_PATH_REST = r"[\w.\[\]]{0,100}"
_BROKEN: Final = frozenset({0, *range(500, 600)})

RULES: Final = (
    # Whatever else these speak of, no change of the request helps.
    FailureRule(FailureKind.AUTH, statuses=(401,)),
    # Comes with 429, but waiting does not help. The code alone tells: Gemini says the same words where waiting helps.
    FailureRule(FailureKind.PERMISSION, _code("insufficient_quota", "billing_error")),
    FailureRule(FailureKind.RATE_LIMITED, statuses=(429,)),
    # The server complains of its own model. Groq's code is one for both; these messages quote tools and arguments, so
    # they come before all that such a quotation could look like.
    FailureRule(
        FailureKind.MODEL_SCHEMA_ERROR,
        _says("tool call validation failed", "parameters for tool .{1,200} did not match schema"),
    ),
    FailureRule(
        FailureKind.NATIVE_PARSER_FAILED,
        _says(
            "tool_use_failed",
            "output_parse_failed",
            "failed to call a function",
            "failed to parse input at pos",
            "error parsing tool call",
            "tool call parsing failed",
            "xml syntax error on line",  # Ollama, reading a call of Qwen
            "malformed_function_call",
            # llama.cpp could not make a grammar of the tools: without native tools it works.
            "failed to parse grammar",
            "failed to initialize samplers",
            "lazy grammar",
            "unable to generate parser for this template",
        ),
    ),
    # Counts the tokens of the functions, but is not about tools.
    FailureRule(
        FailureKind.CONTEXT_LENGTH,
        _says(
            "context_length_exceeded",
            "exceed_context_size",
            "model_max_prompt_tokens_exceeded",
            "maximum context length",
            "context (?:length|window|size|limit).{0,60}exceed",
            "exceed.{0,60}context (?:length|window|size|limit)",
            "(?:longer|greater) than the (?:models )?(?:maximum )?context",
            "(?:prompt|input) (?:is )?too long",
            "maximum prompt length",
            "(?:input|prompt) (?:token count|length|tokens).{0,60}exceed",
            "too many (?:input |prompt )?tokens(?!,? please wait)",
            "exceeded model token limit",
            "range of input length should be",
            r"tokens \+ max_new_tokens must be",
            "reduce the length of the (?:messages|prompt|input)",
        ),
    ),
    FailureRule(FailureKind.TOO_LARGE, statuses=(413,)),  # Groq's has the code of a rate limit, but never fits into it
    # Codes that mean one thing, for errors inside a stream.
    FailureRule(
        FailureKind.RATE_LIMITED,
        _code("rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "throttlingexception"),
    ),
    FailureRule(
        FailureKind.AUTH, _code("authentication_error", "invalid_api_key", "api_key_invalid", "unauthenticated")
    ),
    FailureRule(FailureKind.TRANSIENT, _code("overloaded_error", "overloaded", "server_is_overloaded", "unavailable")),
    # Before "no tools", whose words it contains.
    FailureRule(
        FailureKind.STREAMING_TOOLS_UNSUPPORTED,
        _says(
            rf"(?:not|nt) support {_TOOLS} (?:in|with|while|when|and|during)(?: using)? (?:the )?stream",
            "cannot use tools with stream",
            "unsupported_streaming_tools",
            r"stream(?:ing)? (?:is )?not supported (?:with|for|when using) (?:tool|function)",
            rf"stream(?:ing)? (?:with|for|of) {_TOOLS} (?:is |are )?(?:not |un)support",
            rf"{_TOOLS} (?:is|are) not supported (?:in|with|when|while|for) stream",
        ),
    ),
    # Before "no tools" too: "doesn't support tool calling without `tools=` param specified" (LiteLLM).
    FailureRule(
        FailureKind.HISTORY_NEEDS_TOOLS,
        _says(
            "toolconfig field must be defined",
            "requested tool does not exist",
            "must define (?:any )?tools",
            "(?:without|expects the) tools= param",
        ),
    ),
    # Before "no tools": "does not support this tool_choice" leaves the tools themselves alone.
    FailureRule(
        FailureKind.TOOL_CHOICE_UNSUPPORTED,
        _says(
            r"support (?:(?:this|the|that|provided|given|any|a|forced|named|required|specific|setting|parameter|field"
            rf"|value|of|for) ){{0,5}}(?:toolconfig\.)?{_CHOICE}",
            rf"{_CHOICE}[^.\n]{{0,60}}(?:not|nt|un) ?(?:be )?support(?:ed)?(?! (?:tool|function))",
            rf"{_CHOICE}[^.\n]{{0,60}}incompatible",
            rf"{_CHOICE} forces tool use",  # Anthropic, with thinking
            rf"supported {_CHOICE} values",
            "invalid_tool_choice",
            "tool_choice: expected one of",
            "tool_choice param requires",
            "unsupported param(?:eter)?: tool_choice",
            r"support parameters: [\[{(]tool_choice",
            r"forc(?:ed|ing) (?:tool|function)[^.\n]{0,60}not supported",
            r"\A[^\n]*(?:unsupported|invalid)_(?:value|parameter)[^\n]*\ntool_choice\n",
        ),
    ),
    FailureRule(
        FailureKind.TOOLS_UNSUPPORTED,
        _says(
            rf"(?:not|nt) support (?:the )?(?:use of |native |any )?{_TOOLS}{_UNLESS}",
            # The subject is plain tools: errors about parallel, custom or built-in tools mean something else.
            rf"(?:^|[^\w\s] ?|\b(?:the|native|that) ){_TOOLS} (?:is|are) (?:currently )?"
            rf"(?:not (?:yet |currently )?(?:supported|enabled|available)|unsupported){_UNLESS}",
            "no endpoints found that support tool use",
            "not supported for (?:json mode/)?function calling",
            r"unsupported param(?:eter)?s?: tools\b",
            r"(?:not|nt) support parameters?:? [^\n]{0,40}\btools\b",
            "(?:not|nt) support the toolconfig field",
            "tools param requires",
            "--enable-auto-tool-choice",
            "--tool-call-parser",
            r"unrecognized request arguments? supplied: [^\n]{0,60}\btools\b",
            r"\ntools\nextra (?:inputs|fields)",
        ),
    ),
    FailureRule(
        FailureKind.TOO_MANY_TOOLS,
        _says(
            r"\btools ?: (?:array too long|maximum number of items|list should have at most)",
            r"(?:at most|more than|maximum of) \d{1,6} (?:tools|functions|function declarations)",
            "number of (?:tools|functions|function declarations) (?:exceeds|is greater)",
            "too many (?:tools|functions|function declarations)(?! called| per)",
            r"toolconfig\.tools failed to satisfy constraint: member must have length less",
        ),
    ),
    FailureRule(
        FailureKind.TOOL_NAME_INVALID,
        _says(
            rf"(?:tools|functions|tool_calls){_PATH_REST}\bname: (?:\[field_invalid\] )?(?:string|invalid)",
            "invalid (?:function|tool) name",
            "(?:function|tool) name was .{1,200} but must",
            "(?:function|tool) name (?:is invalid|must|should|contains|cannot|is too long|exceeds)",
            r"toolspec\.name failed to satisfy",
        ),
    ),
    FailureRule(
        FailureKind.TOOL_CALL_ID_FORMAT,
        _says(
            "tool call id was .{1,200} but must",
            rf"(?:tool_(?:calls?|use|result)|call){_PATH_REST}[._]id: (?:string|invalid)",
            "expected an id that begins with",
            "tooluseid failed to satisfy",
        ),
    ),
    FailureRule(
        FailureKind.HISTORY_NEEDS_SIGNATURE,
        _says(
            "thought_?signature",
            "invalid signature in thinking",
            r"thinking\.signature",
            "expected thinking or redacted_thinking",
            "reasoning_content.{0,80}(?:passed back|missing|required)",
            "without its required (?:reasoning|following) item",
        ),
    ),
    FailureRule(
        FailureKind.HISTORY_PAIRING,
        _says(
            "tool_use ids (?:were found without|must be unique)",
            "unexpected tool_use_id",
            "must be a response to a prec[a-z]{1,8} message",
            "must be followed by tool messages",
            "did not have response messages",
            "no tool (?:output|call) found for",
            "number of function response parts",
            "function response turn comes immediately after",
            "not the same number of function calls and responses",
            "tool results tool id",
            "tool[_ ]call[_ ]id .{0,80}not found",
            "unexpected tool call id",
            "(?:expected|number of) toolresult blocks",
        ),
    ),
    FailureRule(
        FailureKind.ROLE_ORDER,
        _says(
            "roles must alternate",
            "must alternate between",
            "unexpected role",
            "invalid_request_message_order",
            "expected last role",
            "must (?:start|end) with a user message",
            "assistant message prefill",
            "(?:first|last) message must (?:be|use|have)",
            "function call turn comes immediately after",
            "system message must be at",
            "system role (?:is )?not supported",
            "only user and assistant roles",
            r"invalid (?:message )?role\b",
        ),
    ),
    FailureRule(
        FailureKind.CONTENT_SHAPE,
        _says(
            "content blocks must (?:be non-empty|contain non-whitespace)",
            "must have non-empty content",
            "invalid message content type",
            "content must (?:be (?:a )?(?:string|non-empty|array|list|text)|not be (?:empty|null)|contain)",
            "content (?:field )?(?:cannot|must not|can not) be (?:empty|null|blank)",
            r"content field in the message object at [\w.]{1,40} is empty",
            "text field in the contentblock",
            "invalid type for messages",
            "invalid value for content",
            rf"messages{_PATH_REST}content{_PATH_REST}: (?:invalid type|expected)",
            rf"^messages{_PATH_REST}content{_PATH_REST}\n(?:input should be|str type expected|field required)",
            r"cannot unmarshal \w{1,20} into go struct field [\w.]{1,100}(?:content|arguments)\b",
            "failed to parse messages",
            # Arguments in the history that are not JSON: MiniMax, llama.cpp (with 500, yet for good).
            "function arguments json string",
            "failed to parse tool call arguments",
        ),
    ),
    FailureRule(
        FailureKind.AUTH,
        _says("(?:incorrect|invalid|missing) (?:x-)?api[ -]key", "api key not valid", "no auth credentials found"),
    ),
    FailureRule(
        FailureKind.PERMISSION, _says("credit balance is too low", "insufficient (?:credits|balance)"), (0, 400)
    ),
    FailureRule(FailureKind.RATE_LIMITED, _says("rate limit (?:exceeded|reached)", "too many requests")),
    FailureRule(FailureKind.PERMISSION, _code("permission_error", "permission_denied", "accessdeniedexception")),
    FailureRule(FailureKind.PERMISSION, statuses=(402, 403)),
    FailureRule(FailureKind.TOO_LARGE, _says("request_too_large", "(?:payload|entity|body) (?:is )?too large")),
    FailureRule(FailureKind.NOT_FOUND, _code("model_not_found", "not_found_error", "not_found")),
    FailureRule(FailureKind.NOT_FOUND, _says(r"\bmodel:?(?: \S{1,200})?(?: was| is)? (?:not found|does not exist)")),
    FailureRule(FailureKind.NOT_FOUND, statuses=(404, 410)),
    FailureRule(FailureKind.TIMEOUT, statuses=(408, 504, 522, 524)),
    FailureRule(
        FailureKind.TIMEOUT, _says("timed out", "gateway time-?out", "deadline.exceeded", "timeout_error"), _BROKEN
    ),
    FailureRule(
        FailureKind.DISCONNECTED,
        _says(
            "connection (?:was )?(?:reset|closed|aborted)",
            "reset before headers",
            "closed connection",
            "server disconnected",
            "socket hang up",
            "econnreset",
        ),
        _BROKEN,
    ),
    FailureRule(
        FailureKind.RATE_LIMITED,
        _says("rate.limit", "too many tokens", "resource (?:has been )?exhausted", "throttling"),
        _BROKEN,
    ),
    FailureRule(
        FailureKind.TRANSIENT,
        _says(
            "overloaded",
            "unavailable",
            "try again later",
            "internal (?:server )?error",
            "bad gateway",
            "server_error",
            "api_error",
        ),
        (0,),
    ),
    # A gateway's 500 around a refusal: trying the same again does not help.
    FailureRule(
        FailureKind.INVALID_REQUEST,
        _says("invalid_request", "invalid_argument", "invalid_prompt", "bad_?request", "validationexception"),
        _BROKEN,
    ),
    FailureRule(FailureKind.TRANSIENT, statuses=frozenset({409, 425, 499, *range(500, 600)}) - {501, 505}),
    FailureRule(FailureKind.INVALID_REQUEST, statuses=range(400, 500)),
)


def first_rule(status: int, text: str) -> FailureRule | None:
    """Return the rule that decides, or None if no rule fits."""
    return next((rule for rule in RULES if rule.fits(status, text)), None)
