r"""Writes our dialects as `response_template`s, which transformers, vLLM and SGLang read from `tokenizer_config.json`.

A row below says what the grammar does not: which of the forms that a dialect reads its models write. Not every dialect
fits: a template has no place for a condition such as "at the start of a line" or "only for a known tool", and no parser
for Python.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import OpenerPosition, ReasoningMarks, Wrapper
from toolspeak.dialects.core.markup import ENDS_OF_TURN, RECOVERY
from toolspeak.dialects.core.python_form import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects.response_template import CALLS
from toolspeak.ir.json import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Unfit:
    """A dialect that no template can describe."""

    reason: str


@dataclass(frozen=True)
class _Row:
    """How the models of a dialect write calls."""

    calls: Callable[[Wrapper], JsonObject]
    """Returns the field of calls; its patterns are those of the spec, regular expressions of Python's `regex`."""
    thinks: str = "<think>"
    """The opener of the reasoning, one of the grammar's."""
    reasoning: tuple[ReasoningMarks, ...] = ()
    """Its marks, where the grammar reads them in another way."""
    content: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The marks of the text, if it has any."""


def export(dialect: Dialect, start_anchor: str) -> JsonObject | Unfit:
    r"""Return the template of a dialect, or why there is none.

    `start_anchor` is the end of the model's generation prompt, such as `<|im_start|>assistant\n`, which readers of a
    template search the prompt for. A dialect is not bound to one chat template, so it must be given.
    """
    row = _ROWS.get(dialect.name)
    wrapper = next(iter(dialect.grammar.wrappers), None)
    if row is None or wrapper is None:
        return Unfit(_reason(dialect, wrapper))
    marks = next(one for one in (*row.reasoning, *dialect.grammar.reasoning) if one.opener == row.thinks)
    return {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor": start_anchor,
        # vLLM 0.32 and SGLang 0.5.23 know these three names and no `join`: a text after calls replaces the one before.
        "fields": {
            "thinking": {"open": row.thinks, "close": list(marks.closers), "content": "text"},
            CALLS: row.calls(wrapper),
            "content": {**(row.content or {"close": [*_ENDS]}), "content": "text"},
        },
    }


def _reason(dialect: Dialect, wrapper: Wrapper | None) -> str:
    if dialect.name in _REASONS:
        return _REASONS[dialect.name]
    if wrapper is None or wrapper in RECOVERY.wrappers or not wrapper.openers:
        return "its calls have no opening mark: only their place in the message tells them from text"
    if {PYTHON_CALL, PYTHON_LIST} & {*wrapper.forms}:
        return "its calls are Python, and a template has no parser for that"
    if wrapper.where is not OpenerPosition.ANYWHERE:
        return "its opening mark is an ordinary word, which counts only at the start of a line or of the message"
    if not wrapper.sure:
        return "its opening mark counts only before the name of a known tool"
    return "toolspeak has no template for it"


# ---------------------------------------------------------------- calls


def _any(literals: tuple[str, ...]) -> str:
    escaped = "|".join(map(re.escape, literals))
    return escaped if len(literals) == 1 else f"(?:{escaped})"


def _calls(opens: str, closes: str, content: str, function: Json, **more: Json) -> JsonObject:
    # The blanks around calls belong to them, so that they are no text.
    calls: JsonObject = {"open_pattern": rf"\s*{opens}\s*", "close_pattern": rf"\s*{closes}\s*", "content": content}
    if not more.get("transform_each"):
        calls["repeats"] = True
    return {**calls, **more, "transform": {"type": "function", "function": function}}


_CAPTURED: Final[Json] = {"name": "{name}", "arguments": "{content}"}


def _object(name: str = "name", arguments: str = "arguments", opens: str = "") -> Callable[[Wrapper], JsonObject]:
    """Describe one JSON object for each call."""
    is_plain = (name, arguments) == ("name", "arguments")
    function: Json = (
        "{content}" if is_plain else {"name": f"{{content.{name}}}", "arguments": f"{{content.{arguments}}}"}
    )

    def calls(wrapper: Wrapper) -> JsonObject:
        marks, ends = opens or _any(wrapper.openers), _any(wrapper.closers)
        return _calls(f"```{marks}\n" if wrapper.fence else marks, ends, "json", function)

    return calls


def _list(name: str = "name", arguments: str = "arguments", opens: str = "") -> Callable[[Wrapper], JsonObject]:
    """Describe one JSON list with all calls."""
    function: Json = {"name": f"{{{name}}}", "arguments": f"{{{arguments}}}"}
    return lambda wrapper: _calls(
        opens or _any(wrapper.openers), _any(wrapper.closers), "json", function, transform_each=True
    )


def _named(opens: str, closes: str) -> Callable[[Wrapper], JsonObject]:
    """Describe the name in the opening mark, then the arguments as JSON."""
    return lambda _: _calls(opens, closes, "json", _CAPTURED)


def _key_values(quote: str) -> Callable[[Wrapper], JsonObject]:
    """Describe `call:name{key:…}` with quote tokens around strings."""
    args: Json = {"unquoted_keys": True, "string_delims": [[quote, quote]]}
    return lambda wrapper: _calls(
        rf"{_any(wrapper.openers)}call:(?P<name>[^\s{{}}<>]+)",
        _any(wrapper.closers),
        "json",
        _CAPTURED,
        content_args=args,
    )


def _tags(opens: str, closes: str, tag: str) -> Callable[[Wrapper], JsonObject]:
    """Describe the name in the opening mark, then a tag for each argument; values are typed by the tool's schema."""
    return lambda _: _calls(opens, closes, "xml-inline", _CAPTURED, content_args={"tag_pattern": tag})


