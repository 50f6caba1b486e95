"""vLLM's parsers of calls and of reasoning, by toolspeak's readers: `--tool-call-parser toolspeak-hermes`.

vLLM calls `register` in each of its processes, by the entry point `vllm.general_plugins`. It makes a parser for each
request and choice, feeds it each piece of new text, and asks `finish_streaming` for the rest, which it does for parsers
with `engine_based_streaming` only (since vLLM 0.32; `k2_horizon` of vLLM does the same).
"""

# vLLM is not a dependency, so that its types are unknown here. `just model-servers` runs this with the real package.
# pyright: basic, reportMissingImports=false, reportGeneralTypeIssues=false

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override
from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.tool_parsers import ToolParser, ToolParserManager
from vllm.utils.mistral import is_mistral_tokenizer

from toolspeak import dialects
from toolspeak.integrations.messages import offered_tools, untrusted_texts
from toolspeak.integrations.output_reader import (
    CallDelta,
    Content,
    OutputContext,
    OutputDelta,
    OutputReader,
    read_output,
)
from toolspeak.ir.tool import ChoiceMode, ToolChoice

PREFIX: Final = "toolspeak-"
_LOG: Final = logging.getLogger(__name__)


def register() -> None:
    """Add a parser of calls for each dialect. vLLM may call this more than once in a process."""
    if not hasattr(ToolParser, "engine_based_streaming"):
        # An exception here would stop vLLM for users who only have toolspeak installed beside it.
        _LOG.warning("this version of vLLM is too old for toolspeak's parsers, which need 0.32: they are not there")
        return
    for name in dialects.names():
        ToolParserManager.register_module(PREFIX + name, module=tool_parser(name))


def tool_parser(dialect: str) -> type["DialectToolParser"]:
    """Return the class of parsers for the calls of a dialect; the dialect itself is loaded with the first parser."""
    return type(f"DialectToolParser_{dialect}", (DialectToolParser,), {"dialect": dialect, "__module__": __name__})


class DialectToolParser(ToolParser):
    """Reads the calls of one dialect in one output."""

    dialect: ClassVar[str]
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        """Make a parser for one output. vLLM also makes one without tools when it starts, to check the tokenizer."""
        super().__init__(tokenizer, tools)
        self._offered = tools or []
        self._stream: OutputReader | None = None

    @override
    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the text: in many models the markers of calls are such tokens."""
        request = super().adjust_request(request)
        if request.tools and request.tool_choice != "none":
            request.skip_special_tokens = False
        return request

    @override
    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Read a whole output."""
        reader = self._reader(request, streams_calls=False)
        content, calls = read_output(reader, model_output)
        self._log_complaints(reader)
        return ExtractedToolCallInformation(
            tools_called=bool(calls),
            tool_calls=[
                ToolCall(id=call.id, function=FunctionCall(name=call.name, arguments=call.arguments)) for call in calls
            ],
            content=content or None,
        )

    @override
    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Read the next piece of an output; what came before is in the reader."""
        if self._stream is None:
            self._stream = self._reader(request, streams_calls=True)
        return self._message(self._stream.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """Take the end of the output, which vLLM announces once."""
        stream, self._stream = self._stream, None
        if stream is None:
            return None
        message = self._message(stream.finish())
        self._log_complaints(stream)
        return message

    def _reader(self, request: Any, *, streams_calls: bool) -> OutputReader:
        untrusted, ids = untrusted_texts(_conversation(request)), _new_ids(self.model_tokenizer)
        context = OutputContext(_choice(request), tuple(untrusted), ids, streams_calls)
        return OutputReader(dialects.load(self.dialect), offered_tools(request.tools or self._offered), context)

    def _message(self, deltas: Iterable[OutputDelta]) -> DeltaMessage | None:
        content, calls = "", list[DeltaToolCall]()
        for delta in deltas:
            if isinstance(delta, Content):
                content += delta.text
            else:
                self._note(delta)
                if calls and calls[-1].index == delta.index:
                    calls[-1].function.arguments = (calls[-1].function.arguments or "") + delta.json
                else:
                    calls.append(_tool_call(delta))
        return DeltaMessage(content=content or None, tool_calls=calls) if content or calls else None

    def _note(self, delta: CallDelta) -> None:
        """Keep what has left, as the base class and the server look for arguments that were read and not sent."""
        if delta.name:
            self.prev_tool_call_arr.append({"name": delta.name, "arguments": ""})
            self.streamed_args_for_tool.append("")
            self.current_tool_id, self.current_tool_name_sent = delta.index, True
        self.prev_tool_call_arr[delta.index]["arguments"] += delta.json
        self.streamed_args_for_tool[delta.index] += delta.json

    def _log_complaints(self, reader: OutputReader) -> None:
        # The text of a call may be private: the problem and the tool are enough to find a bad schema or a weak model.
        for complaint in reader.complaints:
            _LOG.info("%s%s left a call in the text: %s %s", PREFIX, self.dialect, complaint.problem, complaint.name)


def _tool_call(delta: CallDelta) -> DeltaToolCall:
    if not delta.name:
        return DeltaToolCall(index=delta.index, function=DeltaFunctionCall(arguments=delta.json))
    function = DeltaFunctionCall(name=delta.name, arguments=delta.json)
    return DeltaToolCall(index=delta.index, id=delta.id, type="function", function=function)


def _choice(request: Any) -> ToolChoice:
    """Return the tool choice. vLLM reads forced calls itself: it has made the model write them as plain JSON."""
    mode = ChoiceMode.NONE if request.tool_choice == "none" else ChoiceMode.AUTO
    return ToolChoice(mode, parallel=request.parallel_tool_calls is not False)


def _conversation(request: Any) -> Any:
    """Return the messages of a chat completion, or the input of a response."""
    return getattr(request, "messages", None) or getattr(request, "input", None) or ()


def _new_ids(tokenizer: Any) -> Iterator[str]:
    """Yield new ids. Mistral's tokenizer rejects a history with ids that do not have nine letters or digits."""
    if is_mistral_tokenizer(tokenizer):
        from vllm.parser.mistral import MistralToolCall  # noqa: PLC0415 (it imports mistral_common, an extra of vLLM)

        return iter(MistralToolCall.generate_random_id, "")
    return iter(make_tool_call_id, "")
