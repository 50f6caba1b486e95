"""How each dialect writes a call: one row per form, for examples that quote it."""

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Final, NamedTuple, TypeAlias

from testkit.noncalls.tools import Args

Write: TypeAlias = Callable[[str, Args], str]
Value: TypeAlias = str | int | bool


class Rendering(NamedTuple):
    """A form of a call: the dialects that write it so, what it opens with, and how."""

    dialects: tuple[str, ...]
    opener: str
    """With `{}` where the tool's name belongs."""
    write: Write


def text_of(value: Value) -> str:
    """Write a value as tags hold it."""
    return value if isinstance(value, str) else json.dumps(value)


def dumps(value: object) -> str:
    """Write JSON as models do."""
    return json.dumps(value, ensure_ascii=False)


def keys(name_key: str = "name", arguments_key: str = "arguments") -> Write:
    """Write an object with these keys."""
    return lambda name, args: dumps({name_key: name, arguments_key: args})


def inside(before: str, after: str = "", write: Write | None = None) -> Write:
    """Write a call (by default a JSON object) between two texts."""
    body = keys() if write is None else write
    return lambda name, args: f"{before}{body(name, args)}{after}"


def listed(write: Write) -> Write:
    """Write a list of one call."""
    return inside("[", "]", write)


def named(before: str, between: str, after: str = "") -> Write:
    """Write a name and then the arguments as JSON."""
    return lambda name, args: f"{before}{name}{between}{dumps(args)}{after}"


def tagged(before: str, argument: str, after: str) -> Write:
    """Write `before` with the name, each argument with key, value and kind, and `after`."""

    def write(name: str, args: Args) -> str:
        body = "".join(argument.format(key=k, value=text_of(v), **kinds(v)) for k, v in args.items())
        return before.replace("{}", name) + body + after.replace("{}", name)

    return write


def kinds(value: Value) -> Mapping[str, str]:
    """Return the type of a value, as some tags state it."""
    is_text = isinstance(value, str)
    json_type = "string" if is_text else "boolean" if isinstance(value, bool) else "number"
    return {"string": "true" if is_text else "false", "raw": "raw" if is_text else "json", "type": json_type}


def python(name: str, args: Args) -> str:
    """Write a Python call."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})"


def pairs(quote: str) -> Write:
    """Write Gemma's `call:f{k:v}`."""

    def write(name: str, args: Args) -> str:
        written = (f"{k}:{quote}{v}{quote}" if isinstance(v, str) else f"{k}:{json.dumps(v)}" for k, v in args.items())
        return f"call:{name}{{{','.join(written)}}}"

    return write


def own_key(name: str, args: Args) -> str:
    """Write Apertus' object whose key is the tool."""
    return dumps({name: args})


_INVOKE: Final = '<invoke name="{}">\n'
_PARAMETER: Final = '<parameter name="{key}">{value}</parameter>\n'
_QWEN: Final = "<function={}>\n"
_QWEN_PARAMETER: Final = "<parameter={key}>\n{value}\n</parameter>\n"
_GLM_LINES: Final = "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"
_GLM: Final = "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"
_DSML: Final = '<｜DSML｜parameter name="{key}" string="{string}">{value}</｜DSML｜parameter>\n'
_COFL: Final = '<cofl:value name="{key}" type="{raw}">{value}</cofl:value>'
_ATEM: Final = '<atem:parameter name="{key}">{value}</atem:parameter>\n'
_STEP: Final = '<steptml:parameter name="{key}">{value}</steptml:parameter>\n'
_K3: Final = '<|open|>argument key="{key}" type="{type}"<|sep|>{value}<|close|>argument<|sep|>'
_M3: Final = "]<]minimax[>["
_DEEPSEEK: Final = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
_DEEPSEEK_END: Final = "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"

