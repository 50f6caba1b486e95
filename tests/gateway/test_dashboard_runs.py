"""The pages of runs: a list, and one run with its rounds, live, with approvals (OBS-18)."""

import http.client
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from testkit.protocols import says, slowly
from testkit.scripted_upstream import SSE, ScriptedUpstream
from testkit.vendor_answers import Answer
from tests.gateway.scene import Served, config_of, key, serving, soon, towards
from tests.gateway.test_dashboard import log_in, send_form
from toolspeak.config.shape import Durable, Offer

ANNA, BEN = {"authorization": "Bearer sk-anna"}, {"authorization": "Bearer sk-ben"}
LOOK = Answer("I look.", calls=(("call_1", "list_files", {}),))
WRITE = Answer("I write.", calls=(("call_2", "write_file", {"path": "a.txt", "content": "<b>Hi</b>"}),))
DONE = Answer("All done. <script>alert(1)</script>")
HTMX = {"hx-request": "true"}


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        config = config_of(
            towards(upstream, retries=0),
            keys=(key("sk-anna", "anna"), key("sk-ben", "ben")),
            runs=Durable(folder=folder),
            offer=Offer(enabled=True, tools=("files",), live=5),
        )
        with serving(config) as served:
            yield served


@pytest.fixture(scope="module")
def anna(gateway: Served) -> dict[str, str]:
    return log_in(gateway, "sk-anna")


def begin(gateway: Served, **body: Any) -> str:  # noqa: ANN401 # a spec's fields
    reply = gateway.post("/v1/runs", {"task": "Look around.", **body}, ANNA)
    assert reply.status == 201, reply.body
    return reply.json["id"]


def status_of(gateway: Served, id: str) -> str:
    return gateway.ask("GET", f"/v1/runs/{id}", None, ANNA).json["status"]


def words(body: bytes) -> str:
    """Return the text of a page, without markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body.decode())).split())


def page(gateway: Served, path: str, headers: dict[str, str]) -> str:
    reply = gateway.ask("GET", path, headers=headers)
    assert reply.status == 200, reply.body
    return words(reply.body)


@contextmanager
def parts(gateway: Served, id: str, cookie: dict[str, str]) -> Generator[Iterator[tuple[str, str]]]:
    """Open the stream of a run's page: names and data of its events."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    connection.request("GET", f"/ui/run-events/{id}", headers=cookie)
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, SSE), answer.read()
    try:
        yield _events(answer)
    finally:
        connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, str]]:
    name, data = "", [""]
    while line := answer.readline().decode():
        if line.startswith("event: "):
            name, data = line[7:].strip(), []
        elif line.startswith("data: "):
            data.append(line[6:])
        elif line == "\n" and name:
            yield name, "".join(data)
            name = ""


def test_without_runs_the_page_says_how_to_enable_them_obs18(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream))) as plain:
        shown = plain.ask("GET", "/ui/runs")
        assert shown.status == 200
        assert "Runs are not enabled" in words(shown.body)
        assert "[runs] enabled = true" in words(shown.body)
        assert "Runs are not enabled" in words(send_form(plain, "/ui/runs/any", action="cancel").body)
        assert plain.ask("GET", "/ui/run-events/any").status == 404


