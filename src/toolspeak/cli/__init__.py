"""The command line: `toolspeak COMMAND`. Each command is a module, or a folder, of its name.

This package has options, help texts and output for terminals; everything that a program could use is elsewhere. Read
`explain/` first: a command in the form that all of them follow.

The module of a command is imported only when that command is used, and it imports servers, engine and readers inside
its functions, so that `--help` and shell completion stay fast. In a folder, `__init__.py` has the command and its
options; its siblings do the work. The other modules here are shared: `terminal` (colours, widths, symbols), `options`,
`output` (JSON, hints) and `tool_file`.
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
from toolspeak.errors import BadConfig, ToolspeakError

__all__ = ["COMMANDS", "main", "toolspeak"]

COMMANDS: Final = {
    "serve": "Start the gateway: tool calling in five APIs on one port.",
    "up": "Run models on this machine, with the gateway in front of them.",
    "launch": "Start an agent with a model of toolspeak, or list the agents.",
    "models": "List the models, and how toolspeak handles their tools.",
    "doctor": "Find a better form of tool calling for a model, and save it.",
    "chat": "Talk to a model, and see its tool calls.",
    "run": "Let a model work on a task with tools until it is done.",
    "runs": "List stored runs; show, resume or cancel one.",
    "worker": "Work on durable runs, and take over those of dead workers.",
    "keys": "Make, list, rotate and revoke the keys of clients.",
    "mcp": "Use the tools of MCP servers, or offer runs as MCP tools.",
    "config": "Check the configuration, or print the JSON Schema of its file.",
    "dialects": "List the text forms of tool calls, or export one.",
    "trace": "See what happened in a turn, and why.",
    "explain": "Show how toolspeak reads a model's output, part by part.",
    "conformance": "Judge the tool calls of an OpenAI-compatible server or gateway.",
}
"""Each command with the first line of its help, in the order of the help page."""

WRONG: Final = 2
"""Exit status after an error."""
INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells define it: 128 + SIGINT."""
_ENVIRONMENT: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EIO)
"""The disk is full or broken, or a folder is not writable: the user can fix it, so no traceback is printed."""


def _keep_lines(command: click.Command) -> None:
    r"""Turn the `\b` of raw docstrings into click's mark for lines that are not joined, in subcommands too."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    for each in command.commands.values() if isinstance(command, click.Group) else ():
        _keep_lines(each)


class Commands(click.Group):
    """The commands of `COMMANDS`, imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of `COMMANDS`."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of this name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"{__name__}.{cmd_name}"), cmd_name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{__name__}.{cmd_name}.{cmd_name} is not a click command")
        _keep_lines(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest a similar one. click would suggest only commands that are imported already."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:  # click has a class of its own for this only since 8.4
            from difflib import get_close_matches  # noqa: PLC0415

            similar = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {similar[0]!r}?" if similar else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands. click would import all of them for the first lines of their help."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Run `toolspeak COMMAND --help` for options and examples.",
)
@click.version_option(package_name="toolspeak", message="%(prog)s %(version)s")
def toolspeak() -> None:
    """Tool calling for every language model."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit. After an error the status is 2, with a one-line message; after Ctrl-C it is 130."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show must not be an error
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_status(args))


def _status(args: Sequence[str] | None) -> int:
    # Errors that the user can fix are one line. Any other exception is a bug of toolspeak, and keeps its traceback.
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
    except BadConfig as error:
        return _complain(_listed(error.problems))
    except ToolspeakError as error:
        return _complain(str(error).replace("\n", " "))
    except OSError as error:
        if error.errno not in _ENVIRONMENT:
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _complain(
            f"{where}{error.strerror}. Free some space, make it writable, or set XDG_STATE_HOME to another folder."
        )
    return status if isinstance(status, int) else 0


def _listed(problems: Sequence[str]) -> str:
    """Return one mistake on the line of the command's name, and several on lines of their own."""
    lines = [problem.replace("\n", " ") for problem in problems]
    if len(lines) == 1:
        return lines[0]
    return "\n  ".join((f"the configuration has {len(lines)} mistakes:", *lines))


def _complain(message: str) -> int:
    click.echo(f"toolspeak: {visible(message)}", err=True)
    return WRONG
