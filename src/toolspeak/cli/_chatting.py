"""One question, or a conversation: the turns are shown as they come, and the person says what tools answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from toolspeak.cli._answer_text import answer_object, last_lines
from toolspeak.cli._line import Line
from toolspeak.cli._person import Person
from toolspeak.cli._screen import Screen
from toolspeak.cli.json_output import safe_json
from toolspeak.cli.terminal import Paint, counted, sign, visible
from toolspeak.client import Answer, tool_result
from toolspeak.errors import UpstreamFailed
from toolspeak.ir.event import Event
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.tool import Tool
from toolspeak.ir.turn import Fold
from toolspeak.runtime.clock import CLOCK

_CANCELLED: Final = "cancelled"


@dataclass(frozen=True, slots=True)
class Chat:
    """What stays the same from turn to turn."""

    line: Line
    tools: Sequence[Tool]
    system: str | None
    paint: Paint
    expand: bool

    def once(self, prompt: str) -> None:
        """Ask, and show the answer as it comes."""
        self.turn(self.first(prompt), Fold())

    def json(self, prompt: str) -> str:
        """Ask, and return the answer as JSON."""
        started = CLOCK.monotonic()
        answer = self.line.ask(self.first(prompt), self.tools)
        return safe_json(answer_object(answer, CLOCK.monotonic() - started))

    def converse(self) -> None:
        """Go on until Ctrl-D."""
        click.echo(self.paint.ink(self._greeting(), dim=True), err=True)
        Conversation(self).run()

    def first(self, *prompt: str) -> list[Message]:
        """Begin a conversation."""
        system = () if self.system is None else (Message(Role.SYSTEM, (Text(self.system),)),)
        return [*system, *(_said(text) for text in prompt)]

    def turn(self, messages: Sequence[Message], seen: Fold) -> Answer:
        """Show one turn; `seen` gets what comes. Raises `UpstreamFailed`, with a hint."""
        started = CLOCK.monotonic()
        screen = Screen(self.paint, expand=self.expand)

        def take(event: Event) -> None:
            seen.feed((event,))
            screen.feed(event)

        try:
            answer = self.line.stream(messages, self.tools, take)
        finally:
            screen.finish()
        for line in last_lines(answer, CLOCK.monotonic() - started, self.paint, expand=self.expand):
            click.echo(line, err=True)
        return answer

    def _greeting(self) -> str:
        route = self.line.default()
        model = f"{route.model} on {route.place}" if route.model else route.place
        tools = [counted(len(self.tools), "tool")] if self.tools else []
        return f" {sign('·', '|')} ".join([visible(model), *tools, "Ctrl-D ends"])


class Conversation:
    """Grows with what the person, the model and the tools say."""

    def __init__(self, chat: Chat) -> None:
        """Begin with what the system says."""
        self._chat: Final = chat
        self._person: Final = Person(chat.paint)
        self._messages: Final = chat.first()

    def run(self) -> None:
        """Take what the person says, until there is no more."""
        try:
            while True:
                self._round(self._heard())
        except EOFError:
            return

    def _heard(self) -> str:
        while True:
            try:
                if (line := self._person.line()).strip():
                    return line
            except KeyboardInterrupt:
                click.echo(self._chat.paint.ink("Ctrl-D ends", dim=True), err=True)

    def _round(self, said: str) -> None:
        """Answer; what fails leaves the conversation as it was."""
        before = len(self._messages)
        self._messages.append(_said(said))
        try:
            while (calls := self._answered()) and self._resulted(calls):
                pass
        except KeyboardInterrupt:
            del self._messages[before:]
        except UpstreamFailed as error:
            del self._messages[before:]
            click.echo(f"toolspeak: {visible(str(error))}", err=True)
        click.echo(err=True)

    def _answered(self) -> tuple[Call, ...]:
        """Take a turn, and return its calls. One that is stopped counts as far as it has come."""
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

    def _resulted(self, calls: Sequence[Call]) -> bool:
        """Ask for the results; tell whether the person said them all, for then the model goes on."""
        enough = False
        for number, call in enumerate(calls, start=1):
            which = f", {number} of {len(calls)}" if len(calls) > 1 else ""
            result = "" if enough else self._result(visible(call.name) + which)
            enough = enough or result is None
            self._messages.append(tool_result(call, result or _CANCELLED, is_error=not result))
        return not enough

    def _result(self, of: str) -> str | None:
        """Ask for one; None is Ctrl-C."""
        try:
            return self._person.line(f"  result of {of} ").strip()
        except KeyboardInterrupt:
            return None


def _said(text: str) -> Message:
    return Message(Role.USER, (Text(text),))
