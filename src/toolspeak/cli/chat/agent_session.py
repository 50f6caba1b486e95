"""A conversation in which the tools run: each line of the user is a task, which continues the run before it (RUN-19).

    > Which tests are slow?
    ✓ 1 shell(command="pytest --durations=3")  4.1 s        a round, collapsed
    Two of them: …
    > /show 1                                               the same round, with its arguments and its result

Each task is a run as of `toolspeak run`: with the same sandbox, approvals and Ctrl-C. Its runs are opened anew for each
task, so that nothing has to go on while the user thinks, and are in `toolspeak runs` if runs are stored.
"""

import asyncio
from typing import Final

import click
from msgspec.structs import replace as replace_fields

from toolspeak.agent.runs.provider import open_user_runs
from toolspeak.agent.runs.runs import RunView, Spec, continued
from toolspeak.cli.chat.conversation import EXIT, HELP, LineInput
from toolspeak.cli.run.screen import ShownRounds, Transcript, round_lines
from toolspeak.cli.run.session import Asker, Display, Follow, choose_screen, ignore_event, result_lines, typed_line
from toolspeak.cli.terminal import count_noun, join_dotted, visible
from toolspeak.config.shape import Config
from toolspeak.engine.agent import Status
from toolspeak.errors import ToolspeakError

_SHOW: Final = "/show"
_HELP: Final = (f"{_SHOW} N expands a round", f"{HELP} explains", EXIT)
_EXPLAINED: Final = (
    "Type a task, and the model works on it with its tools; the next task continues the conversation.",
    f"{_SHOW} N  show the calls of round N with arguments and results; {_SHOW} alone shows all rounds",
    f"{HELP}    show this",
    "Ctrl-C   stop the running task; its rounds are kept",
    "Ctrl-D   exit",
)


class AgentSession:
    """The tasks of one conversation. A task that fails before its first round leaves the conversation as it was."""

    def __init__(self, config: Config, spec: Spec, display: Display) -> None:
        """Begin with no task; `spec` has everything else."""
        self._config: Final = config
        self._spec: Final = spec
        self._display: Final = display
        self._asker: Final = Asker(display.paint, typed_line) if display.asks else None
        self._rounds: Final[ShownRounds] = []
        self._before: RunView | None = None

    def converse(self) -> None:
        """Work on each line that the user types, until Ctrl-D."""
        tools = f"tools {', '.join(self._spec.tools)}"
        self._note(join_dotted(visible(self._spec.folder), visible(tools), f"approval {self._spec.approval}", *_HELP))
        for line in LineInput(self._display.paint).lines(join_dotted(*_HELP)):
            command, _, rest = line.strip().partition(" ")
            if command == _SHOW:
                self._show(rest.strip())
            elif command == HELP:
                for each in _EXPLAINED:
                    self._note(each)
            else:
                self._work(line)
            click.echo(err=True)

    def _work(self, task: str) -> None:
        try:
            asyncio.run(self._run(task))
        except KeyboardInterrupt:  # before the run was there to be stopped
            pass
        except ToolspeakError as error:
            click.echo(f"toolspeak: {visible(str(error))}", err=True)

    async def _run(self, task: str) -> None:
        spec = continued(self._before, task) if self._before else replace_fields(self._spec, task=task)
        paint = self._display.paint
        async with open_user_runs(self._config) as opened:
            id = await opened.runs.start(spec)
            transcript = Transcript(paint, expand=self._display.expand, rounds=self._rounds)
            screen = choose_screen(transcript, paint, spec.rounds)
            ended = await Follow(opened.runs, id, screen, self._asker, ignore_event).to_end()
            view = await opened.runs.show(id)
        if ended.status is not Status.FAILED or view.kept.rounds:
            self._before = view
        if ended.text:
            click.echo(visible(ended.text).strip("\n"))
        for line in result_lines(view, ended, paint):
            click.echo(line, err=True)

    def _show(self, number: str) -> None:
        """Expand one round, or all of them without a number."""
        wanted = [(at, calls) for at, calls in enumerate(self._rounds, start=1) if number in ("", str(at))]
        if not wanted:
            count = count_noun(len(self._rounds), "round")
            self._note(f"there are {count} so far; {_SHOW} N expands one of them, {_SHOW} expands all")
        for at, calls in wanted:
            for line in round_lines(calls, self._display.paint, expand=True, number=at):
                click.echo(line, err=True)

    def _note(self, text: str) -> None:
        click.echo(self._display.paint.ink(text, dim=True), err=True)
