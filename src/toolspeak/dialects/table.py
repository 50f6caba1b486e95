"""The dialects that toolspeak reads and does not write: one row each, grouped by the form of their calls.

A row is a `Dialect` whose `summary` shows what models write, for `docs/dialects.md`; comments say which server or model
taught us the rest. To add one, add a row to `_ROWS` and its golden cases (see `docs/first-dialect.md`). A dialect with
a writer has a module of its own.

`RECOVERY` is part of every row: servers drop special tokens, and models forget openers, in all dialects alike.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Final

from toolspeak.dialects.core.dialect import Dialect
from toolspeak.dialects.core.grammar import (
    RESULT_TAGS,
    THINK_TAGS,
    Label,
    MarkupGrammar,
    OpenerPosition,
    ReasoningMarks,
    Special,
    Wrapper,
)
from toolspeak.dialects.core.headers import ANALYSIS, ANSWER_ENDS, ENDS, HEADER_TO_MESSAGE, ROLE_RECIPIENT, Channel
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.key_value_form import KEY_VALUE
from toolspeak.dialects.core.markup import BARE_INVOKE, BARE_PYTHON, FUNCTION, PYTHON_TAG, RECOVERY, TOOL_CALL
from toolspeak.dialects.core.named_json import BareNamedJson, Labelled, NamedJson, by_pattern
from toolspeak.dialects.core.pair_form import PAIRS
from toolspeak.dialects.core.python_form import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects.core.tag_form import ELEMENTS, XML, XTML, Tagged
from toolspeak.dialects.core.tags import XmlTags
from toolspeak.dialects.react import DIALECT as REACT

_ANYWHERE, _LINE, _START = OpenerPosition.ANYWHERE, OpenerPosition.LINE, OpenerPosition.START
_CALL_CLOSERS: Final = ("</tool_call>", "</tool_calls>")


def row(name: str, summary: str, grammar: MarkupGrammar, *, rescues: bool | MarkupGrammar) -> Dialect:
    """Make a row; `rescues` is False if prose or data contain the markers, too (see `Dialect.rescues`)."""
    return Dialect(name, grammar | RECOVERY, rescues=rescues, summary=summary)


def _results(*openers: str) -> tuple[str, ...]:
    return (*RESULT_TAGS, *openers)


# ---------------------------------------------------------------- JSON in a wrapper (G1)

_JSON_ROWS: Final = (
    row(
        "apertus",
        'Apertus: `<|tools_prefix|>[{"f": {…}}, {"g": {…}}]<|tools_suffix|>`; the key is the tool\'s name (D09b).',
        # It calls from its inner block, too: then the turn ends there, and the block stays open.
        MarkupGrammar((Wrapper(("<|tools_prefix|>",), ("<|tools_suffix|>",), (JSON,)),)),
        rescues=True,
    ),
    row(
        "cohere",
        'Cohere: `<|START_ACTION|>[{"tool_name": …, "parameters": …}]<|END_ACTION|>`, '
        "`Action:` and a fence, or tags (D13).",
        # Command R and R+ write `Action:` and a JSON fence, and get results in `<results>`; Command R7B and A have
        # the tokens; the newest models write the tags.
        MarkupGrammar(
            (
                Wrapper(("<|START_ACTION|>",), ("<|END_ACTION|>",), (JSON,)),
                Wrapper(("Action:",), (), (JSON,), _LINE),
                Wrapper(("<cofl:tool_calls>",), ("</cofl:tool_calls>",), (XML,)),
            ),
            results=_results("<|START_TOOL_RESULT|>", "<results>"),
            labels=(Label("<|START_RESPONSE|>", _ANYWHERE), Label("<|END_RESPONSE|>", _ANYWHERE)),
        ),
        rescues=True,
    ),
    row(
        "firefunction",
        "Firefunction and Phi-4-mini: `functools[{…}, {…}]` with no closer (D14).",
        # vLLM's template teaches Phi-4-mini this form instead of its own tokens (`phi`).
        MarkupGrammar((Wrapper(("functools",), (), (JSON,), _LINE),)),
        rescues=True,
    ),
    row(
        "gigachat",
        "GigaChat 3: `<|function_call|>` JSON, or `function call<|role_sep|>` and JSON on the next line (D09c).",
        MarkupGrammar((Wrapper(("<|function_call|>", "function call<|role_sep|>"), ("<|message_sep|>",), (JSON,)),)),
        rescues=True,
    ),
    row(
        "granite",
        "Granite 3: `<|tool_call|>[{…}]` with no closer; Granite 20b: `<function_call> {…}` for each call (D08).",
        # Granite 3.1 and 4 write `<tool_call>`.
        MarkupGrammar(
            (
                Wrapper(("<|tool_call|>",), ("<|/tool_call|>",), (JSON,)),
                Wrapper(("<function_call>",), ("</function_call>",), (JSON,)),
                TOOL_CALL,
            )
        ),
        rescues=True,
    ),
    row(
        "inkling",
        'Inkling: `<|content_invoke_tool_json|>{"name": …, "args": …}<|end_message|>` (D09d).',
        MarkupGrammar(
            (Wrapper(("<|content_invoke_tool_json|>", "<|content_invoke_tool_text|>"), ("<|end_message|>",), (JSON,)),),
            labels=(Label("<|message_model|>", _ANYWHERE),),
        ),
        rescues=True,
    ),
    row(
        "internlm",
        "InternLM2, Intern-S1: `<|action_start|> <|plugin|>` JSON `<|action_end|>` (D09).",
        MarkupGrammar((Wrapper(("<|action_start|>", "<|plugin|>"), ("<|action_end|>",), (JSON,)),)),
        rescues=True,
    ),
    row(
        "jamba",
        "Jamba, Hunyuan, Apriel: `<tool_calls>[{…}, {…}]</tool_calls>` (D05).",
        # Apriel's prompt says `<tool_call>` in its prose and shows `<tool_calls>`. The dense Hunyuan models write one
        # in the other, with the name and a JSON fence inside.
        MarkupGrammar((replace(TOOL_CALL, openers=("<tool_calls>", "<tool_call>"), closers=_CALL_CLOSERS),)),
        rescues=True,
    ),
    row(
        "lmstudio",
        'LM Studio\'s default: `[TOOL_REQUEST]{"name": …, "arguments": …}[END_TOOL_REQUEST]` (D43).',
        # LM Studio teaches it to models without tool calling of their own.
        MarkupGrammar((Wrapper(("[TOOL_REQUEST]",), ("[END_TOOL_REQUEST]", "[/TOOL_REQUEST]"), (JSON,)),)),
        rescues=True,
    ),
    row(
        "longcat",
        "LongCat: `<longcat_tool_call>{…}</longcat_tool_call>` (D03).",
        MarkupGrammar((Wrapper(("<longcat_tool_call>",), ("</longcat_tool_call>",), (JSON,)),)),
        rescues=True,
    ),
    row(
        "minimax_m1",
        "MiniMax M1: `<tool_calls>`, one JSON object per line, `</tool_calls>` (D06).",
        MarkupGrammar((Wrapper(("<tool_calls>",), ("</tool_calls>",), (JSON,)),), result_lines=("tool result:",)),
        rescues=False,  # `jamba` rescues the wrapper; a line of prose may begin with `tool result:`
    ),
    row(
        "nemotron",
        "Nemotron Nano v2 and Llama-Nemotron: `<TOOLCALL>[{…}]</TOOLCALL>`, sometimes with a Python list inside (D07).",
        # The Berkeley leaderboard's prompt for Nemotron teaches the Python list.
        MarkupGrammar(
            (Wrapper(("<TOOLCALL>",), ("</TOOLCALL>",), (JSON, PYTHON_LIST, ELEMENTS)),),
            results=_results("<TOOL_RESPONSE>"),
        ),
        rescues=True,
    ),
    row(
        "phi",
        "Phi-4-mini's own tokens: `<|tool_call|>[{…}]<|/tool_call|>` (D14).",
        MarkupGrammar((Wrapper(("<|tool_call|>",), ("<|/tool_call|>",), (JSON,)),)),
        rescues=True,
    ),
    row(
        "tag_json",
        "Tags that no model was trained on but many write: `<toolcall>`, `<tool_use>`, `<tool>` "
        "around JSON or elements.",
        MarkupGrammar(
            (
                Wrapper(
                    ("<toolcall>", "<tool-call>", "<tool_use>", "<tool-use>", "<tool>", "<function_call>"),
                    ("</toolcall>", "</tool-call>", "</tool_use>", "</tool-use>", "</tool>", "</function_call>"),
                    (JSON, ELEMENTS, XML),
                ),
                BARE_INVOKE,
            )
        ),
        rescues=True,
    ),
)

# ---------------------------------------------------------------- a name, then JSON (G2, G7)

_SOLAR_HEADER: Final = by_pattern(
    r"\s*(?P<id>[^\s<]{0,64})\s*<\|tool_call:name\|>\s*(?P<name>[^\s<]{1,128})\s*<\|tool_call:args\|>\s*"
)

_NAMED_ROWS: Final = (
    row(
        "functionary",
        "Functionary: `>>>f` and JSON on the next line (v3.2), or `<function=f>{…}</function>` (v3.1) (D15, D19).",
        # The prompt of v3.2 ends with `>>>`, so a message may begin with the bare recipient: a tool's name, or `all`.
        MarkupGrammar(
            (
                Wrapper((">>>",), (), (NamedJson((by_pattern(r"(?P<name>[\w.\-]{1,128})\n\s*"),)),), single=True),
                Wrapper((), (), (BareNamedJson(r"\n\s{0,8}"),), _START, sure=False),
                FUNCTION,
            ),
            labels=(Label(">>>all\n", _ANYWHERE), Label("all\n", _START)),
        ),
        rescues=False,  # Python's own prompt is `>>>`
    ),
    row(
        "langchain",
        "LangChain structured chat: a JSON fence with `action` and `action_input` (D39).",
        MarkupGrammar(result_lines=("Observation:",)) | REACT.grammar,
        rescues=False,  # prose has such labels
    ),
    row(
        "qwen_star",
        "Qwen-Agent's star format: `✿FUNCTION✿: f`, `✿ARGS✿: {…}`, then our `✿RESULT✿:` (D39).",
        MarkupGrammar(
            (Wrapper(("✿FUNCTION✿:",), (), (Labelled("✿ARGS✿:"),), single=True),),
            results=_results("✿RESULT✿"),
            labels=(Label("✿RETURN✿:"),),
        ),
        rescues=True,
    ),
    row(
        "solar",
        "Solar Open: `<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{…}<|tool_call:end|>`, "
        "then `<|calls|>`.",
        MarkupGrammar(
            (
                Wrapper(
                    ("<|tool_call:begin|>",),
                    ("<|tool_call:end|>",),
                    (NamedJson((_SOLAR_HEADER,), first="<"),),
                    single=True,
                ),
            ),
            closers=("<|calls|>",),
            labels=tuple(Label(token, _ANYWHERE) for token in ("<|begin|>assistant", "<|content|>", "<|tool_calls|>")),
        ),
        rescues=True,
    ),
)

# ---------------------------------------------------------------- arguments as tags (G3)

_MINIMAX_TOKEN: Final = "]<]minimax[>["

_DSML_BARS: Final = ("｜", "‖", "|", "｜｜", "||")
_DSML_WRAPPERS: Final = ("tool_calls", "function_calls", "toolcalls", "calls", "tool_use")
"""V4 writes the first, V3.2 the second, and V4 that too. The third is from vllm#51914, the others from web clients."""


