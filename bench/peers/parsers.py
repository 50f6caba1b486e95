"""The parser of each peer for each case: the parser that its documentation names for the family of models.

A family without a row, or with an empty entry, has no parser there; such cases are counted separately, not as missed.
Parsers of reasoning are used where the text holds reasoning: a server is set up with both.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from toolspeak.ir.tool import Tool

PEERS: Final = ("vllm", "sglang", "@ai-sdk-tool/parser")
THINK: Final = ("<think>", "</think>")


@dataclass(frozen=True)
class ParserRow:
    """The parsers for one family of models: of calls and of reasoning, an empty name if there is none."""

    family: str
    sample: str
    """A well-formed output, which each parser must read right before its figures count: a name in samples.jsonl."""
    vllm: tuple[str, str] = ("", "")
    sglang: tuple[str, str] = ("", "")
    ai_sdk: str = ""
    reasoning: tuple[str, str] = THINK
    """What opens and closes the reasoning; empty if all of the text is in channels."""

    def parser(self, peer: str) -> tuple[str, str]:
        """Return the parsers of calls and of reasoning of a peer."""
        if peer == "@ai-sdk-tool/parser":
            return self.ai_sdk, "think" if self.reasoning == THINK else ""
        return self.vllm if peer == "vllm" else self.sglang


ROWS: Final = (
    ParserRow("Qwen 2.5, Qwen 3", "D01-hermes", ("hermes", "qwen3"), ("qwen", "qwen3"), "hermes"),
    ParserRow(
        "Qwen3-Coder, Qwen 3.5", "D20-qwen3-coder", ("qwen3_xml", "qwen3"), ("qwen3_coder", "qwen3"), "qwen3Coder"
    ),
    ParserRow("Step 3.5", "D20-qwen3-coder", ("step3p5", "step3p5"), ("step3p5", "step3p5"), "qwen3Coder"),
    ParserRow("elements of Cline", "D44-cline", ("qwen3_xml", "qwen3"), ("qwen3_coder", "qwen3"), "morphXml"),
    ParserRow("GLM 4.7, GLM 5", "D24-glm4.7", ("glm47", "glm47"), ("glm47", "glm45")),
    ParserRow("Kimi K2", "D18-kimi-k2", ("kimi_k2", "kimi_k2"), ("kimi_k2", "kimi_k2")),
    ParserRow("MiniMax M2", "D26-minimax-m2", ("minimax_m2", "minimax_m2"), ("minimax-m2", "minimax")),
    ParserRow(
        *("MiniMax M3", "D26-minimax-m3", ("minimax_m3", "minimax_m3"), ("minimax-m3", "minimax-m3")),
        reasoning=("<mm:think>", "</mm:think>"),
    ),
    ParserRow(
        *("Gemma 4", "D37-gemma4", ("gemma4", "gemma4"), ("gemma4", "gemma4")),
        reasoning=("<|channel>", "<channel|>"),
    ),
    ParserRow("gpt-oss", "D38-harmony", ("openai", "openai_gptoss"), ("gpt-oss", "gpt-oss"), reasoning=("", "")),
    ParserRow(
        *("Mistral", "D12-mistral-v13", ("mistral", "mistral"), ("mistral", "mistral")),
        reasoning=("[THINK]", "[/THINK]"),
    ),
    ParserRow("DeepSeek V3.1", "D17-deepseek-v3.1", ("deepseek_v31", "deepseek_v3"), ("deepseekv31", "deepseek-v3")),
    ParserRow("DeepSeek V4", "deepseek-v4", ("deepseek_v4", "deepseek_v4"), ("deepseekv4", "deepseek-v4")),
    ParserRow("DeepSeek V4.1", "deepseek-v4.1", ("deepseek_v41", "deepseek_v41"), ("deepseekv41", "deepseek-v41")),
    ParserRow("Llama 3", "D10-llama-json", ("llama3_json", ""), ("llama3", "")),
    ParserRow("Llama 3.2, pythonic", "D31-pythonic", ("pythonic", ""), ("pythonic", "")),
    ParserRow("xLAM", "xlam", ("xlam", "")),
    ParserRow("Granite 3", "D08-granite3", ("granite", "granite")),
    ParserRow("OLMo 3", "D33-olmo3", ("olmo3", "")),
    ParserRow("ERNIE 4.5", "D01-hermes", ("ernie45", "ernie45")),
    ParserRow("MiniCPM 5", "D28-minicpm5", ("minicpm5", ""), ("minicpm5", "")),
    ParserRow("Intern-S1", "D09-internlm", sglang=("interns1", "interns1")),
    ParserRow(
        *("Apertus", "D09b-apertus", ("apertus", ""), ("apertus2509", "apertus2509")),
        reasoning=("<|inner_prefix|>", "<|inner_suffix|>"),
    ),
    ParserRow(
        *("Command R7B", "D13-command-r7b", ("cohere_command3", "cohere_command3")),
        reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    ParserRow("Hunyuan 3", "D25-hy3", ("hy_v3", "hy_v3"), ("hunyuan", "hunyuan")),
    ParserRow("LFM 2", "D34-lfm2", ("lfm2", ""), ("lfm2", "")),
)

DSML_SAMPLE: Final = (
    '<｜DSML｜{0}calls>\n<｜DSML｜{1}invoke name="find_bus">\n'
    '<｜DSML｜{1}parameter name="stop" string="true">Oslo S</｜DSML｜{1}parameter>\n'
    '<｜DSML｜{1}parameter name="limit" string="false">2</｜DSML｜{1}parameter>\n'
    "</｜DSML｜{1}invoke>\n</｜DSML｜{0}calls>"
)
EXTRA_SAMPLES: Final = {
    "deepseek-v4": DSML_SAMPLE.format("tool_", ""),
    "deepseek-v4.1": DSML_SAMPLE.format(" ", " "),
    "xlam": '[{"name": "find_bus", "arguments": {"stop": "Oslo S", "limit": 2}}]',
}
"""Samples that are not in samples.jsonl: one call of `find_bus` for the stop "Oslo S" with the limit 2."""

BY_MODEL: Final = (
    (r"xlam", "xLAM"),
    (r"ernie", "ERNIE 4.5"),
    (r"step-3", "Step 3.5"),
    (r"minimax-m3", "MiniMax M3"),
    (r"deepseek-v4\.1", "DeepSeek V4.1"),
    (r"qwen3\.[56]", "Qwen3-Coder, Qwen 3.5"),
)
"""Models whose format does not determine the parser; the first match counts."""

BY_DIALECT: Final = {
    "hermes": "Qwen 2.5, Qwen 3",
    "qwen_xml": "Qwen3-Coder, Qwen 3.5",
    "cline": "elements of Cline",
    "glm": "GLM 4.7, GLM 5",  # the cases of GLM 4.6 too: their texts are in the form of 4.7, without line breaks
    "kimi": "Kimi K2",
    "minimax": "MiniMax M2",
    "gemma": "Gemma 4",
    "harmony": "gpt-oss",
    "mistral": "Mistral",
    "deepseek": "DeepSeek V3.1",
    "dsml": "DeepSeek V4",
    "llama_json": "Llama 3",
    "pythonic": "Llama 3.2, pythonic",
    "granite": "Granite 3",
    "olmo": "OLMo 3",
    "minicpm": "MiniCPM 5",
    "internlm": "Intern-S1",
    "apertus": "Apertus",
    "cohere": "Command R7B",
    "hy3": "Hunyuan 3",
    "lfm2": "LFM 2",
}
"""The family that writes a dialect; the others have no parser at any peer."""


def row_of(model: str, dialect: str) -> ParserRow | None:
    """Return the row for a model that writes this dialect."""
    named = (family for pattern, family in BY_MODEL if re.search(pattern, model, re.IGNORECASE))
    family = next(named, BY_DIALECT.get(dialect, ""))
    return next((row for row in ROWS if row.family == family), None)


SPECIAL: Final = (
    *("<think>", "</think>", "<mm:think>", "</mm:think>", "[THINK]", "[/THINK]", "<response>", "</response>"),
    *("<tool_call>", "</tool_call>", "<tool_calls>", "</tool_calls>", "<tool_sep>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>"),
    *("<|tool_call_argument_begin|>", "<minimax:tool_call>", "</minimax:tool_call>", "]<]minimax[>["),
    *("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>"),
    *("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "<|python_tag|>", "<|tool_call|>"),
    *(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁sep｜>",
    ),
    *("｜DSML｜", "<|tool_call_start|>", "<|tool_call_end|>", "<|action_start|>", "<|plugin|>", "<|action_end|>"),
    *("<|inner_prefix|>", "<|inner_suffix|>", "<|tools_prefix|>", "<|tools_suffix|>"),
    *("<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>"),
    *("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "\n"),
)
"""What is one token for the models of these families: a server never cuts there, and parsers look for the ids."""
COMMON_PIECES: Final = (r"<\|\w+\|>", r" ?\w{1,8}", r'\{"|":|",|"\}', r"\s", r"\S")
"""What surrounds keys and strings in JSON is mostly one token: the vocabularies of gpt-oss, Mistral v3 and Tekken never
cut `":` in the fixtures of canitoolcall, and `"}` now and then. vLLM's parser for the old Mistral misreads a delta that
begins with `:`, which its tokenizer does not make there."""
TOKEN: Final = re.compile("|".join([*map(re.escape, sorted(SPECIAL, key=len, reverse=True)), *COMMON_PIECES]))


def tokens(text: str) -> list[str]:
    """Cut a text as a tokenizer would: special tokens whole, words in short pieces."""
    return TOKEN.findall(text)


def deltas(text: str, seed: str, most: int) -> list[list[str]]:
    """Join tokens to deltas, each of at most so many, by chance: servers that decode speculatively send several."""
    source, rest, found = Random(seed), tokens(text), list[list[str]]()
    while rest:
        size = source.randint(1, most)
        found.append(rest[:size])
        del rest[:size]
    return found


@dataclass(frozen=True)
class Question:
    """A text for the parsers of a peer, with what its server knows from the request and the prompt."""

    text: str
    tools: tuple[Tool, ...]
    seed: str
    """Decides the random deltas."""
    prompt: str
    """How the prompt ended."""
    thinking: bool | None
    """Whether the request asks the template for reasoning, or not, or does not say."""
    opened: bool
    """Whether the prompt has opened the reasoning."""
    follows_request: bool = False
    """Whether SGLang concludes from the request, as its server does, that the reasoning is open; else by `opened`."""
    stop: str = ""
    """The token that ended the output, which is not in the text."""
    ids: tuple[int, ...] = ()
    """The tokens of the output in the vocabulary of the model, if they are known."""
    special: tuple[str, ...] = SPECIAL

    def ask(self, parser: str, reasoning: str, ways: Mapping[str, int]) -> dict[str, Any]:
        """Return what an adapter reads."""
        return {
            "parser": parser,
            "reasoning": reasoning or None,
            "prompt": self.prompt,
            "opened": self.opened,
            "forced": None if self.follows_request else self.opened,
            "template": {} if self.thinking is None else {"thinking": self.thinking, "enable_thinking": self.thinking},
            "stop": self.stop,
            "tools": [{"name": tool.name, "parameters": tool.parameters} for tool in self.tools],
            "text": self.text,
            "streams": {way: deltas(self.text, self.seed, most) for way, most in ways.items() if most},
            "ids": self.ids,
            "special": self.special,
            "token": TOKEN.pattern,
        }


def opened_reasoning(text: str, marks: Iterable[str]) -> tuple[bool, str]:
    """Return whether a text holds reasoning; if only its closer is here, also the opener that the prompt ended with."""
    opener, closer = marks
    if not opener:
        return True, ""
    at, end = text.find(opener), text.find(closer)
    return at >= 0 or end >= 0, opener if end >= 0 and not 0 <= at < end else ""
