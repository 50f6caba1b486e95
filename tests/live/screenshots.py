"""`just screenshots-live`: pictures of the dashboard while real agents work with a real model.

llama.cpp's server runs the model, `toolspeak serve` is in front of it, and `toolspeak launch` starts Claude Code and
pi, each with a small task; a run gets one, too. Then every page is taken in both themes and sizes, into build/ui-live.
What each agent did is printed; a small model may fail at its task, and its turns are worth a picture even so.

    just screenshots-live                                  the 1.5B
    just screenshots-live --model qwen2.5-coder-0.5b       a quicker one
    just screenshots-live --docs                           also copies three pictures to docs/ui
"""

import argparse
import http.client
import json
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from testkit.browser import BrowserPage, chromium
from testkit.llama_models import MODELS
from testkit.llama_server import LlamaServer
from testkit.report import close
from tests.clients.install import install
from tests.live.gateway import gateway
from tests.live.launch import environment

ROOT = Path(__file__).resolve().parents[2]
BUILD, DOCS = ROOT / "build" / "ui-live", ROOT / "docs" / "ui"
THEMES = ("light", "dark")
SIZES = {"wide": (1280, 860), "narrow": (390, 844)}
COPIED = ("requests-wide-light", "pi-wide-light", "playground-wide-light")
PATIENCE_S = 600.0
COLUMNS_S = 240.0


@dataclass(frozen=True, slots=True)
class Task:
    """What an agent is asked, and how it is started for one task."""

    agent: str
    pin: str
    program: str
    """How its requests begin their `User-Agent`."""
    words: tuple[str, ...]


TASKS = (
    Task(
        "claude",
        "claude-code",
        "claude-cli/",
        ("--tools", "Write", "--dangerously-skip-permissions", "-p", "Create a file hello.txt that says hello."),
    ),
    Task("pi", "pi", "OpenAI/JS", ("-p", "Read the file notes.txt and tell me when the ferry leaves.")),
)


def work(task: Task, url: str, folder: Path) -> str:
    """Let an agent work on its task; return how that ended."""
    home, place, temporary = (folder / task.agent / each for each in ("home", "work", "tmp"))
    for each in (home, place, temporary):
        each.mkdir(parents=True)
    (place / "notes.txt").write_text("The ferry leaves at half past six.\n")
    command = [sys.executable, "-m", "toolspeak", "launch", task.agent, "--gateway", url, "--", *task.words]
    environ = {**environment(task.pin, home, temporary), "API_TIMEOUT_MS": "3000000"}
    began = time.monotonic()
    try:
        ended = subprocess.run(
            command,
            cwd=place,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {PATIENCE_S:.0f} s"
    made = sorted(file.name for file in place.iterdir() if file.name != "notes.txt")
    said = " ".join(ended.stdout.split())[-200:]
    return f"status {ended.returncode} after {time.monotonic() - began:.0f} s, files {made}: {said}"


def runs_config(folder: Path) -> Path:
    """Write a configuration with which the gateway offers runs."""
    file = folder / "toolspeak.toml"
    file.write_text('[runs]\nenabled = true\ntools = ["files"]\n')
    return file


def listed(url: str) -> list[dict[str, Any]]:
    """Return the turns of the gateway, the newest first."""
    traces: list[dict[str, Any]] = _asked(url, "GET", "/traces?limit=200")["traces"]
    return traces


def pages_of(url: str, model: str) -> dict[str, str]:
    """Return the pages to take: for each agent, its turn with the most requests to the model, then the most tokens."""
    turns = listed(url)
    found = {"requests": "/ui", "models": "/ui/models", "model": f"/ui/models/{model}", "runs": "/ui/runs"}
    for task in TASKS:
        mine = [one for one in turns if str(one.get("agent", "")).startswith(task.program)]
        best = max(mine, key=lambda one: (one.get("requests", 0), one.get("output_tokens", 0)), default=None)
        if best is not None:
            found[task.agent] = f"/ui/requests/{best['id']}"
    return found


def take(page: BrowserPage, url: str, pages: dict[str, str], kind: str) -> None:
    """Take every page."""
    for name, path in pages.items():
        page.open(url + path)
        time.sleep(0.5)
        page.screenshot(BUILD / f"{name}-{kind}.png")
        if name in (task.agent for task in TASKS):
            page.screenshot(BUILD / f"{name}-whole-{kind}.png", whole=True)


def play(page: BrowserPage, url: str) -> None:
    """Ask the model in four ways on the playground, and take the page in all sizes and themes."""
    page.open(f"{url}/ui/playground")
    page.click("[data-play]")
    page.wait("document.querySelectorAll('.column footer').length === 4", COLUMNS_S)
    for size, (width, height) in SIZES.items():
        page.resize(width, height)
        for theme in THEMES:
            page.show_theme(theme)
            time.sleep(0.5)
            page.screenshot(BUILD / f"playground-{size}-{theme}.png", whole=size == "narrow")


def start_run(url: str) -> str:
    """Start a run that may write files after approval; return its id when it asks for it, or has ended."""
    body = json.dumps({"task": "Write a file hello.txt that says hello.", "approval": "ask"})
    id = str(_asked(url, "POST", "/v1/runs", body)["id"])
    until = time.monotonic() + COLUMNS_S
    while time.monotonic() < until and _asked(url, "GET", f"/v1/runs/{id}")["status"] == "running":
        time.sleep(1)
    return id


def _asked(url: str, method: str, path: str, body: str | None = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request(method, path, body, {"content-type": "application/json"})
    answer: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def main() -> None:
    """Start everything, let the agents work, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=[*MODELS], default="qwen2.5-coder-1.5b")
    parser.add_argument("--docs", action="store_true", help="copy three pictures to docs/ui")
    asked = parser.parse_args()
    install(task.pin for task in TASKS)
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        LlamaServer(asked.model) as server,
        gateway(f"{server.url}/v1", "--config", str(runs_config(Path(folder)))) as url,
        chromium() as browser,
    ):
        for task in TASKS:
            print(f"{task.agent}: {work(task, url, Path(folder))}", flush=True)
        pages = {**pages_of(url, asked.model), "run": f"/ui/runs/{start_run(url)}"}
        first = browser.page(*SIZES["wide"], THEMES[0])
        play(first, url)
        first.close()
        for size, (width, height) in SIZES.items():
            for theme in THEMES:
                page = browser.page(width, height, theme)
                take(page, url, pages, f"{size}-{theme}")
                page.close()
        turns = len(listed(url))
    if asked.docs:
        for name in COPIED:
            shutil.copy(BUILD / f"{name}.png", DOCS / f"live-{name}.png")
    ok = all(task.agent in pages for task in TASKS)
    close("screenshots-live", ok=ok, model=asked.model, turns=turns, pictures=len(list(BUILD.iterdir())))


if __name__ == "__main__":
    main()