def _dsml(name: str, *, closes: bool = False, end: str = ">") -> tuple[str, ...]:
    """Spell a DSML tag as proxies have been seen to retype it: other bars, and blanks after or around them."""
    begin = "</" if closes else "<"
    tight = (f"{begin}{bar}DSML{bar}{blank}{name}{end}" for bar, blank in product(_DSML_BARS, ("", " ")))
    return (*tight, *(f"{begin} {bar} DSML {bar} {name}{end}" for bar in _DSML_BARS))


_DSML_CLOSERS: Final = tuple(tag for name in _DSML_WRAPPERS for tag in _dsml(name, closes=True))

_TAG_ROWS: Final = (
    row(
        "cline",
        "Cline, Roo: the tool's name is the element's name, its parameters are elements inside (D44).",
        MarkupGrammar((Wrapper((), (), (ELEMENTS,), _LINE, sure=False),)),
        rescues=False,  # an element of data may have the name of a tool
    ),
    row(
        "dots",
        "dots: invoke and parameter tags inside `<dots_function_call>` (D27).",
        MarkupGrammar((Wrapper(("<dots_function_call>",), ("</dots_function_call>",), (XML, JSON)), BARE_INVOKE)),
        rescues=True,
    ),
    row(
        "dsml",
        'DeepSeek V3.2 and V4: `<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">` (D22).',
        # The wrapper is missing at long context (vllm#48931). An `invoke` alone counts only at the start of a line and
        # for a known tool: models that explain their own syntax have made phantom calls in other parsers.
        MarkupGrammar(
            (
                Wrapper(tuple(tag for name in _DSML_WRAPPERS for tag in _dsml(name)), _DSML_CLOSERS, (XML,)),
                Wrapper(_dsml("invoke", end=" "), _DSML_CLOSERS, (XML,), _LINE, sure=False, keep_opener=True),
            ),
            closers=(*_dsml("parameter", closes=True), *_dsml("invoke", closes=True)),
            results=_results(*_dsml("function_results")),
        ),
        rescues=True,
    ),
    row(
        "hy3",
        "Tencent Hy3: `<tool_calls><tool_call>f<tool_sep>` and GLM's pairs (D25).",
        MarkupGrammar(
            (Wrapper(("<tool_calls>", "<tool_call>"), ("</tool_call>", "</tool_calls>"), (JSON, XML, PAIRS)),),
            results=_results("<tool_responses>"),
        ),
        rescues=False,  # `glm` and `jamba` rescue its wrappers
    ),
    row(
        "kimi_k3",
        "Kimi K3: channels and calls as `<|open|>tag attributes<|sep|> … <|close|>tag<|sep|>` (D30).",
        MarkupGrammar(
            (Wrapper(("<|open|>tools<|sep|>",), ("<|close|>tools<|sep|>",), (XTML,)),),
            closers=("<|close|>message<|sep|>", "<|end_of_msg|>"),
            # The prompt opens the reasoning; a model that does not think answers at once, without closing it.
            reasoning=(
                ReasoningMarks("<|open|>think<|sep|>", ("<|close|>think<|sep|>",), stops=("<|open|>response<|sep|>",)),
                *THINK_TAGS,
            ),
            labels=(Label("<|open|>response<|sep|>", _ANYWHERE), Label("<|close|>response<|sep|>", _ANYWHERE)),
        ),
        rescues=True,
    ),
    row(
        "minicpm",
        'MiniCPM5: `<function name="f"><param name="k">v</param></function>`, values perhaps in CDATA (D28).',
        MarkupGrammar((FUNCTION,)),
        rescues=False,  # the recovery of every dialect reads it at the start of a line; elsewhere it may be data
    ),
    row(
        "minimax",
        'MiniMax M2: `<minimax:tool_call><invoke name="f">…`; '
        "M3: a token before each tag, parameters as elements (D26).",
        MarkupGrammar(
            (
                Wrapper(("<minimax:tool_call>",), ("</minimax:tool_call>",), (XML,)),
                Wrapper(
                    (f"{_MINIMAX_TOKEN}<tool_call>",),
                    (f"{_MINIMAX_TOKEN}</tool_call>",),
                    (Tagged(XmlTags(_MINIMAX_TOKEN)),),
                ),
                BARE_INVOKE,
            ),
            results=_results("<response>"),
        ),
        rescues=True,
    ),
    row(
        "muse",
        "Muse Glimmer: a header `to=f<|message|>`, then `<atem:function_calls>` with invoke tags (D27).",
        MarkupGrammar(
            (Wrapper(("<atem:function_calls>",), ("</atem:function_calls>",), (XML,)), BARE_INVOKE),
            closers=("<|eom|>", "<|eot|>"),
            specials=(Special("to=", HEADER_TO_MESSAGE, _LINE),),
        ),
        rescues=False,  # a line of prose or data may begin with `to=`
    ),
    row(
        "seed",
        "Seed-OSS: Qwen3-Coder's tags inside `<seed:tool_call>` (D21).",
        MarkupGrammar((Wrapper(("<seed:tool_call>",), ("</seed:tool_call>",), (XML,)),)),
        rescues=True,
    ),
    row(
        "step3",
        'Step3: `function<｜tool_sep｜><steptml:invoke name="f">…` inside sections (D27).',
        MarkupGrammar(
            (
                Wrapper(
                    ("<｜tool_calls_begin｜>", "<｜tool_call_begin｜>", "function<｜tool_sep｜>", "<｜tool_sep｜>"),
                    ("<｜tool_call_end｜>", "<｜tool_calls_end｜>"),
                    (XML,),
                ),
                Wrapper(("<steptml:invoke ",), ("<｜tool_call_end｜>",), (XML,), _LINE, sure=False, keep_opener=True),
            )
        ),
        rescues=True,
    ),
)

