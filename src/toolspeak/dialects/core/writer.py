r"""Writes a dialect: the contract in the prompt, calls, and tool results.

A call's arguments are written as they came in, to the character, if they are one line of strict JSON: numbers keep
their digits, and the prompt's prefix stays the same over turns (INL-8). Otherwise they are repaired and written anew.
Arguments nested deeper than 60 levels exceed our own readers once a call's braces surround them.

The dialects with tags write arguments as plain texts where the reader would read the same value back: its lexer decides
whether a text contains a tag that matters, and the tool's schema decides which type the text would become. In doubt, a
dialect writes all arguments of the call as JSON instead.

The contract depends only on the tools, never on a clock, on chance or on the conversation (INL-8). Its example of a
call has placeholders in brackets, which no tool's name may contain, so our own reader does not take it for a call.
Markers in the tools' own words are written as JSON escapes (SAFE-2).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.dialects.core.escapes import broken, escaped_json
from toolspeak.dialects.core.grammar import OpenerPosition
from toolspeak.dialects.core.tag_form import TagRole, tag_role
from toolspeak.dialects.core.tags import Tag, XmlTags
from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Result, part_text
from toolspeak.ir.tool import Tool
from toolspeak.text.coerce import typed
from toolspeak.text.repair import repair
from toolspeak.text.strict import dump, parse, without_halves, without_surrogates
from toolspeak.toolset.toolset import ToolSet


@dataclass(frozen=True)
class Tags:
    """Tags of their own for the function and for each parameter: texts as they are, all else as JSON.

    Each is a triple: the text before the name, the text after it, and the text at the end.
    """

    function: tuple[str, str, str]
    parameter: tuple[str, str, str]


@dataclass(frozen=True)
class Shape:
    r"""The shape of calls as data: the writer writes calls by it, and constrained decoding is told the same.

    Each call is a JSON object with the tool's name and arguments, unless there are tags for them:

        Shape("<tool_call>\n", "\n</tool_call>", mark="<tool_call>")

        begin("get_weather")      <tool_call>⏎{"name": "get_weather", "arguments":␣
        (the arguments)           {"city": "Oslo"}
        end                       }⏎</tool_call>
    """

    before: str = ""
    """The text before each call."""
    after: str = ""
    """The text after each call."""
    name: str = "name"
    arguments: str = "arguments"
    separator: str = "\n"
    """The text between two calls."""
    around: tuple[str, str] = ("", "")
    """The text around all calls; if it is not empty, the answer consists of that and nothing else."""
    thought: str = ""
    """The key of a thought with which a constrained answer begins, inside `around`."""
    mark: str = ""
    """The beginning of a call that free text must not have: a beginning of `before`, or of the object's own."""
    where: OpenerPosition = OpenerPosition.ANYWHERE
    """Where the mark counts."""
    tags: Tags | None = None
    """Tags around the parameters, if they are not in a JSON object."""

    @property
    def is_whole(self) -> bool:
        """Return whether the calls are the whole answer, so that there is no free text."""
        return bool(self.around[0])

    @property
    def thinking(self) -> str:
        """Return the text before the thought."""
        return f'{{"{self.thought}": '

    @property
    def key(self) -> str:
        """Return the key of the list of calls, if an object is around it."""
        return self.around[0].split('"')[1] if self.is_whole else ""

    @property
    def opening(self) -> str:
        """Return the text before the tool's name."""
        return self.before + (self.tags.function[0] if self.tags else f'{{"{self.name}": ')

    def named(self, name: str) -> str:
        """Return the name, and the text between it and the arguments."""
        return f"{name}{self.tags.function[1]}" if self.tags else f'{dump(name)}, "{self.arguments}": '

    def begin(self, name: str) -> str:
        """Return the text before the arguments."""
        return self.opening + self.named(name)

    @property
    def end(self) -> str:
        """Return the text after the arguments."""
        return (self.tags.function[2] if self.tags else "}") + self.after


