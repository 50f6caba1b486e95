"""Creates the readers and the prompt of one turn from its request and its plan."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count, filterfalse, islice
from typing import Final

from toolspeak.dialects import Dialect, ReadOptions, installed, load, load_together
from toolspeak.engine.answer import ANSWER, offered_name
from toolspeak.engine.answer_reader import NOTHING_ANSWERED, AnswerReader, ReaderParts, StopText, answered_calls
from toolspeak.engine.constraint import Constraining
from toolspeak.engine.effects import QUESTION
from toolspeak.engine.guard import Echo, Guard
from toolspeak.engine.guardrails.guardrail import GuardedConversation, latest_words
from toolspeak.engine.loose_calls import decided_calls, decision_in, loose_calls
from toolspeak.engine.memory import known_tools
from toolspeak.engine.narration import announces_call, copied_call, written_call
from toolspeak.engine.plan import ANY_DIALECT, Plan
from toolspeak.engine.prompt import Prompt, Taught, compacted, dialect_of, untrusted_texts, writer_of
from toolspeak.engine.refusal import RefusalWatch
from toolspeak.engine.shortlist import named_only, shortlist
from toolspeak.engine.tactics import Name
from toolspeak.engine.trouble import Kind, Trouble, must_call
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import DEFAULT_DIALECT, UNKNOWN_MODEL, ModelFacts
from toolspeak.ir.event import Usage
from toolspeak.ir.message import Call, Role
from toolspeak.ir.request import Request
from toolspeak.ir.tool import ChoiceMode, Tool
from toolspeak.toolset.check import CallChecker, CallIds
from toolspeak.toolset.memo import Memo
from toolspeak.toolset.toolset import ToolSet

MOST_CALLS: Final = 128
"""Calls in one turn. A small model that repeats itself writes calls until its token limit (P7)."""
_LONGEST_RELAPSE: Final = 64 * 1024
"""Characters of a call from which its form is not looked at."""
_BYTES_PER_TOKEN, _LEAST_TOOLS = 12, 1200
"""Bytes of tools that a token of a prompt stands for at most; the size from which tools are compared with it."""
_TAUGHT: Final = Memo[Taught]()
"""Contracts by the tuple of the tools: an agent sends the same tools in every turn."""


class ReaderFactory:
    """Makes a new reader for each answer of a turn."""

    def __init__(self, request: Request, plan: Plan, ids: Iterator[str], remembered: Iterable[Tool]) -> None:
        """Take the request as the client sent it."""
        self._request, self._plan, self._ids = request, plan, CallIds(ids)
        self.tools: Final = known_tools(request, remembered)
        """The client's tools that the model may call."""
        self._answer_tool = _answer_tool(plan, request, self.tools)
        self._echo = Echo(untrusted_texts(request))
        # A client that demands a call may well want the same one again, so nothing counts as repeated.
        self._answered = NOTHING_ANSWERED if must_call(request.choice) else answered_calls(request.messages)
        self._copied = ""

    def allow_repeats(self) -> None:
        """Deliver repeated calls from now on: the model was asked about one, and insists."""
        self._answered = NOTHING_ANSWERED

    def prompt(self) -> Prompt:
        """Return the writer of emulated requests."""
        plan, dialect = self._plan, dialect_of(self._plan)
        guard = Guard(dialect, plan.settings.key or "")
        return Prompt(plan, dialect, self._taught(dialect, guard), guard)

    def _taught(self, dialect: Dialect, guard: Guard) -> Taught:
        """Return the guarded and shortened tools with their contract, from a cache if the same tools came before."""
        plan = self._plan
        # Everything that changes the bytes of the contract is part of the key. Without the keyed marker in it, one
        # conversation would be taught the markers of another.
        tokens = plan.facts.context_tokens
        detailed = shortlist(self.tools, self._request, plan.settings.detailed_tools or 0)
        chosen = () if len(detailed) == len(self.tools) else tuple(tool.name for tool in detailed)
        more = (dialect.name, plan.settings.key, tokens, *chosen, *(tool.name for tool in self._answer_tool))
        known = _TAUGHT.find(self.tools, more)
        if known is not None:
            return known
        tools = compacted(guard.tools(detailed), tokens)
        compiled = ToolSet.of((*tools, *self._answer_tool))
        others = [tool.name for tool in self.tools if tool.name not in chosen] if chosen else []
        contract = writer_of(dialect).teach(compiled)
        taught = Taught(compiled, f"{contract}\n\n{guard.text(named_only(others))}" if others else contract)
        return _TAUGHT.keep(self.tools, taught, compiled.text_bytes, more) if compiled.text_bytes else taught

    def emulated(self, prompt: Prompt, *, decides: bool, streams_calls: bool = False) -> AnswerReader:
        """Return a reader for an answer to a prompt that teaches tools; `decides` if the prompt asks for calls only."""
        return self._emulated(prompt, self._decided if decides else None, streams_calls=streams_calls and not decides)

    def follow_up(self, prompt: Prompt) -> AnswerReader:
        """Return a reader for the answer to a question for more calls (CHK-12).

        It accepts everything that looks like a call: the answer was asked for nothing else, so it quotes nothing.
        """
        return self._emulated(prompt, self._loose)

    def _emulated(
        self, prompt: Prompt, recover: Callable[[str, str], Sequence[Call]] | None, *, streams_calls: bool = False
    ) -> AnswerReader:
        compiled = ToolSet.of((*self.tools, *self._answer_tool) if self._answer_tool else self.tools)
        parts = ReaderParts(
            self._read_as(prompt.dialect).reader(compiled, self._ids, self._options(streams_calls=streams_calls)),
            compiled,
            self._checker(compiled),
            StopText(self._request.sampling.stop),
            self._echo,
            self.max_calls,
            self._answer_tool[0].name if self._answer_tool else "",
            ids=self._ids,
            guardrails=self._plan.guardrails,
            conversation=self._conversation_about(compiled),
            answered=self._answered,
            recover=recover,
        )
        return AnswerReader(parts)

    def _read_as(self, taught: Dialect) -> Dialect:
        """Return the dialect in which an answer to a taught prompt is read (INL-9).

        A keyed dialect is read alone: that nothing but its own markers is a call is its purpose (SAFE-4).
        """
        return _read_as(taught, self._plan)

    def form_of(self, calls: Sequence[Call]) -> str:
        """Return the dialect in which the model wrote these calls; empty if it is none that can be taught.

        It is the plan's dialect if that writes or reads the call, and leaves no markup, else the one that writes the
        call most alike, at least up to the tool's name: `<tool_call>` alone is the opener of Hermes, Qwen and GLM.
        """
        call, tools = next((call for call in calls if call.raw), None), ToolSet.of(self.tools)
        if call is None or len(call.raw) > _LONGEST_RELAPSE:
            return ""
        taught = dialect_of(self._plan)
        # Reading is the dearer test, and most models write the form as it was taught. The beginning shows that, up to
        # the name; so the arguments, which may be long, are not written.
        bare = replace(call, arguments="{}")
        is_taught = taught.writer is not None and _begins_as(taught.writer.write_calls((bare,), tools), call)
        if is_taught or _reads_all(taught, call.raw, tools):
            return self._plan.dialect
        writers = {dialect.name: dialect.writer for dialect in installed() if dialect.writer is not None}
        alike = {name: _likeness(writer.write_calls((call,), tools), call) for name, writer in writers.items()}
        best = max(alike, key=alike.__getitem__)
        return best if alike[best] else ""

    def narrated(self, visible: str, *, is_cut: bool) -> Trouble | None:
        """Return the trouble with an answer that announces a call, or writes one that no reader understands (CHK-15).

        After results an announcement counts for nothing: the model is done. What only repeats untrusted text was not
        written by the model (SAFE-3), so that the model must not be asked for it, nor for markup without the key of a
        keyed dialect (SAFE-4). Of an answer that a token limit cut, only the beginning counts: small models copy a
        definition until they are stopped.
        """
        messages, tools = self._request.messages, self.tools
        if not is_cut and messages and messages[-1].role is Role.USER and announces_call(visible, tools):
            return Trouble(Kind.NARRATED)
        if self._plan.settings.key:
            return None
        written = copied_call(visible, tools, latest_words(self._request))
        written = written or (None if is_cut else written_call(visible, tools))
        if written is None or self._echo.is_echo(written.text):
            return None
        self._copied = written.tool
        return Trouble(Kind.NARRATED, tool=written.tool)

    def native(self, *, streams_calls: bool) -> AnswerReader:
        """Return a reader for a native answer, which also finds calls that leaked into its text (MODE-8).

        Servers that pass a test with one tool leak calls with eleven (goose #6883), so text is searched even where
        tools are known to work. The client's stop sequences went upstream here, so they are not applied again.
        """
        compiled = ToolSet.of(self._native_tools())
        dialect = load(self._plan.rescue_dialect)
        parts = ReaderParts(
            dialect.reader(compiled, self._ids, self._options(streams_calls=streams_calls))
            if self._plan.settings.rescue
            else None,
            compiled,
            self._checker(compiled),
            StopText(()),
            self._echo,
            self.max_calls,
            streams_calls=streams_calls,
            guardrails=self._plan.guardrails,
            conversation=self._conversation_about(compiled),
            answered=self._answered,
        )
        return AnswerReader(parts)

    def drops_tools(self, usage: Usage) -> bool:
        """Whether an upstream that was sent the tools counted too few tokens in its prompt to have shown them (CAP-7).

        JSON has three to five bytes a token in all tokenizers, and templates leave some of it out. So this asks for a
        prompt, messages included, that is smaller than a third of what the tools alone need.
        """
        size = ToolSet.of(self._native_tools()).text_bytes if self._request.tools else 0
        return size >= _LEAST_TOOLS and 0 < usage.input_tokens * _BYTES_PER_TOKEN < size

    def words(self) -> AnswerReader:
        """Return a reader for an answer in words; it accepts no call."""
        tools = ToolSet()
        return AnswerReader(ReaderParts(None, tools, self._checker(tools), StopText(()), self._echo, 0))

    def constraining(self, prompt: Prompt) -> Constraining:
        """Return the policy of constrained decoding for the requests of this turn."""
        compiled = ToolSet.of((*self.tools, *self._answer_tool) if self._answer_tool else self.tools)
        return Constraining(self._plan, prompt.dialect, compiled, self._request.choice, self.max_calls)

    def _decided(self, _: str, visible: str) -> Sequence[Call]:
        """Find a decision with text around it (DEC-3); one that only repeats untrusted text does not count (SAFE-3)."""
        decision = decision_in(visible)
        if not decision or self._echo.is_echo(decision):
            return ()
        return decided_calls(decision, self._ids)

    def _loose(self, said: str, _: str) -> Sequence[Call]:
        """Find JSON objects that name a tool (CHK-12); none if the answer only repeats untrusted text (SAFE-3)."""
        found = loose_calls(said, {tool.name for tool in self.tools}, self._ids).calls
        return () if found and self._echo.is_echo(said.strip()) else found

    @cached_property
    def conversation(self) -> GuardedConversation:
        """The conversation that guardrails compare the turn's calls with."""
        return self._guarded(ToolSet.of(self.tools))

    def _conversation_about(self, tools: ToolSet) -> GuardedConversation | None:
        return self._guarded(tools) if self._plan.guardrails else None

    def _guarded(self, tools: ToolSet) -> GuardedConversation:
        unfit = self._plan.settings.unfit_probability or 0.0
        return GuardedConversation(self._request, tools, tuple(self.tools), unfit, self._copied)

    def _native_tools(self) -> tuple[Tool, ...]:
        """Return the tools that a native answer may call, deferred ones too: the server may have shown them itself."""
        allowed = self._request.choice.allowed
        tools = self._request.tools or self.tools
        return tuple(tool for tool in tools if tool.name in allowed) if allowed else tools

    @property
    def max_calls(self) -> int:
        """The most calls that a turn may have (CHK-1)."""
        choice = self._request.choice
        return MOST_CALLS if choice.parallel and choice.mode is not ChoiceMode.NAMED else 1

    def _checker(self, tools: ToolSet) -> CallChecker:
        return CallChecker(tools, self._request.choice, self._ids)

    def _options(self, *, streams_calls: bool) -> ReadOptions:
        choice, parallel = self._request.choice, self.max_calls > 1
        return ReadOptions(
            choice if choice.parallel == parallel else replace(choice, parallel=parallel),
            calls_in_reasoning=self._plan.facts.calls_in_reasoning,
            starts_in_reasoning=self._plan.facts.starts_in_reasoning,
            max_calls=MOST_CALLS,
            # Guardrails judge whole calls: the user who has switched one on does not want them without it.
            tells_growth=streams_calls and not self._plan.guardrails,
        )


