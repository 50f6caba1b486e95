"""SGLang's parsers, one question a line: run by the Python of SGLang's own environment.

    {"parser", "reasoning", "opened", "tools", "text", "streams": {way: deltas}} -> {way: answer}

It goes the way of SGLang's server (`serving_chat.py`): the parser of reasoning first, that of calls on the rest; at the
end both flush, and arguments that were parsed but not streamed follow.
"""

import json
import logging
import sys
from importlib import import_module
from typing import Any

from stubs import replace

STUBBED = (
    *("torch", "triton", "IPython"),
    *("sglang.lang", "sglang.srt.platforms", "sglang.srt.utils.hf_transformers_patches"),
)


class Sglang:
    """The parsers, loaded once."""

    def __init__(self) -> None:
        replace(*STUBBED)
        self.calls: Any = import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
        self.reasoning: Any = import_module("sglang.srt.parser.reasoning_parser").ReasoningParser
        self.tool: Any = import_module("sglang.srt.entrypoints.openai.protocol").Tool

    def answers(self, ask: dict[str, Any]) -> dict[str, Any]:
        """Read one text whole and in each stream; an exception is an answer too."""
        found: dict[str, Any] = {}
        for way in ("whole", *ask["streams"]):
            try:
                found[way] = self.whole(ask) if way == "whole" else self.streamed(ask, ask["streams"][way])
            except Exception as error:  # noqa: BLE001 (whatever a parser raises)
                found[way] = {"text": "", "calls": [], "error": repr(error)}
        return found

    def parsers(self, ask: dict[str, Any], *, streams: bool) -> tuple[Any, Any]:
        tools = [self.tool(type="function", function=tool) for tool in ask["tools"]]
        reasoning = None
        if ask["reasoning"]:
            given = {"model_type": ask["reasoning"], "stream_reasoning": streams, "tool_call_parser_active": True}
            reasoning = self.reasoning(**given, force_reasoning=bool(ask["opened"]))
        return reasoning, self.calls(tools, ask["parser"])

    def whole(self, ask: dict[str, Any]) -> dict[str, Any]:
        reasoning, parser = self.parsers(ask, streams=False)
        text: str = reasoning.parse_non_stream(ask["text"])[1] or "" if reasoning else ask["text"]
        calls: list[Any] = []
        if parser.has_tool_call(text):
            try:
                text, calls = parser.parse_non_stream(text)
            except Exception:  # noqa: BLE001 (the server logs it and shows the text)
                calls = []
        return {"text": text, "calls": [{"name": call.name, "arguments": call.parameters} for call in calls]}

    def streamed(self, ask: dict[str, Any], deltas: list[list[str]]) -> dict[str, Any]:
        """Join deltas as a client of the OpenAI protocol joins them: calls by their index."""
        reasoning, parser = self.parsers(ask, streams=True)
        shown, calls = "", dict[int, list[str]]()
        nothing: tuple[str, list[Any]] = ("", [])
        for number, delta in enumerate(deltas, 1):
            is_last, text = number == len(deltas), "".join(delta)
            if reasoning:
                text = reasoning.parse_stream_chunk(text)[1] or ""
                text += (reasoning.parse_stream_end()[1] or "") if is_last else ""
            normal, items = parser.parse_stream_chunk(text) if text else nothing
            end, rest = parser.parse_stream_end() if is_last else nothing
            shown += (normal or "") + (end or "")
            parts: list[Any] = [*items, *rest]
            for item in parts:
                entry = calls.setdefault(item.tool_index, ["", ""])
                entry[0] += item.name or ""
                entry[1] += item.parameters or ""
        index, missing = unstreamed(parser.detector)
        if index in calls:
            calls[index][1] += missing
        return {"text": shown, "calls": [{"name": call[0], "arguments": call[1]} for call in calls.values()]}


def unstreamed(detector: Any) -> tuple[int, str]:
    """Return the arguments of the last call that were parsed and not sent, as the server sends them at the end."""
    parsed: list[Any] = getattr(detector, "prev_tool_call_arr", None) or []
    sent: list[str] = getattr(detector, "streamed_args_for_tool", None) or []
    index = len(parsed) - 1
    if not 0 <= index < len(sent):
        return -1, ""
    arguments = parsed[index].get("arguments", {})
    expected: str = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return index, expected[len(sent[index]) :] if expected.startswith(sent[index]) else ""


def main() -> None:
    logging.disable(logging.CRITICAL)
    sglang = Sglang()
    for line in sys.stdin:
        print(json.dumps(sglang.answers(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
