"""What the script of each host shares: the lines of the page, the tool, and how a row is judged.

A script is started with the address of the model server. The lines that set the host up are those of
`docs/in-process.md` or of the host's own page, executed as they are written there, with that address.
"""

import asyncio
import inspect
import json
import re
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "in-process.md"
ADDRESS = "http://127.0.0.1:8080/v1"
MODEL = "small"
QUESTION = "How cold is it in Oslo?"
DESCRIPTION = "Look up the weather of a city."
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OPENAI_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": DESCRIPTION,
        "parameters": PARAMETERS | {"additionalProperties": False},
        "strict": True,  # openai 2 streams no other tools to its parser
    },
}
REPORT = sys.stdout
sys.stdout = sys.stderr  # hosts print as they like: only rows go to the runner


class Weather:
    """The tool; each row has its own."""

    def __init__(self) -> None:
        self.cities: list[str] = []
        self.station = f"station-{secrets.token_hex(4)}"

    def get_weather(self, city: str) -> str:
        """Look up the weather of a city.

        Args:
            city: its name
        """
        self.cities.append(city)
        return f"-7 degrees, measured by {self.station}"

    def __deepcopy__(self, memo):
        """Return itself: google-genai copies its configuration, functions included, and the row counts the calls."""
        return self

    def __call__(self, arguments: Mapping[str, Any] | str) -> str:
        """Run a call."""
        return self.get_weather(**(json.loads(arguments) if isinstance(arguments, str) else arguments))


Work = Callable[[SimpleNamespace, Weather], Any]
"""Lets a host run the tool; returns its answer."""
Prepare = Callable[[str], SimpleNamespace]


def lines(host: str, page: Path = PAGE, language: str = "python") -> str:
    """Return the first block of a language below the heading of this host."""
    text = page.read_text(encoding="utf-8")
    sections = re.split(r"^#+ (.*)$", text, flags=re.MULTILINE)[1:]
    section = dict(zip(sections[::2], sections[1::2], strict=True)).get(host, "")
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    if found is None:
        sys.exit(f"{page.name} has no {language} block under the heading {host!r}")
    return found[1]


def at_address(written: str, address: str) -> str:
    """Return lines with the address of a model server that is there."""
    if ADDRESS not in written:
        sys.exit(f"these lines do not have the address {ADDRESS}:\n{written}")
    return written.replace(ADDRESS, address)


def set_up(host: str, page: Path = PAGE) -> SimpleNamespace:
    """Execute the lines, and return what they define."""
    written = at_address(lines(host, page), sys.argv[1])
    names: dict[str, Any] = {}
    exec(compile(written, f"{page.name}: {host}", "exec"), names)
    return SimpleNamespace(**names)


def address(host: str) -> SimpleNamespace:
    """Return only the address of the model server, for a host that the page has no lines for."""
    del host
    return SimpleNamespace(address=sys.argv[1])


def run(host: str, packages: tuple[str, ...], modes: Mapping[str, Work], prepare: Prepare = set_up) -> None:
    """Run each mode with a host set up anew, and print its row: the tool ran once, and the answer quotes it."""
    for mode, work in modes.items():
        weather = Weather()
        with _row(host, mode, packages, is_tool_run=True):
            is_async = inspect.iscoroutinefunction(work)
            final = asyncio.run(_awaited(prepare, host, work, weather)) if is_async else work(prepare(host), weather)
            assert weather.cities == ["Oslo"], f"the tool ran with {weather.cities}"
            assert weather.station in str(final), f"the answer does not quote the tool: {final!r}"


def check(host: str, packages: tuple[str, ...], checks: Mapping[str, Callable[[], None]]) -> None:
    """Run checks, which raise if something is wrong, and print the row of each."""
    for name, work in checks.items():
        with _row(host, name, packages, is_tool_run=False):
            work()


def raised(work: Callable[[], object]) -> Any:
    """Return the exception that work raises."""
    try:
        answer = work()
    except Exception as error:
        return error
    raise AssertionError(f"no error, but {answer!r}")


@contextmanager
def _row(host: str, mode: str, packages: tuple[str, ...], *, is_tool_run: bool) -> Iterator[None]:
    started = time.perf_counter()
    error = ""
    try:
        yield
    except Exception:  # the row says it
        error = traceback.format_exc()
    row = {
        "host": host,
        "mode": mode,
        "versions": " ".join(f"{package} {version(package)}" for package in packages),
        "is_tool_run": is_tool_run,
        "ok": not error,
        "error": error,
        "seconds": round(time.perf_counter() - started, 3),
    }
    print(json.dumps(row), file=REPORT, flush=True)


async def _awaited(prepare: Prepare, host: str, work: Work, weather: Weather) -> Any:
    return await work(prepare(host), weather)