def _reads_all(dialect: Dialect, text: str, tools: ToolSet) -> bool:
    turn = dialect.read(text, tools)
    return bool(turn.calls) and not turn.text.strip()


def _begins_as(written: str, call: Call) -> bool:
    """Return whether a call was written like this up to its name, blanks apart; the rest, maybe long, is not read."""
    expected, name, _ = "".join(written.split()).partition(call.name)
    beginning = expected + name
    return bool(name) and "".join(islice(filterfalse(str.isspace, call.raw), len(beginning))) == beginning


def _likeness(written: str, call: Call) -> int:
    """Return how many characters are equal before the first difference, blanks apart; 0 if the name is not in them."""
    one, other = "".join(written.split()), "".join(call.raw.split())
    same = one[: bisect_left(range(min(len(one), len(other))), x=True, key=lambda at: one[: at + 1] != other[: at + 1])]
    return len(same) if call.name in same else 0


def emulated_dialect(taught: str, facts: ModelFacts) -> Dialect:
    """Return the dialect that reads the taught form, and all forms that a native answer is searched for (INL-9).

    Models relapse: DeepSeek, taught fences, wrote its own tokens (OmniRoute #13930). Of 173 field cases for models that
    are taught `fenced`, that form alone read 26, and `any` 131.
    """
    return load_together(taught, *filter(None, (facts.leaks_as,)), ANY_DIALECT)


