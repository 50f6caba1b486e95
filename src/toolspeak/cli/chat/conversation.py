"""Asks one question or holds a conversation. Answers are shown as they arrive; the user types the results of tools.

    The user asks for the weather.        reasoning, dim
    ▸ get_weather(city="Oslo")  1 fix
    native checked · 1 request · 21 tokens in, 13 out · 0.8 s

The model's text goes to standard output; reasoning and the status line go to standard error. A line break is printed
only when more text follows, so that an answer has no empty lines around it. With --json the answer is one object.
"""

import asyncio
import io
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Final, assert_never

import click

from toolspeak.cli.output import complaint_objects, fix_objects, indented, keyword_arguments, safe_json, with_hint
from toolspeak.cli.terminal import (
    INDENT,
    UNLIMITED,
    Paint,
    count_noun,
    indent_below,
    join_dotted,
    shorten,
    sign,
    visible,
)
from toolspeak.client import Answer, AsyncClient, tool_result
from toolspeak.config.assemble import assemble, outbound_of
from toolspeak.config.shape import Config
from toolspeak.engine.effects import EMULATED
from toolspeak.engine.plan import Way
from toolspeak.errors import BadJson, UpstreamFailed
from toolspeak.ir.complaint import Complaint
from toolspeak.ir.event import (
    ArgsDelta,
    CallEnded,
    CallRejected,
    CallStarted,
    Discarded,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    StopReason,
    TextDelta,
    Usage,
)
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Fold, fold
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import Route
from toolspeak.runtime.http_transport import HttpTransport
from toolspeak.text.strict import parse

_CUTS: Final = {
    StopReason.LENGTH: "cut off: the answer reached the token limit",
    StopReason.FILTER: "cut off by a content filter of the upstream",
}


# ---------------------------------------------------------------- an answer while it arrives


class AnswerScreen:
    """Prints the events of one turn."""

    def __init__(self, paint: Paint, *, expand: bool) -> None:
        """Start the screen; on a terminal, show an ellipsis until the first event."""
        self._paint: Final = paint
        self._expand: Final = expand
        self._text: Final = _TextBlock(paint)
        self._reasoning: Final = _TextBlock(paint, is_reasoning=True)
        self._open: Final[dict[str, list[Event]]] = {}
        """Events of calls that have not ended, by id: a call is printed whole."""
        self._waiting = bool(paint.width) and sys.stderr.isatty()
        if self._waiting:
            click.echo(paint.ink(sign("…", "."), dim=True), err=True, nl=False)

    def feed(self, event: Event) -> None:
        """Print one more event."""
        match event:
            case TextDelta(text):
                self._write(self._text, text)
            case ReasoningDelta(text):
                self._write(self._reasoning, text)
            case CallStarted(id):
                self._open[id] = [event]
            case ArgsDelta(id):
                self._open[id].append(event)
            case CallEnded(id):
                whole = fold((*self._open.pop(id), event)).calls[0]
                self._lines(call_lines(whole, self._paint, expand=self._expand))
            case CallRejected():
                self._lines(rejected_lines(event, self._paint, expand=self._expand))
            case Discarded() | Finished() | Failed():
                pass
            case _:
                assert_never(event)

    def finish(self) -> None:
        """End the open line, if there is one."""
        self._clear_ellipsis()
        self._reasoning.end()
        self._text.end()

    def _write(self, block: "_TextBlock", text: str) -> None:
        other = self._text if block is self._reasoning else self._reasoning
        if text.strip("\n"):
            self._clear_ellipsis()
            other.end()
        block.write(text)

    def _lines(self, lines: Iterator[str]) -> None:
        self.finish()
        for line in lines:
            click.echo(line)

    def _clear_ellipsis(self) -> None:
        # A carriage return and a blank work on every terminal, also on those without escape sequences.
        if self._waiting:
            self._waiting = False
            click.echo("\r \r", err=True, nl=False)


class _TextBlock:
    """A stretch of text on one of the two streams."""

    def __init__(self, paint: Paint, *, is_reasoning: bool = False) -> None:
        self._paint: Final = paint
        self._is_reasoning: Final = is_reasoning
        self._begun = False
        self._held = ""
        """Line breaks that are printed once more text follows."""

    def write(self, text: str) -> None:
        shown = visible(self._held + text)
        kept = shown.rstrip("\n")
        self._held = shown[len(kept) :] if self._begun or kept else ""
        if kept:
            self._echo(kept if self._begun else self._first(kept.lstrip("\n")))
            self._begun = True

    def end(self) -> None:
        if self._begun:  # an empty line separates reasoning from the text
            click.echo("\n" if self._is_reasoning else "", err=self._is_reasoning)
        self._begun, self._held = False, ""

    def _first(self, text: str) -> str:
        """Label reasoning if it cannot be dim."""
        return f"[reasoning] {text}" if self._is_reasoning and not self._paint.on else text

    def _echo(self, text: str) -> None:
        click.echo(self._paint.ink(text, dim=self._is_reasoning), err=self._is_reasoning, nl=False)


