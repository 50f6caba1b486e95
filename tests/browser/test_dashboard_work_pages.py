"""Models, runs and the playground in a real browser: what a person presses, and hostile text (OBS-17 to OBS-19)."""

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testkit.browser import Browser, BrowserPage, chromium, find_chromium
from testkit.scripted_upstream import JSON, SSE, Asked, ScriptedUpstream, listening
from testkit.vendor_answers import STREAMS, Answer
from tests.browser.busy_gateway import slowly
from tests.gateway.scene import Served, config_of, serving, towards
from tests.gateway.test_dashboard_models import taught
from tests.unit.doctor.pupil import Pupil
from toolspeak.config.shape import Durable, Offer, Server
from toolspeak.engine.verdict import Depth

PWN = "window.pwned=1"
HOSTILE = f"<script>{PWN}</script><img src=x onerror={PWN}></pre><svg onload={PWN}>"
WRITE = Answer("I write it.", calls=(("call_1", "write_file", {"path": "a.txt", "content": HOSTILE}),))
DONE = Answer(f"It is written. {HOSTILE}")


@dataclass(frozen=True)
class Scene:
    """A gateway with runs and probes, and a page in a browser."""

    served: Served
    upstream: ScriptedUpstream
    page: BrowserPage

    def open(self, path: str) -> None:
        self.page.open(f"http://127.0.0.1:{self.served.port}{path}")


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    assert find_chromium(), "Chromium is not here: apt-get install chromium"
    with chromium() as running:
        yield running


@pytest.fixture
def scene(browser: Browser, tmp_path: Path) -> Generator[Scene]:
    with listening(("m",)) as upstream:
        runs, offer = Durable(folder=tmp_path), Offer(enabled=True, tools=("files",))
        server = Server(probe=Depth.TOKENS)
        with serving(config_of(towards(upstream, retries=0), server=server, runs=runs, offer=offer)) as served:
            page = browser.page()
            yield Scene(served, upstream, page)
            assert page.evaluate("window.pwned") is None
            assert page.problems == []
            assert page.hosts == {f"127.0.0.1:{served.port}"}
            page.close()


def test_probe_now_changes_the_row_when_the_probe_has_ended_obs17(scene: Scene) -> None:
    async def script(asked: Asked) -> None:
        if asked.wire:
            await asked.whole(200, json.dumps(_answer(asked)).encode(), JSON)
        else:
            await asked.whole(404, b"{}", JSON)

    scene.upstream.answers(script)
    scene.open("/ui/models")
    assert "native first" in scene.page.text(".models-table tbody tr")
    scene.page.click(".m-action button")
    scene.page.wait("document.querySelector('.models-table tbody tr').innerText.includes('has no tools')")
    assert "dropped in silence" in scene.page.text(".models-table tbody tr")


def test_the_doctor_is_started_and_watched_by_clicks_obs17(scene: Scene) -> None:
    scene.upstream.answers(taught(Pupil("hermes")))
    scene.open("/ui/models/m")
    scene.page.click("#doctor-part button[value=quick]")
    scene.page.wait("document.querySelector('#doctor-part button[value=stop]')")
    scene.page.wait("document.querySelector('#doctor-part button[value=quick]')", 120)
    said = " ".join(scene.page.text("#doctor-part").split())
    assert "m: toolspeak now speaks hermes to it" in said
    assert "hermes" in scene.page.text("#doctor-part .scores")


def _answer(asked: Asked) -> dict[str, object]:
    del asked  # as many tokens with tools as without: they are dropped
    usage = {"prompt_tokens": 11, "completion_tokens": 1, "total_tokens": 12}
    message = {"role": "assistant", "content": "No."}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def test_a_run_is_watched_and_its_call_approved_by_a_click_obs18(scene: Scene) -> None:
    scene.upstream.answers(slowly(WRITE, 0.5, 0.02), slowly(DONE, 0.1, 0.02))
    id = scene.served.post("/v1/runs", {"task": f"Write a file. {HOSTILE}", "approval": "ask"}).json["id"]
    scene.open("/ui/runs")
    scene.page.click(".runs-table a")
    scene.page.wait("document.querySelector('.approval')")
    assert f'"content": "{HOSTILE}"' in scene.page.text(".approval pre")
    scene.page.click(".approval button[value=approve]")
    scene.page.wait("document.querySelector('.answer')")
    assert "It is written." in scene.page.text(".answer")
    assert scene.page.evaluate("document.querySelector('#round-1').open") is False
    scene.page.click("#round-1 > summary")
    assert "write_file done" in " ".join(scene.page.text("#round-1").split())
    assert scene.served.ask("GET", f"/v1/runs/{id}").json["status"] == "done"


def test_the_playground_fills_its_columns_side_by_side_obs19(scene: Scene) -> None:
    async def script(asked: Asked) -> None:
        leak = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
        said = Answer(f"{HOSTILE}\n{leak}")
        asked.head(200, SSE)
        await asked.chunk(STREAMS["openai_chat"](said).encode())
        await asked.end()

    scene.upstream.answers(script)
    scene.open("/ui/playground")
    scene.page.click("[data-play]")
    scene.page.wait("document.querySelectorAll('.column footer').length === 4")
    columns = scene.page.evaluate("[...document.querySelectorAll('.column-body')].map(one => one.innerText)")
    assert columns[0].startswith("unchanged")
    assert columns[1].startswith("rescued")
    assert all(HOSTILE in column for column in columns[:2])
    assert len(scene.page.evaluate("[...document.querySelectorAll('.column footer a')].map(one => one.href)")) == 4
    scene.page.click(".column footer a")
    scene.page.wait("location.pathname.startsWith('/ui/requests/')")


def test_stop_cancels_all_columns_obs19(scene: Scene) -> None:
    scene.upstream.answers(slowly(Answer("word " * 400), 0.0, 0.05))
    scene.open("/ui/playground")
    scene.page.click("[data-play]")
    scene.page.wait("[...document.querySelectorAll('.column-body')].every(one => one.innerText.includes('word'))")
    assert scene.served.inside == 4
    scene.page.click("[data-play-stop]")
    scene.page.wait("[...document.querySelectorAll('.column-body')].every(one => one.innerText === 'Stopped.')")
    scene.upstream.wait_for(4)
    assert all(asked.hung_up.wait(5) for asked in scene.upstream.asked)
