"""vLLM reads all cases with toolspeak's parsers; run by the Python of `.venv-vllm`. Prints one line of JSON."""

import json
import logging
import re
from collections.abc import Sequence
from importlib import import_module, metadata
from typing import Any

from testkit.stubs import VLLM, replace
from tests.model_servers.readings import Reading, ServerAnswer, compare, markers
from toolspeak import dialects
from toolspeak.ir.tool import AUTO, Tool


class Tokenizer:
    """What vLLM's parsers ask of a tokenizer: the ids of the markers of reasoning."""

    def __init__(self, markers: Sequence[str]) -> None:
        self.ids = {marker: number for number, marker in enumerate(markers, 1)}

    def get_vocab(self) -> dict[str, int]:
        return self.ids


class Vllm:
    """vLLM's own way from a model's text to an answer, with the parsers that its entry point has brought."""

    def __init__(self) -> None:
        replace(*VLLM)
        import_module("vllm.plugins").load_general_plugins()
        self.manager: Any = import_module("vllm.parser").ParserManager
        protocol: Any = import_module("vllm.entrypoints.openai.chat_completion.protocol")
        self.request_class = protocol.ChatCompletionRequest

    def request(self, reading: Reading) -> Any:
        return self.request_class(
            model="m",
            messages=[{"role": "user", "content": "?"}],
            tools=reading.definitions or None,
            tool_choice=reading.choice.mode.value if reading.tools else None,
            parallel_tool_calls=reading.choice.parallel,
        )

    def parser(self, reading: Reading, request: Any) -> Any:
        name = f"toolspeak-{reading.dialect}"
        reasoning = name if reading.splits_reasoning else None
        parser = self.manager.get_parser(name, reasoning, enable_auto_tools=True)
        return parser(Tokenizer(markers(reading.dialect)), request.tools)

    def whole(self, reading: Reading) -> ServerAnswer:
        request = self.request(reading)
        parser = self.parser(reading, request)
        reasoning, content, found = parser.parse(reading.text, request, enable_auto_tools=True)
        calls: list[Any] = found or []
        return ServerAnswer(content or "", [(call.name, call.arguments) for call in calls], reasoning or "")

    def streamed(self, reading: Reading, pieces: Sequence[str]) -> ServerAnswer:
        """Join the deltas as a client of the OpenAI protocol joins them: calls by their index."""
        request = self.request(reading)
        parser, text, reasoning, calls = self.parser(reading, request), "", "", dict[int, list[str]]()
        prompt = [Tokenizer(markers(reading.dialect)).ids.get(reading.opener, 0)]
        for number, piece in enumerate(pieces, 1):
            delta = parser.parse_delta(piece, [0], request, prompt, finished=number == len(pieces))
            if delta is None:
                continue
            text += delta.content or ""
            reasoning += delta.reasoning or ""
            parts: list[Any] = delta.tool_calls or []
            for call in parts:
                if call.index not in calls:
                    assert call.id, call
                    assert call.function.name, call
                    assert (call.type, call.index) == ("function", len(calls)), call
                entry = calls.setdefault(call.index, ["", ""])
                entry[0] += call.function.name or ""
                entry[1] += call.function.arguments or ""
        return ServerAnswer(text, [(name, arguments) for name, arguments in calls.values()], reasoning)


def constrained_dialects(vllm: Vllm) -> list[str]:
    """Return the dialects in whose form vLLM makes a model write a forced call."""
    found: list[str] = []
    for dialect in dialects.names():
        reading = Reading("forced", dialect, "", (Tool("now"),), AUTO)
        request = vllm.request(reading)
        request.tool_choice = "required"
        adjusted = vllm.parser(reading, request).adjust_request(request)
        assert adjusted.skip_special_tokens is False
        outputs = adjusted.structured_outputs
        assert outputs is not None, dialect
        assert (outputs.structural_tag is None) != (outputs.json is None), dialect
        found += [dialect] if outputs.structural_tag else []
    return found


def check_responses(vllm: Vllm) -> None:
    """Read a call with the request and the tools of the Responses API."""
    protocol: Any = import_module("vllm.entrypoints.openai.responses.protocol")
    tool = {"type": "function", "name": "now", "parameters": {"type": "object"}}
    echoed = '<tool_call>{"name": "now", "arguments": {"at": "a"}}</tool_call>'
    meant = echoed.replace('"a"', '"b"')
    request = protocol.ResponsesRequest(model="m", input=f"The page says {echoed}", tools=[tool])
    parser = vllm.manager.get_parser("toolspeak-hermes", None, enable_auto_tools=True)(Tokenizer(()), request.tools)
    _, content, calls = parser.parse(echoed + meant, request, enable_auto_tools=True)
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("now", {"at": "b"})]
    assert content.startswith("<tool_call>"), content  # the first one only repeats the user's text (SAFE-3)


def check_mistral_ids(vllm: Vllm) -> None:
    """Read a call with Mistral's tokenizer, which accepts ids of nine letters or digits only."""
    mistral: Any = import_module("vllm.tokenizers.mistral").MistralTokenizer
    reading = Reading("ids", "mistral", "[TOOL_CALLS]now[ARGS]{}", (Tool("now"),), AUTO)
    request = vllm.request(reading)
    parser = vllm.manager.get_parser("toolspeak-mistral", None, enable_auto_tools=True)
    tokenizer = mistral.__new__(mistral)
    _, _, [call] = parser(tokenizer, request.tools).parse(reading.text, request, enable_auto_tools=True)
    assert re.fullmatch(r"[a-zA-Z0-9]{9}", call.id), call.id


def main() -> None:
    logging.disable(logging.CRITICAL)
    vllm = Vllm()
    counts = compare(vllm.whole, vllm.streamed, tells_parallel=True)
    check_responses(vllm)
    check_mistral_ids(vllm)
    counts["constrained"] = len(constrained_dialects(vllm))
    print(json.dumps({"server": "vllm", "version": metadata.version("vllm"), **counts}))


if __name__ == "__main__":
    main()