@dataclass(frozen=True)
class Writer:
    """Writes one dialect: teaches the tools, writes calls and results, and stops the model before a forged result."""

    teach: Callable[[ToolSet], str]
    """Returns the contract for the prompt: the tools, how to call them, when not to."""
    write_calls: Callable[[Sequence[Call], ToolSet], str]
    """Returns calls exactly as this dialect's reader reads them."""
    write_result: Callable[[Result], str]
    stop: tuple[str, ...] = ()
    """Stop sequences: generation must stop before a tool result, which only toolspeak may write."""
    shape: Shape | None = None
    """How constrained decoding can describe calls; None if it cannot (CHK-8)."""


ERROR: Final = "Error: "
BARE: Final = Shape()
UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""Control characters, carriage returns too: not every server lets them pass, but JSON has escapes for them."""

_SPREAD = re.compile(r"[\r\n]|[ \t]{64}")  # over lines, or over more blanks than a reader has patience for


def arguments_of(call: Call) -> JsonObject:
    """Return a call's arguments; text that cannot be repaired to an object counts as none."""
    try:
        value = repair(without_halves(call.arguments), closed=True).value
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}


def arguments_line(call: Call) -> str:
    """Return a call's arguments as one line of JSON."""
    text = call.arguments.strip()
    if not _SPREAD.search(text) and _is_object(text):
        return text
    return dump(arguments_of(call))


def _is_object(text: str) -> bool:
    try:
        return isinstance(parse(text), dict)
    except BadJson:
        return False


def call_json(call: Call) -> str:
    """Write a call as one JSON object."""
    return BARE.begin(call.name) + arguments_line(call) + BARE.end


@dataclass(frozen=True)
class JsonCalls:
    """Writes calls as JSON objects in their shape."""

    shape: Shape

    def __call__(self, calls: Sequence[Call], tools: ToolSet) -> str:
        """Write the calls; their types need no schema."""
        del tools
        shape, (before, after) = self.shape, self.shape.around
        written = (shape.begin(call.name) + arguments_line(call) + shape.end for call in calls)
        return before + shape.separator.join(written) + after


def result_as_text(result: Result, error: str = ERROR) -> str:
    """Return a tool's answer as text, with `error` before it if it is one."""
    parts = map(part_text, result.content)
    return without_surrogates((error if result.is_error else "") + "\n".join(parts))


def result_as_json(result: Result, key: str = "content") -> str:
    """Write a tool's answer as one JSON object: the tool's name, and the answer under `key` or `error`."""
    named: JsonObject = {"name": result.name} if result.name else {}
    return dump({**named, "error" if result.is_error else key: result_as_text(result, error="")})


def break_markers(text: str, *markers: str) -> str:
    """Break the markers of a frame inside its text with a backslash, so that only ours count."""
    for marker in markers:
        text = text.replace(marker, broken(marker))
    return text


def between(opener: str, text: str, closer: str) -> str:
    """Frame a text."""
    return opener + break_markers(text, opener.strip(), closer.strip()) + closer


def between_json(opener: str, json: str, closer: str) -> str:
    """Frame JSON; markers in its strings are broken by an escape, which changes no value."""
    for marker in (opener.strip(), closer.strip()):
        json = json.replace(marker, f"\\u{ord(marker[0]):04x}{marker[1:]}")
    return opener + json + closer


def tagged_result(tag: str, result: Result) -> str:
    """Frame a tool's answer in a tag that names the tool."""
    named = f' name="{result.name}"' if result.name else ""
    text = break_markers(result_as_text(result), f"<{tag}", f"</{tag}")
    return f"<{tag}{named}>\n{text}\n</{tag}>"


def ipython_result(result: Result) -> str:
    """Frame a tool's answer as Llama's `ipython` turns do, but in tags that are not special tokens."""
    return between_json("<ipython>\n", result_as_json(result, "output"), "\n</ipython>")


CDATA: Final = "<![CDATA["

