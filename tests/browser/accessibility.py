"""Checks every page of the dashboard with axe-core: both themes, both sizes. No finding may be serious or critical.

axe-core comes from npm, is checked by its hash and kept in the cache. The last line is JSON; the status is 1 if a page
has a finding.
"""

import subprocess
import tarfile
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from testkit.browser import BrowserPage, chromium, find_chromium
from testkit.llama_models import cache_folder
from testkit.report import close
from tests.browser.busy_gateway import BusyGateway, busy_gateway
from tests.browser.worked_gateway import worked_gateway
from tests.gateway.scene import config_of, key, serving, towards

VERSION, DIGEST = "4.14.0", "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
SIZES = ((1280, 900, ()), (390, 844, ("requests", "response again", "login")))
"""Sizes, and the pages that are checked in them; none means all. Narrow pages differ by a few rules of layout only."""
THEMES = ("light", "dark")


def axe_source() -> str:
    """Return the script, fetched if it is not in the cache."""
    file = cache_folder() / f"axe-{VERSION}.min.js"
    if not file.exists() or sha256(file.read_bytes()).hexdigest() != DIGEST:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as folder:
            command = ["npm", "pack", "--ignore-scripts", "--pack-destination", folder, f"axe-core@{VERSION}"]
            subprocess.run(command, check=True, capture_output=True)
            with tarfile.open(next(Path(folder).iterdir())) as archive:
                member = archive.extractfile("package/axe.min.js")
                assert member
                data = member.read()
        assert sha256(data).hexdigest() == DIGEST, f"axe-core {VERSION} has another hash than the pinned one"
        file.write_bytes(data)
    return file.read_text()


def findings(page: BrowserPage, source: str) -> list[str]:
    """Return what axe finds on a page that is serious or critical."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate(source + "; true")
    found: list[dict[str, Any]] = page.evaluate("axe.run().then(result => result.violations)")
    bad = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {node['html'][:160]} {node['failureSummary'][:300]}" for one in bad for node in one["nodes"]]


def pages_of(gateway: BusyGateway) -> dict[str, str]:
    """Return the address of every page, by its name."""
    own = {"requests": "/ui", "nothing found": "/ui?search=nothing-like-this", "no such page": "/ui/none"}
    own |= {"models": "/ui/models", "model": "/ui/models/qwen3-4b", "runs": "/ui/runs", "playground": "/ui/playground"}
    return {name: f"{gateway.url}{path}" for name, path in own.items()} | {
        f"response {name}": gateway.page(name) for name in gateway.traces
    }


def main() -> None:
    """Check all pages."""
    assert find_chromium(), "Chromium is not here: apt-get install chromium"
    source, began, checked = axe_source(), time.monotonic(), 0
    found: list[str] = []
    with busy_gateway() as gateway, chromium() as browser:
        locked = config_of(towards(gateway.upstream), keys=(key("sk-anna-key", "anna"),))
        with serving(locked) as closed, worked_gateway() as (url, run):
            addresses = pages_of(gateway) | {"login": f"http://127.0.0.1:{closed.port}/ui"}
            addresses |= {"some runs": f"{url}/ui/runs", "run": f"{url}/ui/runs/{run}"}
            for width, height, only in SIZES:
                for theme in THEMES:
                    page = browser.page(width, height, theme)
                    for name in only or addresses:
                        page.open(addresses[name])
                        checked += 1
                        found += [f"{name}, {width} wide, {theme}: {one}" for one in findings(page, source)]
                    page.close()
    print(*found, sep="\n")
    seconds = round(time.monotonic() - began, 1)
    close("ui-check", ok=not found, pages=checked, findings=len(found), seconds=seconds)


if __name__ == "__main__":
    main()
