"""Drives a headless Chromium over its DevTools protocol, without any package: requests and answers use pipes.

with chromium() as browser:
    page = browser.page(1280, 900, theme="dark")
    page.open("http://127.0.0.1:1234/ui")
    page.click("tr a")
    page.wait("document.title.startsWith('Request')")
    assert page.problems == []
"""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--remote-debugging-pipe",
)
SECONDS = 20.0


def find_chromium() -> str:
    """Return the program's path; empty if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), "")


class BrowserError(Exception):
    """The browser rejects a command, or does not finish it in time."""


class Browser:
    """A browser process. A thread reads its messages."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, out: int) -> None:
        self._process, self._to = process, to
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._news = threading.Condition()
        self.events: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, args=(out,), daemon=True).start()

    def _listen(self, out: int) -> None:
        waiting = b""
        with suppress(OSError):
            while piece := os.read(out, 1 << 20):
                *messages, waiting = (waiting + piece).split(b"\0")
                with self._news:
                    for message in map(json.loads, messages):
                        if "id" in message:
                            self._answers[message["id"]] = message
                        else:
                            self.events.append(message)
                    self._news.notify_all()

    def send(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        with self._news:
            if not self._news.wait_for(lambda: number in self._answers, SECONDS):
                raise BrowserError(f"{method} was not answered in {SECONDS:.0f} s")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def page(self, width: int = 1280, height: int = 900, theme: str = "light") -> "BrowserPage":
        """Open a tab with its own cookies."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = BrowserPage(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.resize(width, height)
        page.show_theme(theme)
        return page


class BrowserPage:
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def send(self, method: str, **params: object) -> dict[str, Any]:
        return self._browser.send(method, self._session, **params)

    def resize(self, width: int, height: int) -> None:
        metrics: dict[str, object] = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)

    def show_theme(self, theme: str) -> None:
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, url: str) -> None:
        """Load a page, and wait until it is there."""
        result = self.send("Page.navigate", url=url)
        if "errorText" in result:
            raise BrowserError(f"{url}: {result['errorText']}")
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 -- whatever the script returns
        """Return the value of a JavaScript expression; a promise is awaited."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = SECONDS) -> None:
        """Wait until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while True:
            with suppress(BrowserError):  # a page that is being replaced refuses
                if self.evaluate(f"!!({condition})"):
                    return
            if time.monotonic() > end:
                raise BrowserError(f"not in {seconds:.0f} s: {condition}")
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click on the first element that a CSS selector finds, with the mouse, as a person does."""
        found = json.dumps(selector)
        self.wait(f"document.querySelector({found})")
        self.evaluate(f"document.querySelector({found}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.evaluate(
            f"(() => {{ const b = document.querySelector({found}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        """Write into a field."""
        self.click(selector)
        self.send("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key such as `Tab` or `Enter`."""
        codes = {"Tab": 9, "Enter": 13}
        text = "\r" if key == "Enter" else "" if len(key) > 1 else key
        for kind in ("keyDown", "keyUp"):
            code = codes.get(key, 0)
            more = {"text": text} if text and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)

    def text(self, selector: str) -> str:
        """Return the visible text of an element; empty if it is not there."""
        text: str = self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")
        return text

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Write a PNG of the page, or of the part that can be seen."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole=whole))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(data["data"]))

    def _clip(self, *, whole: bool) -> dict[str, object]:
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}

    @property
    def problems(self) -> list[str]:
        """Problems that the browser reports: errors of scripts, and loads that the policy of a page has blocked."""
        mine = [event for event in tuple(self._browser.events) if event.get("sessionId") == self._session]
        logged = [event["params"]["entry"] for event in mine if event["method"] == "Log.entryAdded"]
        thrown = [event["params"] for event in mine if event["method"] == "Runtime.exceptionThrown"]
        return [f"{one['source']}: {one['text']}" for one in logged if one["level"] == "error"] + [
            json.dumps(one["exceptionDetails"])[:500] for one in thrown
        ]

    @property
    def hosts(self) -> set[str]:
        """The hosts that received a request."""
        mine = [event for event in tuple(self._browser.events) if event.get("sessionId") == self._session]
        urls = [e["params"]["request"]["url"] for e in mine if e["method"] == "Network.requestWillBeSent"]
        return {url.split("/")[2] for url in urls if url.startswith(("http:", "https:", "ws:", "wss:"))}

    def close(self) -> None:
        """Close the tab."""
        self._browser.send("Target.closeTarget", targetId=self._target)


@contextmanager
def chromium() -> Generator[Browser]:
    """Run a browser with an empty profile."""
    to_read, to_write = os.pipe()
    out_read, out_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:

        def pipes() -> None:  # the browser reads from 3 and writes to 4
            first, second = os.dup(to_read), os.dup(out_write)
            os.dup2(first, 3)
            os.dup2(second, 4)

        process = subprocess.Popen(
            [find_chromium(), *FLAGS, f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=pipes,  # noqa: PLW1509 # nothing else can put pipes at two given numbers
            close_fds=False,
        )
        os.close(to_read)
        os.close(out_write)
        try:
            yield Browser(process, to_write, out_read)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()
            os.close(to_write)
            os.close(out_read)