_TAGS = XmlTags()
_KEY = re.compile(r"[\w.\-]{1,128}")


def texts_of(call: Call, tools: ToolSet, is_data: Callable[[str], bool]) -> list[tuple[str, str]] | None:
    """Return keys and values as plain texts; None if one would not be read back as it is."""
    texts: list[tuple[str, str]] = []
    for key, value in arguments_of(call).items():
        text = value if isinstance(value, str) else dump(value)
        if not _KEY.fullmatch(key) or UNSEEN.search(text) or not is_data(text):
            return None
        if not _is_typed_back(call.name, key, text, value, tools):
            return None
        texts.append((key, text))
    return texts


def _is_typed_back(name: str, key: str, text: str, value: Json, tools: ToolSet) -> bool:
    """Return whether the schema makes of the text what it was; a tool that is gone has no schema."""
    read = tools.typed(name, key, text) if name in tools.names else typed(text, {})
    return read.value == text if isinstance(value, str) else dump(read.value) == text


def has_no_roles(text: str, call: Call, tools: ToolSet) -> bool:
    """Return whether no tag in the text means anything to a reader of tagged parameters."""
    known = tools.properties(call.name) if call.name in tools.names else frozenset[str]()
    return all(tag_role(tag) is TagRole.OTHER and tag.name not in known for tag in tags_in(text))


def tags_in(text: str) -> Iterator[Tag]:
    """Find all tags in a text; none can hold another, so this is one pass."""
    at = text.find("<")
    while at >= 0:
        tag = _TAGS.at(text, at, final=True)
        if tag:
            yield tag
        at = text.find("<", at + 1)


JSON_EXAMPLE: Final = '{"name": "<tool name>", "arguments": {"<argument>": "<value>"}}'
LISTED: Final = "Each line is one tool as JSON: its name, what it does, and the JSON Schema of its arguments."
FILL_IN: Final = (
    "What stands in brackets is yours to fill in, without the brackets: "
    "the name of a tool from the list, and arguments that fit its schema."
)
RAW_TEXTS: Final = "Write texts as they are, without quotes or escapes; write lists and objects as JSON."
OTHERWISE: Final = "Call a tool only where it helps. Otherwise answer normally, without any call."
WAIT: Final = "After your calls, stop and wait: the results come in the next message. Never write a result yourself."


@dataclass(frozen=True)
class Contract:
    """How to call tools in one dialect. Called with the tools, it gives the text for the prompt."""

    how: str
    example: str
    """One call, with placeholders in brackets."""
    rules: tuple[str, ...]
    """Rules of this dialect, such as how several calls are written."""
    manners: tuple[str, ...] = (OTHERWISE, WAIT)
    """When to call, and when to stop."""
    around: tuple[str, str] = ("", "")
    """The text before and after the list of tools."""

    def __call__(self, tools: ToolSet) -> str:
        """Write the contract."""
        before, after = self.around
        rules = "\n".join(f"- {rule}" for rule in (FILL_IN, *self.rules, *self.manners))
        return (
            f"# Tools\n\nYou can call the tools below. {LISTED}\n\n{before}{tool_lines(tools)}{after}\n\n"
            f"# How to call a tool\n\n{self.how}\n\n{self.example}\n\n{rules}"
        )


IN_TAGS: Final = ("<tools>\n", "\n</tools>")
"""Where Hermes, Qwen and GLM have learned to look for tools."""


def tool_lines(tools: ToolSet) -> str:
    """Write each tool as one line of JSON, in which only JSON is markup."""
    return escaped_json("\n".join(_described(tools.tool(name), tools.schema_text(name)) for name in tools.names))


def _described(tool: Tool, schema: str) -> str:
    """Keep the order of the schema's keys, and leave out what is empty."""
    named = dump({"name": tool.name, "description": tool.description} if tool.description else {"name": tool.name})
    return f'{named[:-1]},"parameters":{schema}}}' if tool.parameters else named
