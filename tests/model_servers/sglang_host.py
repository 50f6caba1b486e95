"""SGLang reads all cases with toolspeak's parsers; run by the Python of `.venv-sglang`. Prints one line of JSON."""

import json
import logging
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any

from testkit.stubs import SGLANG, replace
from tests.model_servers.readings import Reading, ServerAnswer, compare
from toolspeak.ir.tool import ChoiceMode


class Sglang:
    """SGLang's own way from a model's text to an answer, with the parsers that its entry point has brought."""

    def __init__(self) -> None:
        replace(*SGLANG)
        import_module("sglang.srt.plugins").load_plugins()
        self.parser_class: Any = import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
        self.reasoning_class: Any = import_module("sglang.srt.parser.reasoning_parser").ReasoningParser
        self.tool: Any = import_module("sglang.srt.entrypoints.openai.protocol").Tool

    def parser(self, reading: Reading) -> Any:
        """Return a parser as the server makes it: one without tools if none may be called."""
        offered = [] if reading.choice.mode is ChoiceMode.NONE else reading.definitions
        return self.parser_class([self.tool(**tool) for tool in offered], f"toolspeak-{reading.dialect}")

    def reasoning(self, reading: Reading) -> Any:
        """Return a parser of reasoning as the server makes it: the template tells whether the prompt opens it."""
        if not reading.splits_reasoning:
            return None
        return self.reasoning_class(f"toolspeak-{reading.dialect}", force_reasoning=bool(reading.opener))

    def whole(self, reading: Reading) -> ServerAnswer:
        parser, splitter, text, reasoning = self.parser(reading), self.reasoning(reading), reading.text, ""
        if splitter:
            reasoning, text = splitter.parse_non_stream(text)
        if not parser.has_tool_call(text):
            return ServerAnswer(text, [], reasoning)
        text, calls = parser.parse_non_stream(text)
        return ServerAnswer(text, [(call.name, call.parameters) for call in calls], reasoning)

    def streamed(self, reading: Reading, pieces: Sequence[str]) -> ServerAnswer:
        """Join the items as a client of the OpenAI protocol joins them: calls by their index."""
        parser, splitter = self.parser(reading), self.reasoning(reading)
        splits: list[Any] = [splitter.parse_stream_chunk(piece) for piece in pieces] if splitter else []
        splits += [splitter.parse_stream_end()] if splitter else [("", piece) for piece in pieces]
        results: list[Any] = [parser.parse_stream_chunk(piece) for _, piece in splits if piece]
        text, calls = "", dict[int, list[str]]()
        for normal, items in (*results, parser.parse_stream_end()):
            text += normal or ""
            for item in items:
                if item.tool_index not in calls:
                    assert item.name, item
                    assert item.tool_index == len(calls), item
                entry = calls.setdefault(item.tool_index, ["", ""])
                entry[0] += item.name or ""
                entry[1] += item.parameters or ""
        assert parser.detector.streamed_args_for_tool == [arguments for _, arguments in calls.values()]
        joined = [(name, arguments) for name, arguments in calls.values()]
        return ServerAnswer(text, joined, "".join(part or "" for part, _ in splits))


def main() -> None:
    logging.disable(logging.CRITICAL)
    sglang = Sglang()
    counts = compare(sglang.whole, sglang.streamed, tells_parallel=False)
    print(json.dumps({"server": "sglang", "version": metadata.version("sglang"), **counts}))


if __name__ == "__main__":
    main()