# ---------------------------------------------------------------- calls of an answer


def call_lines(call: Call, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a valid call on one line; expanded, also its full arguments, its repairs and its raw text."""
    name, arguments = visible(call.name), keyword_arguments(call.arguments)
    fixed = count_noun(len(call.fixes), "fix") if call.fixes else ""
    mark = sign("▸", ">")
    room = max(paint.width - len(f"{mark} {name}()  {fixed}"), 1) if paint.width else 0
    head = f"{paint.ink(mark, 'green')} {paint.ink(name, bold=True)}({shorten(arguments, room)})"
    yield f"{head}  {paint.ink(fixed, 'yellow')}".rstrip(" ")
    if expand:
        yield from indent_below(indented(visible(call.arguments), (paint.width or UNLIMITED) - len(INDENT)), paint)
        yield from indent_below(
            (f"fixed: {fix.what.replace('_', ' ')} {fix.path}" for fix in call.fixes), paint, "yellow"
        )
        yield from _raw(call.raw, paint)


def rejected_lines(event: CallRejected, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write a rejected call and the kind of problem; expanded, also the details and its raw text."""
    complaint = event.complaint
    mark, name = sign("✗", "x"), visible(complaint.name or "a call").replace("\n", " ")
    why = str(complaint.problem).replace("_", " ")
    yield f"{paint.ink(mark, 'red')} {paint.ink(name, bold=True)}  {paint.ink(why, 'red')}"
    if expand:
        yield from indent_below(filter(None, [visible(complaint.detail)]), paint)
        yield from _raw(event.raw, paint)


def _raw(raw: str, paint: Paint) -> Iterator[str]:
    return indent_below(filter(None, visible(raw).strip("\n").split("\n")), paint, dim=True)


# ---------------------------------------------------------------- a complete answer


def last_lines(answer: Answer, seconds: float, paint: Paint, *, expand: bool) -> Iterator[str]:
    """Write the status line, after a warning if the answer was cut off; expanded, also the reason for the plan."""
    stop = answer.turn.stop
    if stop is not None and stop in _CUTS:
        yield paint.ink(_CUTS[stop], "yellow")
    plan, _, why = answer.plan.line.partition(": ")
    emulated = EMULATED in answer.warnings and answer.plan.way is not Way.FORCE
    words = [f"{plan}, then emulated" if emulated else plan, count_noun(answer.requests, "request")]
    if answer.complaints:
        words.append(count_noun(len(answer.complaints), "complaint"))
    words += [*_tokens(answer.usage), f"{seconds:.1f} s"]
    for line in (join_dotted(*words), *([why, *map(_complaint_line, answer.complaints)] if expand else [])):
        yield paint.ink(line, dim=True) if paint.on else f"[{line}]"


def _complaint_line(complaint: Complaint) -> str:
    """Write one complaint of the turn, also one that the model has mended since and that no event shows."""
    why = str(complaint.problem).replace("_", " ")
    detail = f": {complaint.detail}" if complaint.detail else ""
    return visible(f"{complaint.name or 'a call'}  {why}{detail}").replace("\n", " ")


def _tokens(usage: Usage) -> Iterator[str]:
    """Write the token counts, if the upstream reports them."""
    if usage.input_tokens or usage.output_tokens:
        yield f"{count_noun(usage.input_tokens, 'token')} in, {usage.output_tokens} out"


def answer_object(answer: Answer, seconds: float) -> JsonObject:
    """Return the answer as an object for programs."""
    turn, usage = answer.turn, answer.usage
    return {
        "text": turn.text,
        "reasoning": turn.reasoning,
        "calls": [_call_object(call) for call in answer.calls],
        "complaints": complaint_objects(answer.complaints),
        "stop": str(turn.stop) if turn.stop else None,
        "plan": answer.plan.line,
        "warnings": [*answer.warnings],
        "requests": answer.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "seconds": round(seconds, 3),
    }


def _call_object(call: Call) -> JsonObject:
    return {
        "id": call.id,
        "name": call.name,
        "arguments": _value(call.arguments),
        "fixes": fix_objects(call.fixes),
        "raw": call.raw,
    }


def _value(arguments: str) -> Json:
    """Parse arguments. With mode off they are unchecked: invalid JSON stays a string."""
    try:
        return parse(arguments)
    except BadJson:
        return arguments


# ---------------------------------------------------------------- the conversation

_CANCELLED: Final = "cancelled"
EXIT: Final = "Ctrl-D exits"
HELP: Final = "/help"
_EXPLAINED: Final = (
    "Type a message, and the model answers. Calls of tools are shown, not run: type what each one returns.",
    f"{HELP}   show this",
    "Ctrl-C  stop the answer, or skip the results of the remaining calls",
    "Ctrl-D  exit",
    "To let tools run, start with --tools NAMES, such as --tools files,shell.",
)
_READLINE: Final = "readline"
_INVISIBLE, _VISIBLE = "\001", "\002"
"""readline does not count the characters between these. Without them it would place the cursor after the escapes."""


@contextmanager
def open_connection(config: Config) -> "Generator[Connection, None, None]":
    """Open a connection, and close it at the end of the block."""
    with asyncio.Runner() as runner:
        connection = Connection(runner, config)
        try:
            yield connection
        finally:
            connection.close()


class Connection:
    """A synchronous connection to the upstreams. `UpstreamFailed` is raised with a hint in its message.

    Ctrl-C while waiting closes the connection to the upstream first, and raises KeyboardInterrupt after that.
    """

    def __init__(self, runner: asyncio.Runner, config: Config) -> None:
        """Prepare a client; nothing is sent yet."""
        self._runner: Final = runner
        self._config: Final = config
        self._client: Final = AsyncClient(config=config)

    def default(self) -> Route:
        """Return the route of requests that name no model; its model is empty if no upstream tells."""
        return self._runner.run(_default_route(self._config))

    def ask(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Answer:
        """Take one turn, and return the whole answer."""
        try:
            return self._runner.run(self._client.chat(messages, tools))
        except UpstreamFailed as error:
            raise with_hint(error) from None

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool], take: Callable[[Event], None]) -> Answer:
        """Take one turn; `take` gets each event as it arrives."""
        try:
            return self._runner.run(self._streamed(messages, tools, take))
        except UpstreamFailed as error:
            raise with_hint(error) from None

    def close(self) -> None:
        """Close all connections to upstreams."""
        self._runner.run(self._client.close())

    async def _streamed(
        self, messages: Sequence[Message], tools: Sequence[Tool], take: Callable[[Event], None]
    ) -> Answer:
        async with self._client.stream(messages, tools) as stream:
            async for event in stream:
                take(event)
        return stream.answer


