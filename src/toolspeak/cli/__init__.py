"""The command line: `toolspeak COMMAND`, one file each.

Belongs here: options, help texts, how things look in a terminal. Does not: anything that a program could want too.
Read first: `explain.py`, a command as it should be.

A command's module has the command under its own name, and is loaded only when that command is asked for: `--help`
and the shell's completion must not pay for servers and readers. So what is heavy is imported inside the command.
"""

# click is used by overriding, and `typing.override` is not there before Python 3.12:
# pyright: reportImplicitOverride=false

import errno
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn

import click

from toolspeak.cli.terminal import visible
from toolspeak.errors import ToolspeakError

__all__ = ["COMMANDS", "main", "toolspeak"]

COMMANDS: Final = {
    "serve": "Put the gateway before a model: five protocols on one port.",
    "up": "Run a model of this machine, and put the gateway before it.",
    "models": "List the models, and how toolspeak handles their tools.",
    "doctor": "Find the form of tool calling that suits a model, and save it.",
    "chat": "Talk to a model, and see its tool calls.",
    "run": "Let a model work on a task with tools until it is done.",
    "runs": "List stored runs; show, resume or cancel one.",
    "worker": "Work on durable runs, and take over those of workers that died.",
    "mcp": "Use the tools of MCP servers, or offer runs as MCP tools.",
    "explain": "Show how toolspeak reads a model's output, part by part.",
}
"""Each command and the first line of its help, in the order in which people see them."""

WRONG: Final = 2
INTERRUPTED: Final = 130
_ENVIRONMENT: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EIO)
"""A disk that is full or broken, a folder that cannot be written: no fault of ours, so no traceback."""


class Commands(click.Group):
    """The commands of the table, loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the table's order."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"{__name__}.{cmd_name}"), cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{__name__}.{cmd_name}.{cmd_name} is no click command")
        command.help = (command.help or "").replace("\\b\n", "\b\n")  # click's mark, out of a raw docstring
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; click would look for similar names only among those that are loaded."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table; click would load every command for its first line."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`toolspeak COMMAND --help` says more, with an example.",
)
@click.version_option(package_name="toolspeak", message="%(prog)s %(version)s")
def toolspeak() -> None:
    """Tool calling for every language model."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end the process: with 2 and one line if something is wrong, with 130 on Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character is no reason to die
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_status(args))


def _status(args: Sequence[str] | None) -> int:
    try:
        status = toolspeak.main(args, prog_name="toolspeak", standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return WRONG
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "toolspeak"
        return _complain(f"{error.format_message()}\nTry '{path} --help'.")
    except click.ClickException as error:
        return _complain(error.format_message())
    except ToolspeakError as error:
        return _complain(str(error).replace("\n", " "))
    except OSError as error:
        if error.errno not in _ENVIRONMENT:
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror}. Make room there or make it writable, or set XDG_STATE_HOME")
    return status if isinstance(status, int) else 0


def _complain(message: str) -> int:
    click.echo(f"toolspeak: {visible(message)}", err=True)
    return WRONG
