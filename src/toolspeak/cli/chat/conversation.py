"""One question, or a conversation. Answers are shown as they arrive; the user types the results of tools."""

import asyncio
import io
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Final

import click

from toolspeak.cli.chat.answer import Screen, answer_object, last_lines
from toolspeak.cli.failure_hints import hinted
from toolspeak.cli.json_output import safe_json
from toolspeak.cli.terminal import Paint, counted, dotted, sign, visible
from toolspeak.client import Answer, AsyncClient, tool_result
from toolspeak.config.assemble import assemble
from toolspeak.config.shape import Config
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Fold
from toolspeak.runtime.clock import CLOCK
from toolspeak.runtime.directory import Route
from toolspeak.runtime.transport import HttpTransport

_CANCELLED: Final = "cancelled"
_EXIT: Final = "Ctrl-D exits"
_READLINE: Final = "readline"
_INVISIBLE, _VISIBLE = "\001", "\002"
"""Between these, readline counts no columns."""


@contextmanager
def connected(config: Config) -> "Generator[Connection, None, None]":
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
            raise hinted(error) from None

    def stream(self, messages: Sequence[Message], tools: Sequence[Tool], take: Callable[[Event], None]) -> Answer:
        """Take one turn; `take` gets each event as it arrives."""
        try:
            return self._runner.run(self._streamed(messages, tools, take))
        except UpstreamFailed as error:
            raise hinted(error) from None

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
    transport = HttpTransport()
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
        screen = Screen(self.paint, expand=self.expand)

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
        tools = [counted(len(self.tools), "tool")] if self.tools else []
        return dotted(visible(model), *tools, _EXIT)


class Conversation:
    """The messages of a conversation, and the loop that extends them."""

    def __init__(self, chat: Chat) -> None:
        """Start with the system prompt only."""
        self._chat: Final = chat
        self._input: Final = LineInput(chat.paint)
        self._messages: Final = chat.first()

    def run(self) -> None:
        """Answer each line that the user types, until Ctrl-D."""
        try:
            while True:
                self._round(self._next_line())
        except EOFError:
            return

    def _next_line(self) -> str:
        while True:
            try:
                if (line := self._input.line()).strip():
                    return line
            except KeyboardInterrupt:
                click.echo(self._chat.paint.ink(_EXIT, dim=True), err=True)

    def _round(self, prompt: str) -> None:
        """Answer one prompt. A failure or an interruption leaves the conversation as it was before the prompt."""
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
        stdin: object = sys.stdin
        if isinstance(stdin, io.TextIOWrapper):
            stdin.reconfigure(errors="replace")

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