def test_an_ended_run_shows_its_rounds_and_its_answer_as_text_obs18(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(says(LOOK), says(DONE))
    id = begin(gateway, task="Look around <b>now</b>.")
    assert soon(lambda: status_of(gateway, id) == "done", 10)
    shown = gateway.ask("GET", f"/ui/runs/{id}", headers=anna).body
    assert b"<script>alert" not in shown
    assert b"<b>now</b>" not in shown
    text = words(shown)
    assert "done Look around <b>now</b>." in text
    assert "Round 1 list_files I look. I look. list_files done {}" in text
    assert "Answer All done. <script>alert(1)</script>" in text
    assert "Cancel" not in text
    assert "Resume" not in text
    row = page(gateway, "/ui/runs", anna)
    assert "done Look around <b>now</b>. m 1 rounds 36 tokens" in row


def test_a_tenant_sees_and_changes_only_its_own_runs_obs18(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(slowly(DONE, 0.2))
    id = begin(gateway, task="A secret task.")
    ben = log_in(gateway, "sk-ben")
    assert "No run yet" in page(gateway, "/ui/runs", ben)
    for path in (f"/ui/runs/{id}", f"/ui/run-events/{id}"):
        assert gateway.ask("GET", path, headers=ben).status == 404
    assert send_form(gateway, f"/ui/runs/{id}", ben, action="cancel").status == 404
    assert status_of(gateway, id) == "running"
    assert send_form(gateway, f"/ui/runs/{id}", anna, action="cancel").status == 303
    assert status_of(gateway, id) == "cancelled"


def test_a_call_is_approved_by_a_button_that_shows_its_exact_arguments_obs18(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(says(WRITE), says(DONE))
    id = begin(gateway, task="Write a file.", approval="ask")
    path = f"/ui/runs/{id}"
    assert soon(lambda: status_of(gateway, id) == "waiting", 10)
    shown = gateway.ask("GET", path, headers=anna).body
    assert "waits for you" in words(shown)
    assert '{"path": "a.txt", "content": "<b>Hi</b>"}' in words(shown.replace(b"&#34;", b'"'))
    assert b'name="call" value="call_2"' in shown
    forged = send_form(gateway, path, {**anna, "origin": "http://evil.example"}, action="approve", call="call_2")
    assert forged.status == 403
    assert send_form(gateway, path, anna, action="approve", call="other").status == 400
    assert send_form(gateway, path, anna, action="delete").status == 400
    assert status_of(gateway, id) == "waiting"
    approved = send_form(gateway, path, anna, action="approve", call="call_2")
    assert (approved.status, approved.headers["location"]) == (303, path)
    assert soon(lambda: status_of(gateway, id) == "done", 10)
    assert "write_file done" in page(gateway, path, anna)


def test_a_refused_call_tells_the_model_why_obs18(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(says(WRITE), says(DONE))
    id = begin(gateway, task="Write a file.", approval="ask")
    assert soon(lambda: status_of(gateway, id) == "waiting", 10)
    send_form(gateway, f"/ui/runs/{id}", anna, action="refuse", call="call_2", reason="not in this folder")
    assert soon(lambda: status_of(gateway, id) in ("done", "summed_up"), 10)
    text = page(gateway, f"/ui/runs/{id}", anna)
    assert "write_file failed" in text
    assert "not in this folder" in text


def test_a_cancelled_run_is_resumed_by_a_button_obs18(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(slowly(DONE, 0.2))
    id = begin(gateway)
    send_form(gateway, f"/ui/runs/{id}", anna, action="cancel")
    assert "cancelled Resume" in page(gateway, f"/ui/runs/{id}", anna)
    upstream.answers(says(DONE))
    assert send_form(gateway, f"/ui/runs/{id}", anna, action="resume").status == 303
    assert soon(lambda: status_of(gateway, id) == "done", 10)
    assert send_form(gateway, f"/ui/runs/{id}", anna, action="resume").status == 400  # it has ended


def test_a_running_run_is_shown_live_until_its_end_obs18(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(says(LOOK), slowly(DONE, 0.05))
    id = begin(gateway)
    assert f'data-run-events="/ui/run-events/{id}"'.encode() in gateway.ask("GET", f"/ui/runs/{id}", headers=anna).body
    with parts(gateway, id, anna) as events:
        found = list(events)
    names = [name for name, _ in found]
    assert names[-1] == "over"
    assert set(names[:-1]) == {"part"}
    rounds = [words(data.encode()) for _, data in found if 'id="round-2"' in data and 'id="run"' not in data]
    lengths = [len(text) for text in rounds]
    assert len(rounds) > 1, "the text came at once"
    assert lengths == sorted(lengths)
    assert all("<script>" not in data for _, data in found)
    assert 'id="run"' in found[-2][1]  # the page as it is kept
    assert "Answer All done." in words(found[-2][1].encode())


def test_a_call_that_waits_arrives_on_the_open_page_obs18(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(slowly(WRITE, 0.02), says(DONE))
    id = begin(gateway, task="Write a file.", approval="ask")
    with parts(gateway, id, anna) as events:
        asked = next(data for _, data in events if "May it call" in data)
        assert 'id="run-head"' in asked
        call = re.findall(r'name="call" value="([^"]+)"', asked)[0]
        assert send_form(gateway, f"/ui/runs/{id}", anna, action="approve", call=call).status == 303
        assert [name for name, _ in events][-1] == "over"


def test_the_stream_of_an_ended_run_is_over_at_once(
    gateway: Served, upstream: ScriptedUpstream, anna: dict[str, str]
) -> None:
    upstream.answers(says(DONE))
    id = begin(gateway)
    assert soon(lambda: status_of(gateway, id) == "done", 10)
    with parts(gateway, id, anna) as events:
        assert [name for name, _ in events][-1] == "over"


def test_a_page_that_watches_a_run_does_not_hold_up_a_shutdown(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.answers(slowly(Answer("very slow " * 50), 0.2))
    runs, offer = Durable(folder=tmp_path), Offer(enabled=True, tools=("files",))
    with serving(config_of(towards(upstream, retries=0), runs=runs, offer=offer)) as served:
        id = served.post("/v1/runs", {"task": "Look around."}).json["id"]
        with parts(served, id, {}) as events:
            next(events)
            served.app.gateway.viewers.close()
            assert [name for name, _ in events if name == "over"] == []  # it ends, and the run goes on
        assert served.ask("GET", f"/v1/runs/{id}").json["status"] == "running"
        served.post(f"/v1/runs/{id}/cancel", {})
