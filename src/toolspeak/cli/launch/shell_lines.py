"""Writes a recipe as shell lines: what a user would type to start the agent without `toolspeak launch`.

One importer: docs/agents/ is written with it, too.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from toolspeak.cli.launch.agents import Recipe

_WIDTH: Final = 100


def shell_lines(program: str, recipe: Recipe, further: Sequence[str] = ()) -> Iterator[str]:
    """Yield the variables, then each file below its path as a comment, then the command."""
    for name, value in recipe.env.items():
        yield from f"export {name}={shlex.quote(value)}".splitlines()
    for path, text in recipe.files.items():
        yield f"# {path}"
        yield from text.rstrip().splitlines()
        yield ""
    yield from _command_lines([program, *recipe.arguments, *further])


def _command_lines(words: Sequence[str]) -> Iterator[str]:
    """Yield the command on one line, or, if that is long, with each option on its own."""
    quoted = [shlex.quote(word) for word in words]
    if len(whole := " ".join(quoted)) <= _WIDTH:
        yield whole
        return
    line = ""
    for word in quoted:
        if word.startswith("-") and line:
            yield f"{line} \\"
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    yield line