# ---------------------------------------------------------------- Python calls (G4)

_PYTHON_ROWS: Final = (
    row(
        "lfm2",
        "LFM2: `<|tool_call_start|>[f(a='x')]<|tool_call_end|>`, or JSON inside (D34).",
        MarkupGrammar(
            (Wrapper(("<|tool_call_start|>",), ("<|tool_call_end|>",), (JSON, PYTHON_LIST, PYTHON_CALL)),),
            results=_results("<|tool_response_start|>"),
        ),
        rescues=True,
    ),
    row(
        "llama4",
        "Llama 4: Python calls between `<|python_start|>` and `<|python_end|>`, or bare (D32).",
        MarkupGrammar((PYTHON_TAG, BARE_PYTHON)),
        rescues=False,  # `llama_json` and `pythonic` rescue both forms
    ),
    row(
        "olmo",
        "Olmo 3: `<function_calls>`, one Python call per line, `</function_calls>` (D33).",
        MarkupGrammar((Wrapper(("<function_calls>",), ("</function_calls>",), (PYTHON_CALL, PYTHON_LIST)),)),
        rescues=True,
    ),
    row(
        "tool_code",
        "Gemma 2 and 3: a fence with the info string `tool_code` around Python calls, often inside `print(…)` (D35).",
        # Gemma 3 has no tool token: Google's guide drives it by the prompt alone.
        MarkupGrammar(
            (Wrapper(("tool_code",), ("```",), (PYTHON_CALL, PYTHON_LIST), fence=True), BARE_PYTHON),
            result_lines=("```tool_output",),
        ),
        rescues=True,
    ),
)

