"""Files that contain the markup of the calls that write them, for every dialect with tagged values (P2).

A model writes values raw: nothing in a file is escaped. So this family uses no writer of toolspeak: `FORMS` renders
calls as the models' own templates do, and `content` makes files out of closers, openers, whole calls, CDATA sections,
fences, HTML and blank lines at both ends. Even seeds may shape the readers; odd seeds only test them (`proofs`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from toolspeak.ir.json import JsonObject
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet


def _tool(name: str, *keys: str) -> Tool:
    properties: JsonObject = {key: {"type": "string"} for key in keys}
    return Tool(name, "", {"type": "object", "properties": properties, "required": [keys[0]]})


TOOLS: Final = ToolSet.of(
    [_tool("write_file", "path", "content"), _tool("edit", "path", "old", "new"), _tool("bash", "command")]
)
Texts = Mapping[str, str]


@dataclass(frozen=True)
class Form:
    """How models of one dialect write calls: the markup around all, around each, and around each value."""

    dialect: str
    around: tuple[str, str]
    call: tuple[str, str, str]
    """Before the name, after it, after the values."""
    value: tuple[str, str, str]
    """Before the key, after it, after the value."""
    each: bool = False
    """The markup around all is around each call."""

    def write(self, calls: Sequence[tuple[str, Texts]]) -> str:
        """Write calls as a model does."""
        written = [self._call(name, texts) for name, texts in calls]
        before, after = self.around
        return "\n".join(before + one + after for one in written) if self.each else before + "".join(written) + after

    def _call(self, name: str, texts: Texts) -> str:
        before, between, after = self.call
        after = after.replace("NAME", name)
        return before + name + between + "".join(self._value(key, text) for key, text in texts.items()) + after

    def _value(self, key: str, text: str) -> str:
        before, between, after = self.value
        return before + key + between + text + after.replace("KEY", key)

    @property
    def tail(self) -> str:
        """The end of a call, from the value on."""
        return self.value[2].replace("KEY", "content") + self.call[2].replace("NAME", "write_file") + self.around[1]


_QWEN = (("<function=", ">\n", "</function>"), ("<parameter=", ">\n", "\n</parameter>\n"))
_INVOKE = (('<invoke name="', '">\n', "</invoke>\n"), ('<parameter name="', '">', "</parameter>\n"))
_BAR = "｜DSML｜"
_M3 = "]<]minimax[>["
FORMS: Final = (
    Form("qwen_xml", ("<tool_call>\n", "\n</tool_call>"), *_QWEN, each=True),
    Form("seed", ("<seed:tool_call>\n", "\n</seed:tool_call>"), *_QWEN, each=True),
    Form("invoke_xml", ("<function_calls>\n", "</function_calls>"), *_INVOKE),
    Form("minimax", ("<minimax:tool_call>\n", "</minimax:tool_call>"), *_INVOKE),
    Form("dots", ("<dots_function_call>\n", "</dots_function_call>"), *_INVOKE),
    Form("muse", ("<atem:function_calls>\n", "</atem:function_calls>"), *_INVOKE),
    Form(
        "dsml",
        (f"<{_BAR}tool_calls>\n", f"</{_BAR}tool_calls>"),
        (f'<{_BAR}invoke name="', '">\n', f"</{_BAR}invoke>\n"),
        (f'<{_BAR}parameter name="', '" string="true">', f"</{_BAR}parameter>\n"),
    ),
    Form(
        "glm",
        ("<tool_call>", "</tool_call>"),
        ("", "\n", ""),
        ("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"),
        each=True,
    ),
    Form(
        "hy3",
        ("<tool_call>", "</tool_call>"),
        ("", "<tool_sep>\n", ""),
        ("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"),
        each=True,
    ),
    Form(
        "minicpm",
        ("", ""),
        ('<function name="', '">', "</function>"),
        ('<param name="', '">', "</param>"),
        each=True,
    ),
    Form(
        "step3",
        (
            "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>",
            "<｜tool_call_end｜><｜tool_calls_end｜>",
        ),
        ('<steptml:invoke name="', '">', "</steptml:invoke>"),
        ('<steptml:parameter name="', '">', "</steptml:parameter>"),
    ),
    Form(
        "kimi_k3",
        ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        ('<|open|>call tool="', '"<|sep|>', "<|close|>call<|sep|>"),
        ('<|open|>argument key="', '" type="string"<|sep|>', "<|close|>argument<|sep|>"),
    ),
    Form(
        "minimax",
        (f"{_M3}<tool_call>\n", f"{_M3}</tool_call>"),
        (f'{_M3}<invoke name="', '">', f"{_M3}</invoke>\n"),
        (f"{_M3}<", ">", f"{_M3}</KEY>"),
    ),
    Form(
        "cline",
        ("", ""),
        ("<", ">\n", "</NAME>"),
        ("<", ">\n", "\n</KEY>\n"),
        each=True,
    ),
)


@dataclass(frozen=True)
class Written:
    """A message of a model, and the intended calls."""

    seed: int
    form: Form
    text: str
    calls: list[tuple[str, dict[str, str]]]


_LINES: Final = (
    *("# Notes\n", "def f(x):\n    return x < 3\n", "plain words, ", "\n", "\n\n", "  indented\n", "a && b > c; "),
    *("<p>An <b>HTML</b> page.</p>\n", "<!DOCTYPE html>\n<html><head><title>t</title></head>\n", "</body>\n</html>\n"),
    *("```python\nprint(1)\n```\n", "```\n", '{"a": [1, 2]}\n', "{%- for m in messages %}\n", "{{ m.content }}\n"),
    *("<![CDATA[ x < y ]]>", "<root><![CDATA[\nraw\n]]></root>\n", "<think>", "<|im_start|>user\n", "é 日本 😀\n"),
)


def _pieces(form: Form, dice: Random) -> Iterator[str]:
    """Yield parts of a file: ordinary lines, and the dialect's own markup, whole and in fragments."""
    (before, after), call, value = form.around, form.call, form.value
    example = form.write([(dice.choice(("bash", "example_tool")), {"command": dice.choice(("ls", "a\nb", "x < y"))})])
    fragments = (
        before + "x",
        after + ", and then ",
        f"{call[0]}bash{call[1]}",
        call[2].replace("NAME", "bash") + " ends it. ",
        f"{value[0]}note{value[1]}",
        value[2].replace("KEY", "content") + ", as text. ",
        form.tail + " ends a call. ",
        form.tail + "\nAnd so on.\n",
        f"`{form.tail}`",
        example + "\n",
        f"Write {example} for that.\n",
        f"```xml\n{example}\n```\n",
        example + "\n" + example + "\n",
        "".join(value[0] + key + value[1] + "1" + value[2].replace("KEY", key) for key in "ab") + "rest\n",
    )
    for _ in range(dice.randint(1, 7)):
        yield dice.choice(fragments if dice.random() < 0.4 else _LINES)


