"""Writes docs/toolspeak.1, the man page, from the commands themselves; with `--check`, only checks whether it is fresh.

python tools/man_page.py && man ./docs/toolspeak.1
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from toolspeak.cli import toolspeak

PAGE = Path(__file__).parent.parent / "docs" / "toolspeak.1"
STATUSES = {
    "0": "success",
    "1": "the command ran, and its result is bad: a run failed, no upstream answers, a model does not call reliably",
    "2": "an error; one line on standard error says what happened and what to do",
    "3": "a worker lost its lease",
    "130": "Ctrl-C",
}
FILES = {
    "~/.config/toolspeak/toolspeak.toml": "the configuration, unless --config or TOOLSPEAK_CONFIG names another file",
    "~/.local/state/toolspeak": "profiles of the doctor, stored runs and their folders",
}


def escape(text: str) -> str:
    """Return a text that roff prints as it is: with its backslashes, its hyphens, and lines that begin with a dot."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text; those that click must not wrap keep their lines."""
    for part in re.split(r"\n\s*\n", text.strip()):
        if part.lstrip().startswith("\b"):
            lines = part.strip().removeprefix("\b\n").splitlines()
            yield "\n".join((".PP", ".nf", *map(escape, lines), ".fi"))
        else:
            yield f".PP\n{escape(' '.join(part.split()))}"


def described(name: str, text: str) -> str:
    """Return a word and what it means."""
    return f".TP\n.B {escape(name)}\n{escape(' '.join(text.split()))}"


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the options of a command, but --help."""
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and parameter.name != "help":
            yield described(*record)


def commands(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    """Yield a command, and those below it."""
    context = click.Context(command, parent, info_name=name, max_content_width=1000)
    if parent is not None:
        usage = " ".join(command.collect_usage_pieces(context))
        yield f".SS {escape(context.command_path)} {escape(usage)}"
        yield from paragraphs(command.help or "")
        yield from options(command, context)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            if below is not None and not below.hidden:
                yield from commands(below, each, context)


def page() -> str:
    """Return the whole page. It has no date, because the page would change every day."""
    return "\n".join(
        (
            '.TH TOOLSPEAK 1 "" "toolspeak" "User Commands"',
            ".SH NAME",
            escape("toolspeak - tool calling for every language model"),
            ".SH SYNOPSIS",
            ".B toolspeak",
            ".I COMMAND",
            "[OPTIONS] [ARGS]",
            ".SH DESCRIPTION",
            *paragraphs(
                "Agents and SDKs use tools; many of the models that they talk to cannot call any. toolspeak decides "
                "for each model whether its server's tool calling is used, repaired or replaced, and answers each "
                "client in the client's own protocol. Results go to standard output, notes and progress to standard "
                "error."
            ),
            ".SH COMMANDS",
            *commands(toolspeak, "toolspeak"),
            ".SH EXIT STATUS",
            *(described(*status) for status in STATUSES.items()),
            ".SH FILES",
            *(described(*file) for file in FILES.items()),
            "",
        )
    )


def main() -> None:
    """Write or check."""
    fresh = page()
    if "--check" not in sys.argv:
        PAGE.write_text(fresh, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
        sys.exit(f"{PAGE.name} is stale: run `just docs`")


if __name__ == "__main__":
    main()
