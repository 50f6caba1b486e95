"""SGLang's detectors of calls and of reasoning, by toolspeak's readers: `--tool-call-parser toolspeak-hermes`.

SGLang calls `register_detectors` in each of its processes, by the entry point `sglang.srt.plugins`, before it reads its
command line. It makes a detector for each request and choice, and gives it the tools with each piece of text. It does
not give it the conversation, so that a call which only repeats the text of a page is not recognised here (SAFE-3).
"""

# SGLang is not a dependency, so that its types are unknown here. `just model-servers` runs this with the real package.
# pyright: basic, reportMissingImports=false, reportGeneralTypeIssues=false

from collections.abc import Iterable
from typing import Any, ClassVar, Final, NoReturn

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import BaseReasoningFormatDetector, ReasoningParser
from sglang.srt.parser.reasoning_parser import StreamingParseResult as ReasoningResult
from typing_extensions import override

from toolspeak import dialects
from toolspeak.integrations.messages import offered_tools
from toolspeak.integrations.output_reader import WHOLE, Content, OutputDelta, OutputReader, read_output
from toolspeak.integrations.reasoning_reader import ReasoningReader, Split, read_reasoning
from toolspeak.text.scan import folded

PREFIX: Final = "toolspeak-"


def register_detectors() -> None:
    """Add detectors for each dialect. SGLang offers all that it finds here on its command line."""
    for name in dialects.names():
        FunctionCallParser.ToolCallParserEnum[PREFIX + name] = call_detector(name)
        ReasoningParser.DetectorMap[PREFIX + name] = reasoning_detector(name)


def call_detector(dialect: str) -> type["DialectDetector"]:
    """Return the class of detectors for the calls of a dialect; the dialect itself is loaded with the first text."""
    return type(f"DialectDetector_{dialect}", (DialectDetector,), {"dialect": dialect, "__module__": __name__})


def reasoning_detector(dialect: str) -> type["DialectReasoningDetector"]:
    """Return the class of detectors for the reasoning of a dialect."""
    bases, members = (DialectReasoningDetector,), {"dialect": dialect, "__module__": __name__}
    return type(f"DialectReasoningDetector_{dialect}", bases, members)


class DialectDetector(BaseFormatDetector):
    """Reads the calls of one dialect in one output."""

    dialect: ClassVar[str]

    def __init__(self) -> None:
        """Make a detector for one output."""
        super().__init__()
        self._stream: OutputReader | None = None

    @override
    def has_tool_call(self, text: str) -> bool:
        """Return whether a text may have a call; if not, the server shows it as it is.

        SGLang logs a warning if there is no call in spite of this, so that it looks for the openers of the dialect. A
        form without one, as bare JSON is, needs at least a bracket.
        """
        grammar, lower = dialects.load(self.dialect).grammar, folded(text)
        openers = [*(special.literal for special in grammar.specials)]
        openers += (opener for wrapper in grammar.wrappers for opener in wrapper.openers or "{[(<")
        return any(folded(opener) in lower for opener in openers)

    @override
    def detect_and_parse(self, text: str, tools: list[Any]) -> StreamingParseResult:
        """Read a whole output."""
        reader = OutputReader(dialects.load(self.dialect), offered_tools(tools), WHOLE)
        content, calls = read_output(reader, text)
        items = [
            ToolCallItem(tool_index=at, name=call.name, parameters=call.arguments) for at, call in enumerate(calls)
        ]
        return StreamingParseResult(normal_text=content, calls=items)

    @override
    def parse_streaming_increment(self, new_text: str, tools: list[Any]) -> StreamingParseResult:
        """Read the next piece of an output; what came before is in the reader."""
        if self._stream is None:
            self._stream = OutputReader(dialects.load(self.dialect), offered_tools(tools))
        return self._result(self._stream.feed(new_text))

    @override
    def finish(self, tools: list[Any]) -> StreamingParseResult:
        """Take the end of the output, which the server announces once."""
        stream, self._stream = self._stream, None
        return self._result(stream.finish() if stream is not None else ())

    def _result(self, deltas: Iterable[OutputDelta]) -> StreamingParseResult:
        content, items = "", list[ToolCallItem]()
        for delta in deltas:
            if isinstance(delta, Content):
                content += delta.text
                continue
            # The server compares these two at the end, and sends arguments that were read and not sent: there are none.
            if delta.name:
                self.prev_tool_call_arr.append({"name": delta.name, "arguments": ""})
                self.streamed_args_for_tool.append("")
                self.current_tool_id, self.current_tool_name_sent = delta.index, True
            self.prev_tool_call_arr[delta.index]["arguments"] += delta.json
            self.streamed_args_for_tool[delta.index] += delta.json
            items.append(ToolCallItem(tool_index=delta.index, name=delta.name or None, parameters=delta.json))
        return StreamingParseResult(normal_text=content, calls=items)

    @override
    def supports_structural_tag(self) -> bool:
        """Return False: SGLang then makes the model write forced calls as a JSON array, and reads them itself."""
        return False

    @override
    def structure_info(self) -> NoReturn:
        """Raise: the server asks for this only where structural tags are supported."""
        raise NotImplementedError


class DialectReasoningDetector(BaseReasoningFormatDetector):
    """Splits the reasoning at the beginning of one output off."""

    dialect: ClassVar[str]

    def __init__(
        self, *, stream_reasoning: bool = True, force_reasoning: bool = False, tokenizer: Any = None, **_: Any
    ) -> None:
        """Make a detector for one output. `force_reasoning` is what the server concludes from the chat template."""
        self._loaded = dialects.load(self.dialect)
        marks = self._loaded.grammar.reasoning
        known = tokenizer.get_vocab() if tokenizer is not None else ()
        mark = next((each for each in marks if each.opener in known), marks[0])
        super().__init__(
            mark.opener,
            mark.closers[0] if mark.closers else "",
            force_reasoning=force_reasoning,
            stream_reasoning=stream_reasoning,
            reasoning_default="explicit_enable_thinking",  # the text decides, unless the request asks for reasoning
        )
        self._stream = ReasoningReader(self._loaded, is_open=force_reasoning)
        self._held = ""  # reasoning, if the client does not want it in pieces

    @override
    def detect_and_parse(self, text: str) -> ReasoningResult:
        """Split a whole output."""
        split = read_reasoning(self._loaded, text, is_open=self.force_reasoning)
        return ReasoningResult(normal_text=split.content, reasoning_text=split.reasoning)

    @override
    def parse_streaming_increment(self, new_text: str) -> ReasoningResult:
        """Read the next piece of an output; the server gives its content to the detector of calls."""
        return self._result(self._stream.feed(new_text), is_whole=self._stream.has_ended)

    @override
    def finish(self) -> ReasoningResult:
        """Take the end of the output."""
        return self._result(self._stream.finish(), is_whole=True)

    def _result(self, split: Split, *, is_whole: bool) -> ReasoningResult:
        self._in_reasoning = not self._stream.has_ended
        reasoning, self._held = self._held + split.reasoning, ""
        if not (is_whole or self.stream_reasoning):
            reasoning, self._held = "", reasoning
        return ReasoningResult(normal_text=split.content, reasoning_text=reasoning)
