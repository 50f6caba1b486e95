"""vLLM's parsers of calls and of reasoning, by toolspeak's readers: `--tool-call-parser toolspeak-hermes`.

vLLM calls `register_parsers` in each of its processes, by the entry point `vllm.general_plugins`. It makes a parser for
each request and choice, feeds it each piece of new text, and asks `finish_streaming` for the rest. It does the latter
for parsers with `engine_based_streaming` only (since vLLM 0.32; `k2_horizon` of vLLM is one too).
"""

# vLLM is not a dependency, so that its types are unknown here. `just model-servers` runs this with the real package.
# pyright: basic, reportMissingImports=false, reportGeneralTypeIssues=false

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from vllm.reasoning import ReasoningParser, ReasoningParserManager
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.tool_parsers import ToolParser, ToolParserManager
from vllm.tool_parsers.structural_tag_registry import SUPPORTED_STRUCTURAL_TAG_MODELS
from vllm.utils.mistral import is_mistral_tokenizer

from toolspeak import dialects
from toolspeak.integrations.marker_tokens import MarkerTokens
from toolspeak.integrations.messages import offered_tools, untrusted_message_texts
from toolspeak.integrations.output_reader import (
    CallDelta,
    Content,
    OutputContext,
    OutputDelta,
    OutputReader,
    read_output,
)
from toolspeak.integrations.reasoning_reader import NOTHING, ReasoningReader, Split, is_opened_by_prompt, read_reasoning
from toolspeak.ir.tool import ChoiceMode, ToolChoice

PREFIX: Final = "toolspeak-"
_CONSTRAINED_AS: Final = {
    "glm": "glm_4_7",
    "hermes": "hermes",
    "kimi": "kimi",
    "kimi_k3": "kimi_k3",
    "llama_json": "llama",
    "longcat": "longcat",
    "qwen_xml": "qwen_3_coder",
}
"""The form in which vLLM can make a model write a call: for strict tools, forced calls, and at most one call. Dialects
of several forms (DeepSeek) and of no one model have none: vLLM makes a model write their forced calls as plain JSON."""
_LOG: Final = logging.getLogger("vllm.toolspeak")  # vLLM shows what is logged below its own name, and nothing else


def register_parsers() -> None:
    """Add a parser of calls and one of reasoning for each dialect. vLLM may call this more than once in a process."""
    if not hasattr(ToolParser, "engine_based_streaming"):
        # An exception here would stop vLLM for users who only have toolspeak installed beside it.
        _LOG.warning("this version of vLLM is too old for toolspeak's parsers, which need 0.32: they are not there")
        return
    for name in dialects.names():
        ToolParserManager.register_module(PREFIX + name, module=tool_parser(name))
        ReasoningParserManager.register_module(PREFIX + name, module=reasoning_parser(name))


def tool_parser(dialect: str) -> type["DialectToolParser"]:
    """Return the class of parsers for the calls of a dialect; the dialect itself is loaded with the first parser."""
    form = _CONSTRAINED_AS.get(dialect)
    members = {
        "dialect": dialect,
        "structural_tag_model": form if form in SUPPORTED_STRUCTURAL_TAG_MODELS else None,
        "__module__": __name__,
    }
    return type(f"DialectToolParser_{dialect}", (DialectToolParser,), members)


def reasoning_parser(dialect: str) -> type["DialectReasoningParser"]:
    """Return the class of parsers for the reasoning of a dialect."""
    bases, members = (DialectReasoningParser,), {"dialect": dialect, "__module__": __name__}
    return type(f"DialectReasoningParser_{dialect}", bases, members)


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
            _keep_markers(request)
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
        untrusted, ids = untrusted_message_texts(_conversation(request)), _new_ids(self.model_tokenizer)
        context = OutputContext(_choice(request), tuple(untrusted), ids, streams_calls)
        return OutputReader(
            dialects.load(self.dialect), offered_tools(getattr(request, "tools", None) or self._offered), context
        )

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


