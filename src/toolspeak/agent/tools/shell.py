"""The tool `shell`: runs a command in the run's folder, in a sandbox (RUN-5). Without a working sandbox, it refuses.

There is no list of forbidden commands: a study of 1,709 such lists could bypass 69 to 98.6 % of them. The sandbox is
the boundary, and approval comes on top of it.
"""

import re
from collections.abc import Sequence
from typing import Final

from toolspeak.agent.sandbox.process import Unconfined
from toolspeak.agent.sandbox.sandbox import Command, Ran
from toolspeak.agent.sandbox.selection import find_sandbox
from toolspeak.agent.tools.action import Action, CallContext, ToolEffect, ToolOutput, Workplace, text_output
from toolspeak.errors import BadField
from toolspeak.ir.json import JsonObject
from toolspeak.ir.tool import Tool

SECONDS: Final = 60.0
MOST_SECONDS: Final = 600.0
# Seconds by which the timeout of the tool exceeds that of the command: the sandbox must stop the command first, since
# only its result has the output so far.
_SPARE: Final = 30.0
_ABOUT: Final = (
    "Run a command with /bin/sh in your folder. It has no network and cannot see or change anything outside the "
    "folder and /tmp, which is emptied after each command. Nothing it starts goes on after it. Returns what it "
    "wrote, and its exit status if that is not 0. git status, diff and log work; .git is read-only, so git add and "
    "commit do not. New repositories can be made in /tmp only."
)
_GIT_NOTE: Final = (
    ".git is read-only for commands: what is in it would run on the host. Leave the change uncommitted, and ask the "
    "person to commit it."
)
_GIT_REFUSAL: Final = re.compile(r"\.git\b[^\n]*(Read-only file system|Device or resource busy)")
_PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "What to run, such as: grep -rn TODO src | head"},
        "seconds": {
            "type": "number",
            "description": f"When to stop it; {SECONDS:g} if not given, at most {MOST_SECONDS:g}.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}


def actions(workplace: Workplace) -> Sequence[Action]:
    """Return the shell tool of a workplace."""

    async def act(arguments: JsonObject, context: CallContext) -> ToolOutput:
        del context
        command = _command(arguments, workplace)
        if workplace.unsafe:
            return _yielded(await Unconfined().run(command))
        found = await find_sandbox()
        if found.sandbox is None:
            return text_output(f"The command was not run: {found.refusal}", is_error=True)
        return _yielded(await found.sandbox.run(command))

    tool = Tool("shell", _ABOUT, _PARAMETERS)
    contained = not workplace.unsafe
    return (Action(tool, act, ToolEffect.ONCE, contained=contained, seconds=MOST_SECONDS + _SPARE),)


def _command(arguments: JsonObject, workplace: Workplace) -> Command:
    text, seconds = arguments.get("command"), arguments.get("seconds", SECONDS)
    if not isinstance(text, str) or not text.strip():
        raise BadField("command", "it must be a text that is not empty")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MOST_SECONDS:
        raise BadField("seconds", f"{seconds!r} is not a number above 0, up to {MOST_SECONDS:g}")
    return Command(text, workplace.folder, float(seconds), journal=workplace.journal, budget=workplace.budget)


def _yielded(ran: Ran) -> ToolOutput:
    notes = [ran.output.rstrip("\n")] if ran.output.strip() else []
    if ran.killed:
        notes.append(f"[stopped: {ran.killed}]")
    elif ran.status:
        notes.append(f"[exit status {ran.status}]")
    if _GIT_REFUSAL.search(ran.output):
        notes.append(f"[{_GIT_NOTE}]")
    if ran.notes:
        notes.append("[Tell the person before they use the folder outside the sandbox:")
        notes += [f"- {note}" for note in ran.notes]
        notes[-1] += "]"
    return text_output("\n".join(notes) or "(no output)", is_error=bool(ran.killed))