async def _default_route(config: Config) -> Route:
    transport = HttpTransport(outbound_of(config))
    try:
        return await assemble(config, transport).find("")
    finally:
        await transport.close()


@dataclass(frozen=True, slots=True)
class Chat:
    """The settings of a chat, which stay the same from turn to turn."""

    connection: Connection
    tools: Sequence[Tool]
    system: str | None
    paint: Paint
    expand: bool

    def once(self, prompt: str) -> None:
        """Ask once, and show the answer as it arrives."""
        self.turn(self.first(prompt), Fold())

    def json(self, prompt: str) -> str:
        """Ask once, and return the answer as JSON."""
        started = CLOCK.monotonic()
        answer = self.connection.ask(self.first(prompt), self.tools)
        return safe_json(answer_object(answer, CLOCK.monotonic() - started))

    def converse(self) -> None:
        """Hold a conversation until Ctrl-D."""
        click.echo(self.paint.ink(self._greeting(), dim=True), err=True)
        Conversation(self).run()

    def first(self, *prompt: str) -> list[Message]:
        """Return the first messages: the system prompt, if there is one, and the prompt."""
        system = () if self.system is None else (Message(Role.SYSTEM, (Text(self.system),)),)
        return [*system, *(_user_message(text) for text in prompt)]

    def turn(self, messages: Sequence[Message], seen: Fold) -> Answer:
        """Take one turn and show it. `seen` collects its events, also if the turn is interrupted.

        Raises `UpstreamFailed` with a hint in its message.
        """
        started = CLOCK.monotonic()
        screen = AnswerScreen(self.paint, expand=self.expand)

        def take(event: Event) -> None:
            seen.feed((event,))
            screen.feed(event)

        try:
            answer = self.connection.stream(messages, self.tools, take)
        finally:
            screen.finish()
        for line in last_lines(answer, CLOCK.monotonic() - started, self.paint, expand=self.expand):
            click.echo(line, err=True)
        return answer

    def _greeting(self) -> str:
        route = self.connection.default()
        model = f"{route.model} on {route.place}" if route.model else route.place
        tools = [count_noun(len(self.tools), "tool")] if self.tools else []
        return join_dotted(visible(model), *tools, f"{HELP} explains", EXIT)


