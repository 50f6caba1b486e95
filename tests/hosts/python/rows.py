"""What the script of each host shares: the lines of the page, the tool, and how a row is judged.

A script is started with the address of the model server. The lines that set the host up are those of
`docs/in-process.md`, executed as they are written there, with that address.
"""

import asyncio
import inspect
import json
import re
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "in-process.md"
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


def lines(host: str) -> str:
    """Return the lines of the page below the heading of this host."""
    page = PAGE.read_text(encoding="utf-8")
    sections = re.split(r"^#+ (.*)$", page, flags=re.MULTILINE)[1:]
    section = dict(zip(sections[::2], sections[1::2], strict=True)).get(host, "")
    found = re.search(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    if found is None:
        sys.exit(f"{PAGE.name} has no Python block under the heading {host!r}")
    return found[1]


def set_up(host: str) -> SimpleNamespace:
    """Execute the lines, and return what they define."""
    written = lines(host)
    if ADDRESS not in written:
        sys.exit(f"the lines of {host!r} do not have the address {ADDRESS}")
    names: dict[str, Any] = {}
    exec(compile(written.replace(ADDRESS, sys.argv[1]), f"{PAGE.name}: {host}", "exec"), names)
    return SimpleNamespace(**names)


def address(host: str) -> SimpleNamespace:
    """Return only the address of the model server, for a host that the page has no lines for."""
    del host
    return SimpleNamespace(address=sys.argv[1])


def run(host: str, packages: tuple[str, ...], modes: Mapping[str, Work], prepare: Prepare = set_up) -> None:
    """Run each mode with a host set up anew, and print its row."""
    versions = " ".join(f"{package} {version(package)}" for package in packages)
    for mode, work in modes.items():
        weather = Weather()
        started = time.perf_counter()
        error = ""
        try:
            is_async = inspect.iscoroutinefunction(work)
            final = asyncio.run(_awaited(prepare, host, work, weather)) if is_async else work(prepare(host), weather)
            if weather.cities != ["Oslo"]:
                error = f"the tool ran with {weather.cities}"
            elif weather.station not in str(final):
                error = f"the answer does not quote the tool: {final!r}"
        except Exception:  # the row says it
            error = traceback.format_exc()
        seconds = round(time.perf_counter() - started, 3)
        row = {"host": host, "mode": mode, "versions": versions, "ok": not error, "error": error, "seconds": seconds}
        print(json.dumps(row), file=REPORT, flush=True)


async def _awaited(prepare: Prepare, host: str, work: Work, weather: Weather) -> Any:
    return await work(prepare(host), weather)
