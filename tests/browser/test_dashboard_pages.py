"""The dashboard in a real browser: five questions in three clicks, live rows, hostile text that stays text (OBS-16)."""

import json
import time
from collections.abc import Generator
from typing import Any

import pytest

from testkit.browser import Browser, BrowserPage, chromium, find_chromium
from testkit.protocols import answering
from testkit.scripted_upstream import listening, refuse
from testkit.vendor_answers import Answer
from tests.browser.busy_gateway import BusyGateway, busy_gateway, slowly
from tests.gateway.scene import config_of, key, serving, towards
from toolspeak.config.shape import Traces
from toolspeak.engine.settings import Mode, Settings

PWN = "window.pwned=1"
HOSTILE = (
    f"<script>{PWN}</script><img src=x onerror={PWN}><svg onload={PWN}>\"'><b onmouseover={PWN}>B</b>"
    f'<a href="javascript:{PWN}">go</a></pre></textarea></title><style>*{{display:none}}</style>'
    f'<iframe srcdoc="<script>parent.{PWN}</script>"></iframe>'
    "{{ 7*7 }} {% raw %} &lt;i&gt; \x1b[2J\x1b]0;pwned\x07 \u202egnp.exe\u200b \ud83d"
)
LONG = 10 << 20


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    assert find_chromium(), "Chromium is not here: apt-get install chromium"
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def gateway() -> Generator[BusyGateway]:
    with busy_gateway() as served:
        yield served


@pytest.fixture
def page(browser: Browser, gateway: BusyGateway) -> Generator[BrowserPage]:
    """Open the list of requests."""
    opened = browser.page()
    opened.open(f"{gateway.url}/ui")
    yield opened
    assert opened.problems == []
    assert opened.hosts == {f"127.0.0.1:{gateway.served.port}"}
    opened.close()


# ---------------------------------------------------------------- the five questions, each in at most three clicks


def follow(page: BrowserPage, gateway: BusyGateway, name: str, section: str) -> str:
    """Click on a request, then on a section; return what can be read there."""
    page.click(f"#r-{gateway.traces[name]} a")
    page.wait("document.querySelector('#story')")
    page.click(f".side a[href='#{section}']")
    page.wait(
        f"(() => {{ const top = document.querySelector('#{section}').getBoundingClientRect().top;"
        " return top < innerHeight && top > -5; })()"
    )
    return page.text(f"#{section}")


def test_two_clicks_tell_why_a_request_was_emulated_obs16(page: BrowserPage, gateway: BusyGateway) -> None:
    said = follow(page, gateway, "emulated", "plan")
    assert "emulated" in said
    assert "the upstream has no tools" in said


def test_two_clicks_tell_what_the_model_really_wrote_obs16(page: BrowserPage, gateway: BusyGateway) -> None:
    said = follow(page, gateway, "again", "attempt-1")
    assert '{"name": "get_weather", "arguments": {"town": "Oslo", "days": 3}}' in said
    title = page.evaluate("document.querySelector('#attempt-1 .span.invalid').title")
    assert title.startswith("a rejected call: schema_error")


def test_two_clicks_tell_why_the_model_was_asked_again_obs16(page: BrowserPage, gateway: BusyGateway) -> None:
    said = follow(page, gateway, "again", "attempt-2")
    assert "Asked again: its calls cannot run: get_weather" in said
    assert "What changed since attempt 1" in said


def test_two_clicks_tell_what_it_cost_obs16(page: BrowserPage, gateway: BusyGateway) -> None:
    said = follow(page, gateway, "again", "costs")
    assert "tokens in\n22" in said
    assert "1 inline, hidden" in said
    assert page.evaluate("document.querySelectorAll('#costs svg').length") == 2


def test_two_clicks_tell_what_eats_the_context_obs16(page: BrowserPage, gateway: BusyGateway) -> None:
    follow(page, gateway, "emulated", "context")
    first = page.text("#context tbody tr")
    assert first.startswith("message 1 (system): You are a careful coding assistant")


# ---------------------------------------------------------------- what a person does


def test_a_row_appears_while_its_request_runs_and_settles(browser: Browser, gateway: BusyGateway) -> None:
    page = browser.page()
    page.open(f"{gateway.url}/ui")
    page.wait("document.querySelector('[data-live-text]').textContent === 'live'")
    known = page.evaluate("document.querySelectorAll('[data-rows] tr').length")
    gateway.ask("live", "qwen3-4b", "live/1", slowly(Answer("It is cold."), 0.8, 0.2), stream=True)
    page.wait("document.querySelector('[data-rows] tr').innerText.includes('live/1')")
    page.wait("document.querySelector('[data-rows] tr').className.includes('is-ok')")
    assert page.evaluate("document.querySelectorAll('[data-rows] tr').length") == known + 1
    page.close()


def test_filter_and_search_narrow_the_list(page: BrowserPage, gateway: BusyGateway) -> None:
    page.click("input[value=failed]")
    page.wait("[...document.querySelectorAll('[data-rows] tr')].every(row => row.className.includes('failed'))")
    assert gateway.traces["failed"] in page.evaluate("document.querySelector('[data-rows]').innerHTML")
    page.click("input[value=all]")
    page.type("#search", "llama-3.3")
    page.wait("document.querySelectorAll('[data-rows] tr').length === 1")
    assert "rescued" in page.text("[data-rows]")
    assert page.evaluate("location.search").endswith("search=llama-3.3")