class Conversation:
    """The messages of a conversation, and the loop that extends them."""

    def __init__(self, chat: Chat) -> None:
        """Start with the system prompt only."""
        self._chat: Final = chat
        self._input: Final = LineInput(chat.paint)
        self._messages: Final = chat.first()

    def run(self) -> None:
        """Answer each line that the user types, until Ctrl-D."""
        with suppress(EOFError):  # Ctrl-D instead of the result of a call
            for line in self._input.lines(join_dotted(f"{HELP} explains", EXIT)):
                if line.strip() == HELP:
                    self._explain()
                else:
                    self._round(line)

    def _explain(self) -> None:
        for each in _EXPLAINED:
            click.echo(self._chat.paint.ink(each, dim=True), err=True)
        click.echo(err=True)

    def _round(self, prompt: str) -> None:
        """Answer one prompt. A failure or an interruption leaves the conversation as it was before the prompt."""
        # A call that is left without its result makes every later request invalid: Anthropic refuses such a history.
        before = len(self._messages)
        self._messages.append(_user_message(prompt))
        try:
            while (calls := self._answer()) and self._results(calls):
                pass
        except KeyboardInterrupt:
            del self._messages[before:]
        except UpstreamFailed as error:
            del self._messages[before:]
            click.echo(f"toolspeak: {visible(str(error))}", err=True)
        click.echo(err=True)

    def _answer(self) -> tuple[Call, ...]:
        """Take a turn, and return its calls. If Ctrl-C stops it, the text so far is the answer."""
        seen = Fold()
        try:
            answer = self._chat.turn(self._messages, seen)
        except KeyboardInterrupt:
            if not (text := seen.turn().text.strip()):
                raise
            self._messages.append(Message(Role.ASSISTANT, (Text(text),)))
            return ()
        self._messages.append(answer.message)
        return answer.calls

    def _results(self, calls: Sequence[Call]) -> bool:
        """Ask the user for the result of each call; return whether the model should continue with them.

        After Ctrl-C all remaining calls are cancelled and the model is not asked again.
        """
        stopped = False
        for number, call in enumerate(calls, start=1):
            which = f", {number} of {len(calls)}" if len(calls) > 1 else ""
            result = "" if stopped else self._result(visible(call.name) + which)
            stopped = stopped or result is None
            self._messages.append(tool_result(call, result or _CANCELLED, is_error=not result))
        return not stopped

    def _result(self, of: str) -> str | None:
        """Ask for the result of one call; None means Ctrl-C."""
        try:
            return self._input.line(f"  result of {of} ").strip()
        except KeyboardInterrupt:
            return None


class LineInput:
    """Reads lines from standard input, with the editing and history of readline if Python has it."""

    def __init__(self, paint: Paint) -> None:
        """Prepare standard input."""
        self._paint: Final = paint
        self._edits: Final = bool(paint.width) and find_spec(_READLINE) is not None
        if self._edits:
            import_module(_READLINE)  # importing it is enough: `input` uses it from then on
        stdin: object = sys.stdin  # tests and embedding programs may replace it by another type
        if isinstance(stdin, io.TextIOWrapper):
            stdin.reconfigure(errors="replace")

    def lines(self, advice: str) -> Iterator[str]:
        """Read lines until Ctrl-D, without empty ones. Ctrl-C prints the advice."""
        while True:
            try:
                line = self.line()
            except EOFError:
                return
            except KeyboardInterrupt:
                click.echo(self._paint.ink(advice, dim=True), err=True)
            else:
                if line.strip():
                    yield line

    def line(self, label: str = "") -> str:
        """Read one line. Raises EOFError for Ctrl-D and KeyboardInterrupt for Ctrl-C, after ending the line."""
        try:
            return input(self._prompt(label, sign("›", ">")))  # noqa: RUF001 - a sign for people
        except (EOFError, KeyboardInterrupt):
            click.echo(err=True)
            raise

    def _prompt(self, label: str, mark: str) -> str:
        """Return the prompt. If standard output is not a terminal it gets answers only; the prompt goes to stderr."""
        if not self._paint.width:
            click.echo(f"{label}{mark} ", err=True, nl=False)
            return ""
        inked = self._paint.ink(mark, "green", bold=True)
        before, _, after = inked.partition(mark)
        if before and self._edits:
            inked = f"{_INVISIBLE}{before}{_VISIBLE}{mark}{_INVISIBLE}{after}{_VISIBLE}"
        return f"{label}{inked} "


def _user_message(text: str) -> Message:
    return Message(Role.USER, (Text(text),))
