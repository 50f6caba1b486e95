"""Takes pictures of every page of the dashboard: both themes, both sizes, from a gateway with a scripted model.

All of them go to `build/ui`. The few that the documentation shows go to `docs/ui` too.
"""

import shutil
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from testkit.browser import BrowserPage, chromium
from tests.browser.busy_gateway import BusyGateway, busy_gateway
from tests.browser.worked_gateway import worked_gateway
from tests.gateway.scene import config_of, key, serving, towards

ROOT = Path(__file__).resolve().parent.parent
BUILD, DOCS = ROOT / "build" / "ui", ROOT / "docs" / "ui"
SIZES = {"wide": (1280, 860), "narrow": (390, 844)}
SHOWN = (
    *("requests-wide-light", "response-wide-light", "answer-narrow-dark"),
    *("models-wide-light", "run-wide-light", "playground-wide-light"),
)
LARGEST = 150 * 1024
_SETTLED = 1.2


def main() -> None:
    """Write all pictures, and copy those for the documentation."""
    shutil.rmtree(BUILD, ignore_errors=True)
    with ExitStack() as stack:
        gateway, browser = stack.enter_context(busy_gateway()), stack.enter_context(chromium())
        fresh = config_of(towards(gateway.upstream))
        others = {
            "first-request": stack.enter_context(serving(fresh)),
            "login": stack.enter_context(serving(replace(fresh, keys=(key("sk-anna-key", "anna"),)))),
        }
        for size, (width, height) in SIZES.items():
            for theme in ("light", "dark"):
                page = browser.page(width, height, theme)
                _take(gateway, page, f"{size}-{theme}")
                for name, served in others.items():
                    page.open(f"http://127.0.0.1:{served.port}/ui")
                    page.screenshot(BUILD / f"{name}-{size}-{theme}.png")
                _take_work(gateway, page, f"{size}-{theme}")
                page.close()
    DOCS.mkdir(exist_ok=True)
    for name in SHOWN:
        picture = BUILD / f"{name}.png"
        assert picture.stat().st_size <= LARGEST, f"{picture} has {picture.stat().st_size} bytes"
        shutil.copy(picture, DOCS / picture.name)
    print(f"{len(list(BUILD.iterdir()))} pictures in {BUILD}, {len(SHOWN)} of them in {DOCS}")


def _take(gateway: BusyGateway, page: BrowserPage, kind: str) -> None:
    page.open(f"{gateway.url}/ui")
    time.sleep(_SETTLED)  # rows that arrive are coloured for a moment
    page.screenshot(BUILD / f"requests-{kind}.png")
    page.open(f"{gateway.url}/ui?search=nothing-like-this")
    page.screenshot(BUILD / f"empty-{kind}.png")
    for name in gateway.traces:
        page.open(gateway.page(name))
        page.screenshot(BUILD / f"{name}-{kind}.png", whole=name != "running")
    page.open(gateway.page("again"))
    page.screenshot(BUILD / f"response-{kind}.png")
    page.open(f"{gateway.page('again')}#attempt-1")
    time.sleep(0.3)
    page.screenshot(BUILD / f"answer-{kind}.png")
    page.evaluate("document.querySelector('select[name=mode]').value = 'off'")
    page.click("#replay button")
    page.wait("document.querySelector('#replayed .beside')")
    page.evaluate("document.querySelector('#replay').scrollIntoView()")
    page.screenshot(BUILD / f"replay-{kind}.png")


def _take_work(gateway: BusyGateway, page: BrowserPage, kind: str) -> None:
    """Take pictures of models, a run that waits for approval, and the playground."""
    page.open(f"{gateway.url}/ui/models")
    page.screenshot(BUILD / f"models-{kind}.png")
    page.open(f"{gateway.url}/ui/models/qwen3-4b")
    page.screenshot(BUILD / f"model-{kind}.png", whole=True)
    with worked_gateway() as (url, run):
        page.open(f"{url}/ui/runs/{run}")
        page.wait("document.querySelector('.approval')")
        page.screenshot(BUILD / f"run-{kind}.png")
        page.open(f"{url}/ui/runs")
        page.screenshot(BUILD / f"runs-{kind}.png")
        page.open(f"{url}/ui/playground")
        page.click("[data-play]")
        page.wait("document.querySelectorAll('.column footer').length === 4")
        page.screenshot(BUILD / f"playground-{kind}.png", whole=kind.startswith("narrow"))


if __name__ == "__main__":
    main()