# ---------------------------------------------------------------- keys and quote tokens (G5), message headers (G6)

_HARMONY: Final = MarkupGrammar(
    closers=ENDS,
    specials=tuple(
        Special(token, Channel(token), where, reasoning=(ANALYSIS,), answer_ends=ANSWER_ENDS)
        for token, where in (("<|channel|>", _ANYWHERE), ("<|start|>", _ANYWHERE), (ROLE_RECIPIENT, _START))
    ),
)
"""With all its tokens: no other text looks like that, so only this half rescues."""

_HARMONY_STRIPPED: Final = MarkupGrammar(
    (
        Wrapper(
            ("commentary to=", "assistantcommentary to="),
            (),
            (NamedJson((by_pattern(r"(?:functions\.)?(?P<name>[\w.\-]{1,128})\s*(?:json|code)?\s*"),)),),
            _LINE,
            single=True,
        ),
    ),
    reasoning=(
        ReasoningMarks(
            "analysis", ("assistantfinal",), stops=("assistantcommentary to=", "commentary to="), where=_START
        ),
    ),
    labels=(Label("assistantfinal"),),
)
"""Servers have been seen to drop the tokens and keep the words: `analysis…assistantfinal…`."""

_OTHER_ROWS: Final = (
    row(
        "function_gemma",
        "FunctionGemma: `<start_function_call>call:f{k:<escape>text<escape>}<end_function_call>` (D36).",
        MarkupGrammar(
            (Wrapper(("<start_function_call>",), ("<end_function_call>",), (KEY_VALUE,)),),
            results=_results("<start_function_response>"),
        ),
        rescues=True,
    ),
    row(
        "harmony",
        "gpt-oss harmony: `<|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>` (D38).",
        _HARMONY | _HARMONY_STRIPPED,
        rescues=_HARMONY,
    ),
)

_ROWS: Final = (*_JSON_ROWS, *_NAMED_ROWS, *_TAG_ROWS, *_PYTHON_ROWS, *_OTHER_ROWS)

DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in _ROWS}