class DialectReasoningParser(ReasoningParser):
    """Splits the reasoning at the beginning of one output off.

    The text decides. Tokens count only where vLLM has nothing else: in the prompt, which may have opened the reasoning
    or closed it, and in the engine, which asks after each token whether a grammar applies yet.
    """

    dialect: ClassVar[str]
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        """Make a parser for one output, or for the engine."""
        super().__init__(tokenizer, *args, **kwargs)
        self._loaded = dialects.load(self.dialect)
        self._markers = MarkerTokens(self._loaded.grammar.reasoning, self.vocab, _encoder(tokenizer))
        self._is_open = False  # by the prompt
        self._stream: ReasoningReader | None = None

    @property
    @override
    def reasoning_start_str(self) -> str | None:
        """The marker that opens the reasoning: the first of the dialect's that this model has."""
        marker = self._markers.first(opens=True)
        return None if marker is None else marker.text

    @property
    @override
    def reasoning_end_str(self) -> str | None:
        """The marker that closes the reasoning."""
        marker = self._markers.first(opens=False)
        return None if marker is None else marker.text

    @override
    def adjust_request(self, request: Any) -> Any:
        """Keep special tokens in the text: in many models the markers of reasoning are such tokens."""
        _keep_markers(request)
        return request

    @override
    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Take the prompt of a stream: its template may have opened the reasoning."""
        self._is_open = self._markers.is_open_after(prompt_token_ids) is True

    @override
    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Return whether the last marker in these tokens closes reasoning."""
        return self._markers.is_open_after(input_ids) is False

    @override
    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Return the same for the latest tokens of an output, without a look at all the others."""
        latest = list(delta_ids)
        before = len(input_ids) - len(latest)
        window = [*input_ids[max(0, before - self._markers.reach) : before], *latest]
        return self._markers.is_open_after(window) is False

    @override
    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Return the tokens after the reasoning; none if it is not closed."""
        end = next((found.end for found in self._markers.find(input_ids) if not found.opens), len(input_ids))
        return input_ids[end:]

    @override
    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Count the tokens of an output between the markers."""
        count, begin, is_open = 0, 0, self._is_open
        for found in self._markers.find(token_ids):
            count += found.start - begin if is_open else 0
            begin, is_open = found.end, found.opens
        return count + (len(token_ids) - begin if is_open else 0)

    @override
    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Split a whole output. vLLM does not show its prompt here, which may have opened the reasoning."""
        is_open = is_opened_by_prompt(self._loaded, model_output, offered_tools(getattr(request, "tools", None) or ()))
        split = read_reasoning(self._loaded, model_output, is_open=is_open)
        return split.reasoning or None, split.content or None

    @override
    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> DeltaMessage | None:
        """Read the next piece of an output; vLLM gives the content of the last one to the parser of calls."""
        if self._stream is None:
            self._stream = ReasoningReader(self._loaded, is_open=self._is_open)
        return _reasoning_message(self._stream.feed(delta_text))

    @override
    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Return whether what follows is content."""
        return self._stream is not None and self._stream.has_ended

    def finish_streaming(self) -> DeltaMessage | None:
        """Take the end of the reasoning, or of the output if that comes first."""
        return None if self._stream is None else _reasoning_message(self._stream.finish())


def _keep_markers(request: Any) -> None:
    """Keep special tokens in the text, and no blanks between them, which vLLM sets with a slow tokenizer (Kimi K3)."""
    request.skip_special_tokens = False
    if hasattr(request, "spaces_between_special_tokens"):  # a request of the Responses API has no such setting
        request.spaces_between_special_tokens = False


def _encoder(tokenizer: Any) -> Callable[[str], Sequence[int]] | None:
    encode = getattr(tokenizer, "encode", None)
    return None if encode is None else lambda text: encode(text, add_special_tokens=False)


def _reasoning_message(split: Split) -> DeltaMessage | None:
    if split == NOTHING:
        return None
    return DeltaMessage(reasoning=split.reasoning or None, content=split.content or None)


def _tool_call(delta: CallDelta) -> DeltaToolCall:
    if not delta.name:
        return DeltaToolCall(index=delta.index, function=DeltaFunctionCall(arguments=delta.json))
    function = DeltaFunctionCall(name=delta.name, arguments=delta.json)
    return DeltaToolCall(index=delta.index, id=delta.id, type="function", function=function)


def _choice(request: Any) -> ToolChoice:
    """Return the tool choice. A forced call is in the grammar that vLLM makes the model keep to, or read by vLLM."""
    mode = ChoiceMode.NONE if getattr(request, "tool_choice", None) == "none" else ChoiceMode.AUTO
    return ToolChoice(mode, parallel=getattr(request, "parallel_tool_calls", None) is not False)


def _conversation(request: Any) -> Any:
    """Return the messages of a chat completion, or the input of a response."""
    return getattr(request, "messages", None) or getattr(request, "input", None) or ()


def _new_ids(tokenizer: Any) -> Iterator[str]:
    """Yield new ids. Mistral's tokenizer rejects a history with ids that do not have nine letters or digits."""
    if is_mistral_tokenizer(tokenizer):
        from vllm.parser.mistral import MistralToolCall  # noqa: PLC0415 (it imports mistral_common, an extra of vLLM)

        return iter(MistralToolCall.generate_random_id, "")
    return iter(make_tool_call_id, "")
