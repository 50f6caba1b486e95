"""SGLang's parsers, one question per line; runs in the Python of SGLang's own environment.

    {"parser", "reasoning", "forced", "template", "stop", "tools", "text", "streams": {way: deltas}} -> {way: answer}

It follows SGLang's server (`serving_chat.py`): the reasoning parser first, then the call parser on the rest; at the
end both flush, and arguments that were parsed but not streamed follow. `forced` says whether the output begins inside
the reasoning; null leaves that to the server's own rule, which looks at the request (`template`). `stop` is the token
that ended the output: the server leaves it in the text for gpt-oss only.
"""

import json
import logging
import sys
from importlib import import_module
from typing import Any

from testkit.stubs import SGLANG, replace


class Sglang:
    """The parsers, loaded once."""

    def __init__(self) -> None:
        replace(*SGLANG)
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
            forced: bool | None = ask["forced"]
            if forced is None:
                forced = is_forced(self.reasoning(**given).detector.reasoning_default, ask["template"])
            reasoning = self.reasoning(**given, force_reasoning=forced)
        return reasoning, self.calls(tools, ask["parser"])

    def whole(self, ask: dict[str, Any]) -> dict[str, Any]:
        reasoning, parser = self.parsers(ask, streams=False)
        text: str = ask["text"] + kept_stop(ask)
        thought: str | None = ""
        if reasoning:
            thought, text = reasoning.parse_non_stream(text)
            text = text or ""
        calls: list[Any] = []
        if parser.has_tool_call(text):
            try:
                text, calls = parser.parse_non_stream(text)
            except Exception:  # noqa: BLE001 (the server logs it and shows the text)
                calls = []
        return answer(thought, text, [[call.name, call.parameters] for call in calls])

    def streamed(self, ask: dict[str, Any], deltas: list[list[str]]) -> dict[str, Any]:
        """Join deltas as a client of the OpenAI protocol joins them: calls by their index."""
        reasoning, parser = self.parsers(ask, streams=True)
        thought, shown, calls = "", "", dict[int, list[str]]()
        nothing: tuple[str, list[Any]] = ("", [])
        for number, delta in enumerate(deltas, 1):
            is_last = number == len(deltas)
            text = "".join(delta) + (kept_stop(ask) if is_last else "")
            if reasoning:
                parsed: list[Any] = [reasoning.parse_stream_chunk(text)]
                parsed += [reasoning.parse_stream_end()] if is_last else []
                thought += "".join(part or "" for part, _ in parsed)
                text = "".join(part or "" for _, part in parsed)
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
        return answer(thought, shown, list(calls.values()))


def answer(reasoning: str | None, text: str, calls: list[list[str]]) -> dict[str, Any]:
    named = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return {"reasoning": reasoning or "", "text": text, "calls": named}


def is_forced(default: str, template: dict[str, bool]) -> bool:
    """Return whether SGLang takes the output to begin inside the reasoning: `_get_reasoning_from_request`.

    For Mistral the server looks at the effort, which a request for reasoning sets.
    """
    toggle = default.removeprefix("explicit_")
    if toggle not in ("thinking", "enable_thinking"):
        return default == "always" or (default == "mistral" and template.get("thinking") is True)
    return template.get(toggle) is True if toggle != default else template.get(toggle) is not False


def kept_stop(ask: dict[str, Any]) -> str:
    stop: str = ask["stop"] if ask["parser"] == "gpt-oss" else ""
    return stop


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