def test_a_replay_shows_both_answers_side_by_side(page: BrowserPage, gateway: BusyGateway) -> None:
    page.open(gateway.page("emulated"))
    page.evaluate("document.querySelector('select[name=mode]').value = 'off'")
    page.click("#replay button")
    page.wait("document.querySelector('#replayed .beside')")
    said = page.text("#replayed")
    assert "The client would get another answer." in said
    assert "call get_weather" in said
    assert "```tool_call" in said


def test_the_keyboard_reaches_rows_and_the_search(page: BrowserPage) -> None:
    page.press("/")
    page.wait("document.activeElement.id === 'search'")
    page.press("Tab")
    page.wait("document.activeElement.matches('a.stretched')")
    page.press("Enter")
    page.wait("location.pathname.startsWith('/ui/requests/')")


def test_the_theme_can_be_switched_and_is_kept(page: BrowserPage, gateway: BusyGateway) -> None:
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("[data-theme-toggle]")
    after = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert before != after
    page.open(f"{gateway.url}/ui")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == after


@pytest.mark.parametrize("name", ["", "again", "failed", "running"])
def test_no_page_is_wider_than_a_phone(browser: Browser, gateway: BusyGateway, name: str) -> None:
    page = browser.page(390, 844)
    page.open(gateway.page(name) if name else f"{gateway.url}/ui")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_a_person_logs_in_and_out(browser: Browser) -> None:
    with listening() as upstream, serving(config_of(towards(upstream), keys=(key("sk-anna-key", "anna"),))) as locked:
        page = browser.page()
        page.open(f"http://127.0.0.1:{locked.port}/ui")
        page.type("#key", "sk-wrong-key")
        page.press("Enter")
        page.wait("document.querySelector('[role=alert]')?.innerText.includes('not known')")
        page.type("#key", "sk-anna-key")
        page.press("Enter")
        page.wait("document.querySelector('.tenant')?.innerText === 'anna'")
        assert page.evaluate("document.cookie") == ""
        page.click("form[action='/ui/logout'] button")
        page.wait("location.pathname === '/ui/login'")
        page.close()


# ---------------------------------------------------------------- hostile text


def hostile_body() -> dict[str, Any]:
    """Return a request with hostile text in every field that a page shows."""
    named = {"name": "get_weather", "arguments": json.dumps({"city": HOSTILE})}
    return {
        "model": HOSTILE.replace("\ud83d", ""),
        "messages": [
            {"role": "system", "content": HOSTILE},
            {"role": "user", "content": HOSTILE + "x" * (1 << 20)},
            {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": named}]},
            {"role": "tool", "tool_call_id": "c1", "content": HOSTILE},
            {"role": "user", "content": HOSTILE},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": HOSTILE,
                    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, HOSTILE: {}}},
                },
            }
        ],
    }


def test_hostile_text_in_every_field_is_shown_as_text_and_nothing_runs_obs16(browser: Browser) -> None:
    said = json.dumps({"name": "get_weather", "arguments": {"city": HOSTILE, "town": HOSTILE}})
    unknown = json.dumps({"name": HOSTILE, "arguments": {}})
    text = f"{HOSTILE}\n```tool_call\n{said}\n```\n```tool_call\n{unknown}\n```\n{HOSTILE}"
    with listening() as upstream:
        settings, traces = Settings(mode=Mode.FORCE, dialect="fenced"), Traces(bytes=256 << 20)
        with serving(config_of(towards(upstream), settings=settings, traces=traces)) as served:
            answers = (text, text + "y" * LONG, HOSTILE)
            ids: list[str] = []
            for script in (*(answering(Answer(one, reasoning=HOSTILE)) for one in answers), refuse(400, HOSTILE)):
                upstream.answers(script)
                agent = {
                    "user-agent": HOSTILE.encode("ascii", "ignore").decode().replace("\x1b", "").replace("\x07", "")
                }
                ids.append(served.post("/v1/chat/completions", hostile_body(), agent).headers["x-toolspeak-trace"])
            page, base = browser.page(), f"http://127.0.0.1:{served.port}/ui"
            page.open(base)
            assert "<script>" in page.text("[data-rows]")
            page.type("#search", "<script>")
            page.wait("location.search.includes('script')")
            assert page.evaluate("window.pwned") is None
            for id in ids:
                began = time.monotonic()
                page.open(f"{base}/requests/{id}")
                assert time.monotonic() - began < 10
                assert page.evaluate("document.documentElement.outerHTML.length") < 1_000_000
                assert "<script>" in page.text("#request")
                assert "\\x1b[2J" in page.text("#request")
                assert "\\u202e" in page.text("#request")
                page.click("#request .more button")
                page.wait("document.querySelector('#request-json pre')")
                page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
                if page.evaluate("!!document.querySelector('#replay')"):
                    page.click("#replay button")
                    page.wait("document.querySelector('#replayed').innerText")
                assert page.evaluate("window.pwned") is None
                assert page.evaluate("document.querySelectorAll('main script, main iframe, main style').length") == 0
            assert page.problems == []
            page.close()


def test_even_markup_that_got_into_a_page_could_not_run(browser: Browser, gateway: BusyGateway) -> None:
    """The second wall, should a template ever fail to escape; and `problems` does see what the policy blocks."""
    page = browser.page()
    page.open(f"{gateway.url}/ui")
    page.evaluate(f"document.querySelector('h1').innerHTML = {json.dumps(f'<img src=x onerror={PWN}>')}")
    page.wait("document.querySelector('h1 img').complete")
    page.evaluate(
        "(() => { const one = document.createElement('script');"
        f" one.textContent = {json.dumps(PWN)}; document.body.append(one); }})()"
    )
    assert page.evaluate("window.pwned") is None
    assert sum("Content Security Policy" in problem for problem in page.problems) >= 2
    page.close()
