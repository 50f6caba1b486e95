"""vLLM's parsers, one question per line; runs in the Python of vLLM's own environment.

    {"parser", "reasoning", "prompt", "template", "tools", "text", "ids", "special", "token", "streams": {way: deltas}}
    -> {way: answer}

It follows vLLM's server: `ParserManager` joins the call parser and the reasoning parser, `parse` reads a whole
output, `parse_delta` each delta with the ids of its tokens. `prompt` is how the prompt ended: it may have opened the
reasoning. `template` holds the request's template options. `special` and `token` (a pattern) make the tokenizer;
for gpt-oss the real one is here, and `ids` are the tokens that the model wrote, if they are known.
"""

import itertools
import json
import logging
import re
import sys
from importlib import import_module
from typing import Any

from testkit.stubs import VLLM, replace


class Tokenizer:
    """Gives each piece of text an id; pieces that are known from the start are special tokens."""

    def __init__(self, special: list[str], token: str) -> None:
        self.token = re.compile(token)
        self.supports_grammar = "[ARGS]" in special  # so do Mistral's since version 11, which has this token
        self.ids = {token: number for number, token in enumerate(special)}
        self.texts = list(special)
        self.all_special_tokens = special

    def get_vocab(self) -> dict[str, int]:
        return self.ids

    def id_of(self, piece: str) -> int:
        if piece not in self.ids:
            self.ids[piece] = len(self.texts)
            self.texts.append(piece)
        return self.ids[piece]

    def convert_tokens_to_ids(self, token: str) -> int:
        return self.id_of(token)

    def encode(self, text: str, **_: Any) -> list[int]:
        return [self.id_of(piece) for piece in self.token.findall(text)]

    def decode(self, ids: Any, **_: Any) -> str:
        return "".join(self.texts[each] for each in ([ids] if isinstance(ids, int) else ids))


def answer(reasoning: str | None, content: str | None, calls: list[Any]) -> dict[str, Any]:
    named = [{"name": call[0], "arguments": call[1]} for call in calls]
    return {"reasoning": reasoning or "", "text": content or "", "calls": named}


def whole(parser: Any, request: Any, text: str, ids: list[int]) -> dict[str, Any]:
    reasoning, content, found = parser.parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
    calls: list[Any] = found or []
    return answer(reasoning, content, [(call.name, call.arguments) for call in calls])


def streamed(parser: Any, request: Any, deltas: list[tuple[str, list[int]]], prompt: list[int]) -> dict[str, Any]:
    """Join deltas as a client of the OpenAI protocol joins them: calls by their index."""
    reasoning, text, calls = "", "", dict[int, list[str]]()
    for number, (piece, ids) in enumerate(deltas, 1):
        delta = parser.parse_delta(piece, ids, request, prompt, finished=number == len(deltas))
        if delta is None:
            continue
        reasoning += delta.reasoning or ""
        text += delta.content or ""
        parts: list[Any] = delta.tool_calls or []
        for call in parts:
            entry = calls.setdefault(call.index, ["", ""])
            entry[0] += call.function.name or ""
            entry[1] += call.function.arguments or ""
    return answer(reasoning, text, list(calls.values()))


class Vllm:
    """The parsers, loaded once."""

    def __init__(self) -> None:
        replace(*VLLM)
        self.manager: Any = import_module("vllm.parser").ParserManager
        protocol: Any = import_module("vllm.entrypoints.openai.chat_completion.protocol")
        self.request_class = protocol.ChatCompletionRequest
        self.harmony: Any = import_module("vllm.entrypoints.openai.parser.harmony_utils")

    def answers(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Read one text whole and in each stream; an exception is an answer too."""
        found: dict[str, Any] = {}
        for way in ("whole", *ask["streams"]):
            try:
                found[way] = self.read(ask, way)
            except Exception as error:  # noqa: BLE001 (whatever a parser raises, the server answers with status 500)
                found[way] = {"text": "", "calls": [], "error": repr(error)}
        return found

    def read(self, ask: dict[str, Any], way: str) -> dict[str, Any]:
        is_harmony = ask["parser"] == "openai"
        tokenizer: Any = self.harmony.get_encoding() if is_harmony else Tokenizer(ask["special"], ask["token"])
        tools = [{"type": "function", "function": tool} for tool in ask["tools"]]
        request = self.request_class(model="m", messages=[{"role": "user", "content": "?"}], tools=tools or None)
        joined = self.manager.get_parser(ask["parser"], ask["reasoning"], enable_auto_tools=True, is_harmony=is_harmony)
        parser = joined(tokenizer, request.tools, chat_template_kwargs=ask["template"])
        if is_harmony:
            prompt: list[int] = tokenizer.encode(ask["prompt"], allowed_special="all")
            tokens: list[int] = ask["ids"] or tokenizer.encode(ask["text"], allowed_special="all")
            deltas = [(tokenizer.decode(ids), ids) for ids in grouped(tokens, ask["streams"].get(way, [[""]]))]
        else:
            prompt = tokenizer.encode(ask["prompt"])
            pieces: list[list[str]] = ask["streams"].get(way, [[ask["text"]]])
            deltas = [("".join(delta), [tokenizer.id_of(token) for token in delta]) for delta in pieces]
        if way == "whole":
            return whole(parser, request, ask["text"], [each for _, ids in deltas for each in ids])
        return streamed(parser, request, deltas, prompt)


def grouped(tokens: list[int], like: list[list[str]]) -> list[list[int]]:
    """Join real tokens to deltas of the same sizes, again and again; to one if no sizes are given."""
    found: list[list[int]] = []
    sizes = itertools.cycle([len(delta) for delta in like] if len(like) > 1 else [len(tokens) or 1])
    while tokens:
        size = next(sizes)
        found.append(tokens[:size])
        tokens = tokens[size:]
    return found


def main() -> None:
    logging.disable(logging.CRITICAL)
    vllm = Vllm()
    for line in sys.stdin:
        print(json.dumps(vllm.answers(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
