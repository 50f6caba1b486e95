"""Markup that several dialects share, and the recoveries that every reader allows."""

from dataclasses import replace
from typing import Final

from toolspeak.dialects.core.grammar import MarkupGrammar, OpenerPosition, Wrapper
from toolspeak.dialects.core.json_form import JSON
from toolspeak.dialects.core.named_json import BareNamedJson, NamedJson, by_pattern
from toolspeak.dialects.core.pair_form import PAIRS
from toolspeak.dialects.core.python_form import PYTHON_CALL, PYTHON_LIST
from toolspeak.dialects.core.tag_form import ELEMENTS, XML

CLOSERS: Final = ("</tool_call>", "</function>", "</tool_calls>", "</function_calls>", "</invoke>", "[/TOOL_CALLS]")

NAMESPACES: Final = ("", "antml:", "atem:", "minimax:")
"""Prefixes under which invoke tags have been seen; models lose or swap them."""

TOOL_CALL: Final = Wrapper(("<tool_call>",), ("</tool_call>",), (JSON, XML, PAIRS))
"""`<tool_call>`: what is inside tells which of its dialects it is."""

BARE_JSON: Final = Wrapper((), CLOSERS, (JSON,), OpenerPosition.START, sure=False, tail=True)
"""The whole message is the call's JSON: its markers were special tokens and the server has dropped them.

Ollama's generic parser has the same rule: JSON is a call only as the first thing of the message.
"""

CLOSED_JSON: Final = Wrapper((), ("</tool_call>",), (JSON,), OpenerPosition.LINE, sure=False, needs_closer=True)
"""Only the opener is lost.

Qwen3-Coder omitted `<tool_call>` and still wrote `</tool_call>` in 3 and 7 of 16 turns (ollama#17742).
"""

FUNCTION: Final = Wrapper(("<function=", "<function name="), ("</tool_call>",), (XML,), sure=False, keep_opener=True)
"""`<function=f>` with no wrapper around it, as some dialects have it."""

BARE_FUNCTION: Final = replace(FUNCTION, where=OpenerPosition.LINE)
"""The same where the wrapper is lost."""

BARE_INVOKE: Final = Wrapper(
    tuple(f"<{prefix}invoke " for prefix in NAMESPACES),
    (*(f"</{prefix}function_calls>" for prefix in NAMESPACES), "</minimax:tool_call>"),
    (XML,),
    OpenerPosition.LINE,
    sure=False,
    keep_opener=True,
)
BARE_NAMED: Final = Wrapper((), CLOSERS, (BareNamedJson(),), OpenerPosition.START, sure=False, tail=True)
BARE_ELEMENT: Final = Wrapper((), (), (ELEMENTS,), OpenerPosition.START, sure=False, tail=True)
"""An element named like a tool, as Cline and Roo teach it: models that have learnt it write it without being told."""
BARE_PYTHON: Final = Wrapper((), (), (PYTHON_LIST, PYTHON_CALL), OpenerPosition.START, sure=False, tail=True)

PYTHON_TAG: Final = Wrapper(
    ("<|python_tag|>", "<|python_start|>"),
    ("<|python_end|>", "<|eom_id|>", "<|eot_id|>"),
    (JSON, PYTHON_LIST, PYTHON_CALL),
)
"""Llama's own tokens, around JSON (Llama 3) or Python calls (Llama 4)."""

ECHO: Final = Wrapper(
    ("[Calling tool:", "[Tool call:"),
    ("]",),
    (NamedJson((by_pattern(r"\s*(?P<name>[\w.\-]{1,128})\s*\(?\s*"),)),),
    OpenerPosition.LINE,
    sure=False,
    tail=True,
)
"""A model imitates how a transcript shows past calls; Qwen3 has been seen to."""

WRAPPED: Final = Wrapper(
    ("<tool_calls>", "<tools>", "<tool>", "<tool_use>", "<use_tool>", "<function_call>", "[TOOL_CALL]"),
    ("</tool_calls>", "</tools>", "</tool>", "</tool_use>", "</use_tool>", "</function_call>", "[/TOOL_CALL]"),
    (JSON, ELEMENTS, XML),
    OpenerPosition.LINE,
    sure=False,
    tail=True,
)
"""A call in a wrapper that is not the dialect's: models mix up what their prompts and their training have shown them.

`<tools>` is around the list of tools in Qwen's prompt, and Qwen2.5-Coder writes calls in it. All of these occur in data
too, so the same conditions hold as for bare JSON. In a dialect that has one of them, its own wrapper counts.
"""

ENDS_OF_TURN: Final = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "</s>",
    "[e~[",
    "<SPECIAL_12>",
)
"""The ends of a turn in chat templates. Servers let them through; after a call or at the end they are debris."""

RECOVERY: Final = MarkupGrammar(
    (BARE_JSON, CLOSED_JSON, BARE_FUNCTION, BARE_NAMED, BARE_ELEMENT, ECHO, WRAPPED), closers=ENDS_OF_TURN
)