_JSON_ROWS: Final = (
    Rendering(("hermes", "granite", "jamba"), "<tool_call>", inside("<tool_call>\n", "\n</tool_call>")),
    Rendering(("hermes", "glm", "qwen_xml"), "<tool_call>", inside("<tool_call>", "</tool_call>")),
    Rendering(("longcat",), "<longcat_tool_call>", inside("<longcat_tool_call>", "</longcat_tool_call>")),
    Rendering(("jamba", "hy3"), "<tool_calls>", inside("<tool_calls>", "</tool_calls>", listed(keys()))),
    Rendering(("minimax_m1",), "<tool_calls>", inside("<tool_calls>\n", "\n</tool_calls>")),
    Rendering(("nemotron",), "<TOOLCALL>", inside("<TOOLCALL>", "</TOOLCALL>", listed(keys()))),
    Rendering(("granite",), "<|tool_call|>", inside("<|tool_call|>", "", listed(keys()))),
    Rendering(("granite", "tag_json"), "<function_call>", inside("<function_call> ", " </function_call>")),
    Rendering(("phi",), "<|tool_call|>", inside("<|tool_call|>", "<|/tool_call|>", listed(keys()))),
    Rendering(
        ("internlm",),
        "<|action_start|>",
        inside("<|action_start|> <|plugin|>\n", "<|action_end|>", keys("name", "parameters")),
    ),
    Rendering(("apertus",), "<|tools_prefix|>", inside("<|tools_prefix|>", "<|tools_suffix|>", listed(own_key))),
    Rendering(("gigachat",), "<|function_call|>", inside("<|function_call|>")),
    Rendering(
        ("inkling",),
        "<|content_invoke_tool_json|>",
        inside("<|message_model|><|content_invoke_tool_json|>", "<|end_message|>", keys("name", "args")),
    ),
    Rendering(("llama_json",), '{"name": "{}"', keys("name", "parameters")),
    Rendering(("llama_json",), "<|python_tag|>", inside("<|python_tag|>", "", keys("name", "parameters"))),
    Rendering(("mistral",), "[TOOL_CALLS]", inside("[TOOL_CALLS] ", "", listed(keys()))),
    Rendering(
        ("cohere",),
        "<|START_ACTION|>",
        inside("<|START_ACTION|>", "<|END_ACTION|>", listed(keys("tool_name", "parameters"))),
    ),
    Rendering(("cohere",), "Action:", inside("Action:\n```json\n", "\n```", listed(keys("tool_name", "parameters")))),
    Rendering(("firefunction",), "functools[", inside("functools", "", listed(keys()))),
    Rendering(("json_action",), "```json action", inside("```json action\n", "\n```", keys("tool", "parameters"))),
    Rendering(("fenced",), "```tool_call", inside("```tool_call\n", "\n```")),
    Rendering(("langchain",), "```json", inside("```json\n", "\n```", keys("action", "action_input"))),
    Rendering(("inline_json",), '{"tool": "{}"', keys("tool", "args")),
    Rendering(("decision_json",), '{"tools": [', inside('{"tools": ', "}", listed(keys()))),
    Rendering(("steps_json",), '{"thought": "', inside('{"thought": "I look it up.", "calls": ', "}", listed(keys()))),
    Rendering(("lmstudio",), "[TOOL_REQUEST]", inside("[TOOL_REQUEST]", "[END_TOOL_REQUEST]")),
    Rendering(("tag_json",), "<tool_use>", inside("<tool_use>\n", "\n</tool_use>")),
)
_NAMED_ROWS: Final = (
    Rendering(("mistral",), "[TOOL_CALLS]{}", named("[TOOL_CALLS]", "[ARGS]")),
    Rendering(("mistral",), "[TOOL_CALLS]{}", named("[TOOL_CALLS]", "")),
    Rendering(("functionary",), ">>>{}", named(">>>", "\n")),
    Rendering(("functionary", "qwen_xml"), "<function={}>", named("<function=", ">", "</function>")),
    Rendering(
        ("deepseek",), _DEEPSEEK, named(f"{_DEEPSEEK}function<｜tool▁sep｜>", "\n```json\n", f"\n```{_DEEPSEEK_END}")
    ),
    Rendering(("deepseek",), _DEEPSEEK, named(_DEEPSEEK, "<｜tool▁sep｜>", _DEEPSEEK_END)),
    Rendering(
        ("kimi",),
        "<|tool_calls_section_begin|>",
        named(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
            ":0<|tool_call_argument_begin|>",
            "<|tool_call_end|><|tool_calls_section_end|>",
        ),
    ),
    Rendering(
        ("solar",),
        "<|tool_call:begin|>",
        named("<|tool_call:begin|>c1<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|><|calls|>"),
    ),
    Rendering(
        ("harmony",),
        "<|channel|>commentary to=functions.{}",
        named("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "<|call|>"),
    ),
    Rendering(
        ("harmony",),
        "<|start|>assistant to=functions.{}",
        named("<|start|>assistant to=functions.", "<|channel|>commentary json<|message|>", "<|call|>"),
    ),
    Rendering(("react", "langchain"), "Action: {}", named("Action: ", "\nAction Input: ", "\nObservation:")),
    Rendering(("react",), "Action: {}", named("Thought: I need this.\nAction: ", "\nAction Input: ")),
    Rendering(("qwen_star",), "✿FUNCTION✿: {}", named("✿FUNCTION✿: ", "\n✿ARGS✿: ", "\n✿RESULT✿")),
)
_TAG_ROWS: Final = (
    Rendering(
        ("qwen_xml", "hermes"),
        "<tool_call>",
        tagged(f"<tool_call>\n{_QWEN}", _QWEN_PARAMETER, "</function>\n</tool_call>"),
    ),
    Rendering(("qwen_xml", "minicpm"), "<function={}>", tagged(_QWEN, _QWEN_PARAMETER, "</function>")),
    Rendering(
        ("seed",),
        "<seed:tool_call>",
        tagged(f"<seed:tool_call>\n{_QWEN}", _QWEN_PARAMETER, "</function>\n</seed:tool_call>"),
    ),
    Rendering(
        ("dsml",),
        "<｜DSML｜tool_calls>",
        tagged('<｜DSML｜tool_calls>\n<｜DSML｜invoke name="{}">\n', _DSML, "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"),
    ),
    Rendering(
        ("invoke_xml", "tag_json"),
        "<function_calls>",
        tagged(f"<function_calls>\n{_INVOKE}", _PARAMETER, "</invoke>\n</function_calls>"),
    ),
    Rendering(("invoke_xml", "dots", "muse"), '<invoke name="{}">', tagged(_INVOKE, _PARAMETER, "</invoke>")),
    Rendering(("glm",), "<tool_call>{}", tagged("<tool_call>{}\n", _GLM_LINES, "</tool_call>")),
    Rendering(("glm", "hermes"), "<tool_call>{}", tagged("<tool_call>{}", _GLM, "</tool_call>")),
    Rendering(
        ("hy3",),
        "<tool_calls>",
        tagged("<tool_calls>\n<tool_call>{}<tool_sep>\n", _GLM_LINES, "</tool_call>\n</tool_calls>"),
    ),
    Rendering(
        ("minimax",),
        "<minimax:tool_call>",
        tagged(f"<minimax:tool_call>\n{_INVOKE}", _PARAMETER, "</invoke>\n</minimax:tool_call>"),
    ),
    Rendering(
        ("minimax",),
        f"{_M3}<tool_call>",
        tagged(
            f'{_M3}<tool_call>\n{_M3}<invoke name="{{}}">',
            f"{_M3}<{{key}}>{{value}}{_M3}</{{key}}>",
            f"{_M3}</invoke>\n{_M3}</tool_call>",
        ),
    ),
    Rendering(
        ("dots",),
        "<dots_function_call>",
        tagged(f"<dots_function_call>\n{_INVOKE}", _PARAMETER, "</invoke>\n</dots_function_call>"),
    ),
    Rendering(
        ("muse",),
        "<atem:function_calls>",
        tagged(
            'to={}<|message|><atem:function_calls>\n<atem:invoke name="{}">\n',
            _ATEM,
            "</atem:invoke>\n</atem:function_calls><|eom|>",
        ),
    ),
    Rendering(
        ("step3",),
        "<｜tool_calls_begin｜>",
        tagged(
            '<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{}">\n',
            _STEP,
            "</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>",
        ),
    ),
    Rendering(
        ("minicpm",),
        '<function name="{}">',
        tagged('<function name="{}">', '<param name="{key}">{value}</param>', "</function>"),
    ),
    Rendering(
        ("kimi_k3",),
        "<|open|>tools<|sep|>",
        tagged(
            '<|open|>tools<|sep|><|open|>call tool="{}" index="1"<|sep|>',
            _K3,
            "<|close|>call<|sep|><|close|>tools<|sep|>",
        ),
    ),
    Rendering(
        ("cohere",),
        "<cofl:tool_calls>",
        tagged('<cofl:tool_calls><cofl:tool_call id="0" name="{}">', _COFL, "</cofl:tool_call></cofl:tool_calls>"),
    ),
    Rendering(("cline",), "<{}>", tagged("<{}>\n", "<{key}>{value}</{key}>\n", "</{}>")),
)
_PYTHON_ROWS: Final = (
    Rendering(("pythonic", "llama4"), "[{}(", listed(python)),
    Rendering(("llama4",), "<|python_start|>", inside("<|python_start|>", "<|python_end|>", listed(python))),
    Rendering(("olmo",), "<function_calls>", inside("<function_calls>\n", "\n</function_calls>", python)),
    Rendering(("lfm2",), "<|tool_call_start|>", inside("<|tool_call_start|>", "<|tool_call_end|>", listed(python))),
    Rendering(("tool_code",), "```tool_code", inside("```tool_code\nprint(", ")\n```", python)),
    Rendering(
        ("function_gemma",),
        "<start_function_call>",
        inside("<start_function_call>", "<end_function_call>", pairs("<escape>")),
    ),
    Rendering(("gemma",), "<|tool_call>", inside("<|tool_call>", "<tool_call|>", pairs('<|"|>'))),
)
RENDERINGS: Final = (*_JSON_ROWS, *_NAMED_ROWS, *_TAG_ROWS, *_PYTHON_ROWS)
BARE: Final = tuple(
    row
    for row in RENDERINGS
    if row.dialects[0] in ("llama_json", "inline_json", "decision_json", "steps_json", "pythonic")
    and "<" not in row.opener
)
"""Forms without markers: they are calls only as the whole message, or its end."""


def pick(dice: Random, *, fences: bool = True) -> Rendering:
    """Pick a form; without `fences`, one that has no backticks of its own."""
    while True:
        row = dice.choice(RENDERINGS)
        if fences or "`" not in row.write("f", {"x": 1}):
            return row
