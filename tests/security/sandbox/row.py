"""How a row of the table of attempts is written."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.security.sandbox.scene import Scene
from toolspeak.agent.sandbox.sandbox import Ran

Check = Callable[[Scene, Ran], str]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One row. `texts` are run one after another."""

    area: str
    name: str
    never: str
    """What must not happen."""
    texts: tuple[str, ...]
    check: Check | None = None
    seconds: float = 10.0
    cancel: float = 0.0
    """Seconds after which it is cancelled."""
    only: str = ""
    """The one sandbox that holds it; docs/sandbox.md says so of the other."""
    setup: str = ""
    """What the person does in the folder before it."""
    during: bool = False
    """The person uses git at the top of the folder while it runs."""
    kill: bool = False
    """Toolspeak is killed with SIGKILL as soon as the file `ready` is there."""
    may_stop: bool = False
    """It may be stopped before that."""


PRELUDE: Final = """
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *words):
    return libc.syscall(number, *words)
def got(what):
    print("GOT", what, flush=True)
def want(act):
    try:
        got(act())
    except BaseException as error:
        print("no:", type(error).__name__, error)
print("tried", flush=True)
"""


def got(scene: Scene, ran: Ran) -> str:
    """Say whether the script got what it wanted."""
    del scene
    return "it got what it wanted" if "GOT" in ran.output else ""


def py(code: str) -> str:
    """Write a command that runs Python."""
    return "python3 -c " + shlex.quote(f"{PRELUDE}{code}")


def sh(text: str) -> str:
    """Write a command of the shell."""
    return f"echo tried; {text}"


def row(  # noqa: PLR0913 # the columns of the table
    area: str,
    name: str,
    never: str,
    *texts: str,
    check: Check | None = got,
    seconds: float = 10.0,
    cancel: float = 0.0,
    only: str = "",
) -> Attempt:
    """Write a row."""
    return Attempt(area, name, never, texts, check, seconds, cancel, only)


def refused(name: str, words: str, area: str = "kernel", only: str = "") -> Attempt:
    """Write the row of a system call that must fail."""
    code = f"r = call(@nr_{name}@, {words})\nif r >= 0: got(r)\nelse: print('errno', ctypes.get_errno())"
    return row(area, name.replace("_", " "), "the system call succeeds", py(code), only=only)
