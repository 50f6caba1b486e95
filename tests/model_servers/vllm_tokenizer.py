"""A tokenizer for vLLM's own tests, which want those of fifty models: they would have to be downloaded.

A marker is one token, and so is a blank or a sign; a word is cut into tokens of at most eight characters. vLLM's own
parsers pass all but a few of the tests with it.
"""

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

SPECIAL: Final = (
    *("<think>", "</think>", "<mm:think>", "</mm:think>", "<seed:think>", "</seed:think>", "<|channel>", "<channel|>"),
    *("<think:opensource>", "</think:opensource>", "<|open|>", "<|close|>", "<|sep|>", "<|turn>", "<turn|>"),
    *("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<response>", "</response>"),
    *("<tool_call>", "</tool_call>", "<tool_calls>", "</tool_calls>", "<function_call>", "<|tool_call|>"),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_argument_begin|>"),
    *("<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_start|>"),
    *("<minimax:tool_call>", "</minimax:tool_call>", "]<]minimax[>["),
    *("<|tool_call>", "<tool_call|>", '<|"|>', "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>"),
    *(
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁sep｜>",
    ),
    *(
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
        "<｜tool_call_begin｜>",
        "<｜tool_call_end｜>",
        "<｜tool_sep｜>",
    ),
    *("｜DSML｜", "<|action_start|>", "<|plugin|>", "<|action_end|>"),
    *("<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"),
    *("<longcat_tool_call>", "</longcat_tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    *("<seed:tool_call>", "</seed:tool_call>", "<start_function_call>", "<end_function_call>", "<escape>"),
    *("<|tool▁calls▁begin|>", "<|im_start|>", "<|im_end|>"),
)
"""The markers that the tests expect in a vocabulary."""
_LONGEST_FIRST: Final = sorted(SPECIAL, key=len, reverse=True)
_TOKEN: Final = re.compile("|".join([*map(re.escape, _LONGEST_FIRST), r"<\|\w+\|>", r" ?\w{1,8}", r"\s", r"\S"]))


class MadeTokenizer:
    """What vLLM's parsers and their tests ask of a tokenizer. A text gets its ids when it is first seen."""

    is_fast = True
    bos_token_id = eos_token_id = None
    eos_token = "<|im_end|>"

    def __init__(self) -> None:
        self.texts = [*SPECIAL, "\n"]
        self.ids = {text: number for number, text in enumerate(self.texts)}
        self.all_special_tokens = list(SPECIAL)
        self.all_special_ids = list(range(len(SPECIAL)))

    @property
    def vocab(self) -> dict[str, int]:
        return self.ids

    def get_vocab(self) -> dict[str, int]:
        return self.ids

    def get_added_vocab(self) -> dict[str, int]:
        return {text: self.ids[text] for text in SPECIAL}

    def tokenize(self, text: str, **_: Any) -> list[str]:
        tokens: list[str] = _TOKEN.findall(text)
        self.add_tokens(tokens)
        return tokens

    def encode(self, text: str, **_: Any) -> list[int]:
        return [self.ids[token] for token in self.tokenize(text)]

    def __call__(self, text: str, **_: Any) -> Any:
        return SimpleNamespace(input_ids=self.encode(text))

    def decode(self, ids: int | Sequence[int], **_: Any) -> str:
        return "".join(self.convert_ids_to_tokens([ids] if isinstance(ids, int) else ids))

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        self.add_tokens([tokens] if isinstance(tokens, str) else tokens)
        return self.ids[tokens] if isinstance(tokens, str) else [self.ids[token] for token in tokens]

    def convert_ids_to_tokens(self, ids: Sequence[int], **_: Any) -> list[str]:
        return [self._text(number) for number in ids]

    def _text(self, number: int) -> str:
        if number < len(self.texts):
            return self.texts[number]
        return next(text for text, known in self.ids.items() if known == number)  # a test has added it to `vocab`

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)

    def add_tokens(self, tokens: Sequence[Any], **_: Any) -> None:
        for token in map(str, tokens):
            if token not in self.ids:
                self.ids[token] = len(self.texts)
                self.texts.append(token)

    def __len__(self) -> int:
        return len(self.texts)