def content(form: Form, dice: Random) -> str:
    """Make a file; one that begins with a CDATA section is left out, since the section would be markup."""
    edge = ("", "", "\n", "\n\n", "  ", "x")
    file = dice.choice(edge) + "".join(_pieces(form, dice)) + dice.choice(edge)
    return file if not file.startswith("<![CDATA[") else f"<?xml?>{file}"


def written(seed: int) -> Written:
    """Make the message of a seed."""
    dice = Random(f"own markup {seed}")
    form = FORMS[seed // 2 % len(FORMS)]
    file = content(form, dice)
    path = {"path": dice.choice(("a.md", "src/x.ts", "b c.html"))}
    calls: list[tuple[str, dict[str, str]]] = dice.choice(
        (
            [("write_file", path | {"content": file})],
            [("write_file", {"content": file} | path)],
            [("edit", path | {"old": content(form, dice), "new": file})],
            [("bash", {"command": "ls -la"}), ("write_file", path | {"content": file})],
            [("write_file", path | {"content": file}), ("bash", {"command": "ls -la"})],
        )
    )
    said = dice.choice(("", "", "I write it now.\n\n"))
    return Written(seed, form, said + form.write(calls) + dice.choice(("", "", "\n", "\n\nDone.")), calls)


def shaping(count: int) -> Iterator[Written]:
    """Yield messages that may shape the readers, for their development."""
    return (written(2 * index) for index in range(count))


def proofs(count: int) -> Iterator[Written]:
    """Yield messages that only test the readers."""
    return (written(2 * index + 1) for index in range(count))