def _functions(opener: str, closer: str) -> Callable[[Wrapper], JsonObject]:
    return _tags(
        rf"{opener}\s*<function=(?P<name>[^>\n]+)>",
        rf"</function>\s*{closer}",
        # without the one newline on each side that the chat template adds
        r"<parameter=(?P<key>[^>\n]+)>\n?(?P<value>.*?)\n?</parameter>",
    )


def _invokes(wrapper: str, prefix: str = "", attribute: str = "") -> Callable[[Wrapper], JsonObject]:
    return _tags(
        rf'(?:<{wrapper}>\s*)?<{prefix}invoke name="(?P<name>[^"]+)">',
        rf"</{prefix}invoke>(?:\s*</{wrapper}>)?",
        rf'<{prefix}parameter name="(?P<key>[^"]+)"{attribute}>(?P<value>.*?)</{prefix}parameter>',
    )


_ANALYSIS: Final = ReasoningMarks("<|channel|>analysis<|message|>", ("<|end|>",))
_ENDS: Final = tuple(mark for mark in ENDS_OF_TURN if mark.startswith("<|"))  # the others may be text
_PAIR: Final = r"<arg_key>(?P<key>[^<]+)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"

_ROWS: Final[Mapping[str, _Row]] = {
    "cohere": _Row(
        _list("tool_name", "parameters"),
        thinks="<|START_THINKING|>",
        content={"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>"},
    ),
    # The form of V3.1; V3 writes a fence after `function<｜tool▁sep｜>`.
    "deepseek": _Row(
        _named(
            r"(?:<｜tool▁calls▁begin｜>\s*)?<｜tool▁call▁begin｜>(?P<name>[^\s<]+)<｜tool▁sep｜>",
            r"<｜tool▁call▁end｜>(?:\s*<｜tool▁calls▁end｜>)?",
        )
    ),
    "dots": _Row(_invokes("dots_function_call")),
    "dsml": _Row(_invokes("｜DSML｜(?:tool_calls|function_calls)", "｜DSML｜", r'(?: string="\w+")?')),
    "fenced": _Row(_object()),
    "function_gemma": _Row(_key_values("<escape>")),
    "gemma": _Row(_key_values('<|"|>'), thinks="<|channel>thought"),
    "gigachat": _Row(_object()),
    "glm": _Row(_tags(r"<tool_call>\s*(?P<name>[^\s<{]+)", "</tool_call>", _PAIR)),
    "granite": _Row(_list()),
    "harmony": _Row(
        _named(
            r"(?:<\|start\|>assistant)?<\|channel\|>commentary to=functions\.(?P<name>[^\s<]+)"
            r"\s*(?:<\|constrain\|>)?json<\|message\|>",
            r"<\|call\|>",
        ),
        thinks=_ANALYSIS.opener,
        reasoning=(_ANALYSIS,),
        content={
            "open_pattern": r"(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>",
            "close": ["<|return|>", "<|end|>"],
        },
    ),
    "hermes": _Row(_object()),
    "hy3": _Row(
        _tags(
            r"(?:<tool_calls>\s*)?<tool_call>\s*(?P<name>[^\s<{]+)\s*(?:<tool_sep>)?",
            r"</tool_call>(?:\s*</tool_calls>)?",
            _PAIR,
        )
    ),
    "inkling": _Row(_object("name", "args", r"(?:<\|message_model\|>)?<\|content_invoke_tool_json\|>")),
    "internlm": _Row(_object("name", "parameters", r"(?:<\|action_start\|>\s*)?<\|plugin\|>")),
    "invoke_xml": _Row(_invokes("function_calls")),
    "jamba": _Row(_list(opens="<tool_calls>")),
    "json_action": _Row(_object("tool", "parameters")),
    "kimi": _Row(
        _named(
            r"(?:<\|tool_calls_section_begin\|>\s*)?<\|tool_call_begin\|>\s*functions\.(?P<name>[^\s<>{}]+):\d+\s*"
            r"<\|tool_call_argument_begin\|>",
            r"<\|tool_call_end\|>(?:\s*<\|tool_calls_section_end\|>)?",
        )
    ),
    "kimi_k3": _Row(
        _tags(
            r'(?:<\|open\|>tools<\|sep\|>\s*)?<\|open\|>call tool="(?P<name>[^"]+)" index="\d+"<\|sep\|>',
            r"<\|close\|>call<\|sep\|>(?:\s*<\|close\|>tools<\|sep\|>)?",
            r'<\|open\|>argument key="(?P<key>[^"]+)" type="\w+"<\|sep\|>(?P<value>.*?)<\|close\|>argument<\|sep\|>',
        ),
        thinks="<|open|>think<|sep|>",
        content={"open": "<|open|>response<|sep|>", "close": "<|close|>response<|sep|>"},
    ),
    "lmstudio": _Row(_object()),
    "longcat": _Row(_object(), thinks="<longcat_think>"),
    "minimax": _Row(_invokes("minimax:tool_call")),  # M2; M3 writes parameters as elements
    "mistral": _Row(
        _named(
            r"\[TOOL_CALLS\]\s*(?P<name>[\w.\-/:]+)(?:\[CALL_ID\]\w+)?\[ARGS\]",
            r"(?:</s>|(?=\[TOOL_CALLS\]))",
        ),
        thinks="[THINK]",
    ),
    "nemotron": _Row(_list()),
    "phi": _Row(_list()),
    "qwen_star": _Row(_named(r"✿FUNCTION✿:\s*(?P<name>\S+)\n✿ARGS✿:", "(?=✿)")),
    "qwen_xml": _Row(_functions("<tool_call>", "</tool_call>")),
    "seed": _Row(_functions("<seed:tool_call>", "</seed:tool_call>"), thinks="<seed:think>"),
    "solar": _Row(
        _named(
            r"(?:<\|begin\|>assistant)?(?:<\|tool_calls\|>)?<\|tool_call:begin\|>[^\s<]*<\|tool_call:name\|>"
            r"(?P<name>[^\s<]+)<\|tool_call:args\|>",
            r"<\|tool_call:end\|>(?:\s*<\|calls\|>)?",
        ),
        thinks="<|think|>",
    ),
    "step3": _Row(
        _tags(
            r"(?:<｜tool_calls_begin｜>\s*)?<｜tool_call_begin｜>\s*function<｜tool_sep｜>\s*"
            r'<steptml:invoke name="(?P<name>[^"]+)">',
            r"</steptml:invoke>\s*<｜tool_call_end｜>(?:\s*<｜tool_calls_end｜>)?",
            r'<steptml:parameter name="(?P<key>[^"]+)">(?P<value>.*?)</steptml:parameter>',
        )
    ),
    "tag_json": _Row(_object()),
}

_REASONS: Final = {
    "any": "it is many dialects at once",
    "apertus": "the tool's name is a key of the JSON, and a transform cannot turn a key into a value",
    "functionary": "its opening mark `>>>` is also Python's prompt, and counts only before a name and JSON",
    "llama_json": "its models write the JSON bare: only its place in the message tells it from text",
    "minimax_m1": "its block holds several JSON objects, one on each line, and a template parses one value",
    "muse": "a header names the tool before the block of calls, and a template has no place for it",
}