def _read_as(taught: Dialect, plan: Plan) -> Dialect:
    is_alone = plan.settings.key or not plan.settings.rescue
    return taught if is_alone else emulated_dialect(taught.name, plan.facts)


def answer_dialect(tactic: str, plan: Plan) -> Dialect | None:
    """Return the dialect in which the text of an answer is read, for traces; None if the text is not searched."""
    if tactic in (Name.PASS, Name.WORDS, QUESTION):
        return None
    if tactic in (Name.INLINE, Name.DECISION):
        return _read_as(dialect_of(plan), plan)
    return load(plan.rescue_dialect) if plan.settings.rescue else None


def emulated_ids(unix_nano: int) -> Iterator[str]:
    """Yield ids for the emulated calls of one turn, such as `emulated_1700000000000000000_0` (DEC-5)."""
    return (f"emulated_{unix_nano}_{index}" for index in count())


def _answer_tool(plan: Plan, request: Request, tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the answer tool if the plan has it and the tool choice does not demand a real call (INL-6)."""
    if not plan.settings.answer_tool or must_call(request.choice):
        return ()
    return (replace(ANSWER, name=offered_name([tool.name for tool in tools])),)


_TOOL: Final = Tool("probe", parameters={"type": "object"})


def warm() -> None:
    """Build the tables of readers, refusals and model families, so that the first request does not wait for them."""
    for dialect in (load(ANY_DIALECT), emulated_dialect(DEFAULT_DIALECT, UNKNOWN_MODEL)):
        dialect.reader([_TOOL]).feed("Hello.")
    for name in (DEFAULT_DIALECT, ANY_DIALECT):
        load(name).marks.count("Hello.")
    RefusalWatch().feed("Hello.")
    family_facts("a stranger")
