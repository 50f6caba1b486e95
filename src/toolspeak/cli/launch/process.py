"""Runs an agent with the terminal attached: its files, its environment, signals, and its exit status.

Ctrl-C belongs to the agent: the terminal sends SIGINT to both processes, and toolspeak ignores it. SIGTERM and SIGHUP
reach toolspeak alone and are passed on. The temporary folder is removed in every case but a `kill -9` of toolspeak;
on Linux the agent dies with it then.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

from toolspeak.cli.launch.agents import Agent, Recipe
from toolspeak.runtime.tether import tethered

_GRACE_S: Final = 5.0
"""Time to end after SIGTERM."""
_SIGNALLED: Final = 128
"""Shells report a program that signal N has ended as 128 + N."""
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_DIRECT: Final = "127.0.0.1,localhost,::1"


def agent_environment(agent: Agent, recipe: Recipe, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the agent: the user's, without what would send it elsewhere, and the recipe's."""
    kept = {name: value for name, value in environ.items() if name not in agent.unset}
    return {**kept, **_without_proxy(kept), **recipe.env}


def _without_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """Keep requests to the gateway away from a proxy, which could not reach this machine's loopback."""
    if not any(environ.get(name) or environ.get(name.lower()) for name in _PROXIES):
        return {}
    given = environ.get("NO_PROXY") or environ.get("no_proxy")
    hosts = f"{given},{_DIRECT}" if given else _DIRECT
    return {"NO_PROXY": hosts, "no_proxy": hosts}


def write_files(recipe: Recipe) -> None:
    """Write the files of a recipe, readable by the user alone: they may contain a key."""
    for path, text in recipe.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")


def run_agent(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run the agent to its end. Return its exit status, 128 + N if signal N ended it."""
    with _terminal_restored(), _interrupts_ignored():
        process = subprocess.Popen(tethered(command), env=dict(env))  # noqa: S603 # the user's own agent
        with process, _signals_forwarded(process):
            status = process.wait()
    return status if status >= 0 else _SIGNALLED - status


@contextmanager
def _interrupts_ignored() -> Generator[None]:
    # A handler, because SIG_IGN would be inherited by the agent.
    before = signal.signal(signal.SIGINT, _ignore)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _ignore(number: int, frame: FrameType | None) -> None:
    del number, frame


@contextmanager
def _signals_forwarded(process: "subprocess.Popen[bytes]") -> Generator[None]:
    """Pass SIGTERM and SIGHUP on to the agent, and kill it if it does not end soon after."""
    killer = threading.Timer(_GRACE_S, process.kill)
    killer.daemon = True

    def forward(number: int, _: FrameType | None) -> None:
        process.send_signal(number)
        if killer.ident is None:
            killer.start()

    numbers = [signal.SIGTERM] if sys.platform == "win32" else [signal.SIGTERM, signal.SIGHUP]
    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        yield
    finally:
        killer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _terminal_restored() -> Generator[None]:
    """Restore the modes of the terminal: an agent that dies may leave it without echo."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios  # noqa: PLC0415 # Windows has no such module

    modes = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)
