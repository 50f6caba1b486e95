"""Runs over HTTP, on a real gateway: started, watched and rejoined, stopped, kept apart (RUN-3, RUN-5, RUN-8)."""

import http.client
import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testkit.protocols import says, slowly
from testkit.scripted_upstream import SSE, ScriptedUpstream
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, key, serving, soon, towards
from toolspeak.config.shape import Approval, Durable, Offer, Server

ANNA, BERTA = {"authorization": "Bearer anna"}, {"authorization": "Bearer berta"}
LOOK = Answer("I look.", calls=(("call_1", "list_files", {}),))
WRITE = Answer(calls=(("call_1", "write_file", {"path": "a.txt", "content": "Hi"}),))
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream, folder: Path) -> Generator[Served]:
    """Serve two tenants; a run may work in one folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        config = config_of(
            towards(upstream, retries=0),
            server=Server(keep_alive=0.2),
            keys=(
                key("anna", "anna"),
                key("anna-limited", "anna", models=("up:other",)),
                key("berta", "berta", models=("up:other",)),
            ),
            runs=Durable(folder=folder.parent / "state"),
            offer=Offer(enabled=True, folders=(str(folder),), live=3, tools=("files",)),
        )
        with serving(config) as served:
            yield served


def begin(gateway: Served, headers: dict[str, str] = ANNA, **body: Any) -> str:  # noqa: ANN401 # a spec's fields
    reply = gateway.post("/v1/runs", {"task": "Look around.", **body}, headers)
    assert reply.status == 201, reply.body
    return reply.json["id"]


def get(gateway: Served, path: str, headers: dict[str, str] = ANNA) -> Reply:
    return gateway.ask("GET", f"/v1/runs{path}", None, headers)


@contextmanager
def stream(gateway: Served, id: str, after: int | None = None, **headers: str) -> Generator[Iterator[dict[str, Any]]]:
    """Open the events of a run; each has its id and its event name checked. A comment is `{}`."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE_S)
    query = "" if after is None else f"?after={after}"
    connection.request("GET", f"/v1/runs/{id}/events{query}", headers={**ANNA, **headers})
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, SSE), answer.read()
    try:
        yield _frames(answer)
    finally:
        connection.close()


def _frames(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    lines: list[str] = []
    while line := answer.readline().decode():
        if line != "\n":
            lines.append(line.rstrip("\n"))
            continue
        if lines[0].startswith(":"):
            yield {}
        else:
            fields = dict(each.split(": ", 1) for each in lines)
            event: dict[str, Any] = json.loads(fields["data"])
            assert (fields["id"], fields["event"]) == (str(event["number"]), event["kind"])
            yield event
        lines = []


def watched(gateway: Served, id: str, after: int | None = None) -> list[dict[str, Any]]:
    """Return all events up to the end of the stream."""
    with stream(gateway, id, after) as events:
        return [each for each in events if each]


def until(gateway: Served, id: str, kind: str) -> dict[str, Any]:
    with stream(gateway, id) as events:
        return next(each for each in events if each.get("kind") == kind)


def refused(reply: Reply, status: int, words: str) -> None:
    """Check an error in the form of OpenAI."""
    assert reply.status == status, reply.body
    assert words in reply.json["error"]["message"]


# ---------------------------------------------------------------- one run


def test_a_run_is_begun_watched_and_shown_run8(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(says(LOOK), says(Answer("It is empty.")))
    id = begin(gateway)
    events = watched(gateway, id)
    assert events[-1]["kind"] == "run_ended"
    assert (events[-1]["status"], events[-1]["text"]) == ("done", "It is empty.")
    shown = get(gateway, f"/{id}").json
    assert (shown["id"], shown["status"], shown["text"], shown["rounds"]) == (id, "done", "It is empty.", 1)
    assert shown["message"]["rounds"][0]["calls"][0]["name"] == "list_files"
    assert shown["spec"]["model"] == "up:m"
    messages = get(gateway, f"/{id}?as=anthropic").json["messages"]
    assert [each["role"] for each in messages] == ["user", "assistant", "assistant", "user", "assistant"]
    refused(get(gateway, f"/{id}?as=morse"), 400, "'morse' is not one of")
    assert id in [each["id"] for each in get(gateway, "").json["data"]]


def test_who_rejoins_in_the_middle_loses_and_repeats_nothing_run8(gateway: Served, upstream: ScriptedUpstream) -> None:
    """The line breaks after each few events; what was seen fits together to what another saw in one piece."""
    upstream.answers(slowly(LOOK, 0.02), slowly(Answer("One two three four five six seven."), 0.02))
    id = begin(gateway)
    seen: list[dict[str, Any]] = []
    while not seen or seen[-1]["kind"] != "run_ended":
        last = {"last-event-id": str(seen[-1]["number"])} if seen else {}
        with stream(gateway, id, 0 if seen else None, **last) as events:  # the header goes before the query
            for each in events:
                seen += [each] if each else []
                if len(seen) % 3 == 0:
                    break
    assert seen == watched(gateway, id)
    assert [each["number"] for each in seen] == list(range(len(seen)))
    text = "".join(each["text"] for each in seen if each["kind"] == "wrote" and each["round"] == 1)
    assert text == "One two three four five six seven."
    assert watched(gateway, id, after=seen[4]["number"]) == seen[5:]


def test_a_browser_that_comes_back_after_the_end_is_told_to_stop(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(says(Answer("Hello.")))
    id = begin(gateway)
    last = watched(gateway, id)[-1]["number"]
    reply = get(gateway, f"/{id}/events", {**ANNA, "last-event-id": str(last)})
    assert (reply.status, reply.body) == (204, b"")
    refused(get(gateway, f"/{id}/events?after=x"), 400, "after: 'x' is not the number of an event")


def test_who_waits_hears_that_we_are_there_and_a_word_goes_on_run5(
    gateway: Served, upstream: ScriptedUpstream, folder: Path
) -> None:
    upstream.answers(says(WRITE), says(Answer("Written.")))
    id = begin(gateway, folder=str(folder))
    with stream(gateway, id) as events:
        asked = next(each for each in events if each.get("kind") == "call_asked")
        assert next(events) == {}, "a comment while nothing happens"
        shown = get(gateway, f"/{id}").json
        assert (shown["status"], shown["asked"][0]["id"]) == ("waiting", asked["id"])
        assert not (folder / "a.txt").exists()
        path = f"/v1/runs/{id}/calls/{asked['id']}/approve"
        refused(gateway.post(path, {"allowed": "maybe"}, ANNA), 400, "allowed: ")
        refused(gateway.post(path.replace(asked["id"], "other"), {"allowed": True}, ANNA), 400, "other")
        assert gateway.post(path, {"allowed": True}, ANNA).status == 200
        assert [each["kind"] for each in events if each][-1] == "run_ended"
    assert (folder / "a.txt").read_text() == "Hi"


def test_a_no_reaches_the_model_run5(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(says(WRITE), says(Answer("As you like.")))
    id = begin(gateway)
    asked = until(gateway, id, "call_asked")
    body = {"allowed": False, "reason": "not today"}
    assert gateway.post(f"/v1/runs/{id}/calls/{asked['id']}/approve", body, ANNA).status == 200
    watched(gateway, id)
    assert "not today" in upstream.asked[1].json["messages"][-1]["content"]


def test_what_is_cancelled_hangs_up_and_goes_on_later_run3(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(says(LOOK), slowly(Answer("word " * 200), 0.05), says(Answer("It is empty.")))
    id = begin(gateway)
    with stream(gateway, id) as events:
        for each in events:
            if each.get("kind") == "wrote" and each["round"] == 1:
                break
        assert gateway.post(f"/v1/runs/{id}/cancel", {}, ANNA).json["status"] == "cancelled"
        last = [each for each in events if each][-1]
    assert (last["kind"], last["status"]) == ("run_ended", "cancelled")
    assert upstream.asked[1].hung_up.wait(5)
    assert get(gateway, f"/{id}").json["rounds"] == 1
    assert gateway.post(f"/v1/runs/{id}/resume", {}, ANNA).status == 200
    assert watched(gateway, id, last["number"])[-1]["text"] == "It is empty."
    assert len(upstream.asked) == 3
    refused(gateway.post(f"/v1/runs/{id}/resume", {}, ANNA), 400, "is done")


def test_who_asks_twice_with_one_id_begins_one_run(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(says(Answer("Hello.")))
    assert [begin(gateway, id="mine-1"), begin(gateway, id="mine-1")] == ["mine-1", "mine-1"]
    watched(gateway, "mine-1")
    assert len(upstream.asked) == 1


def test_a_client_that_goes_does_not_stop_the_run(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(slowly(Answer("One two three four five."), 0.05))
    id = begin(gateway)
    with stream(gateway, id) as events:
        next(events)
    assert soon(lambda: gateway.inside == 0, 5), "its place is free again"
    assert watched(gateway, id)[-1]["text"] == "One two three four five."


# ---------------------------------------------------------------- who may what


def test_a_tenant_does_not_see_anothers_runs(upstream: ScriptedUpstream, gateway: Served) -> None:
    """Whatever is asked about it, the answer is that of a run that there is not."""
    upstream.answers(says(WRITE))
    id = begin(gateway)
    call = until(gateway, id, "call_asked")["id"]
    asks: Sequence[Callable[[str], Reply]] = (
        lambda id: get(gateway, f"/{id}", BERTA),
        lambda id: get(gateway, f"/{id}/events", BERTA),
        lambda id: gateway.post(f"/v1/runs/{id}/cancel", {}, BERTA),
        lambda id: gateway.post(f"/v1/runs/{id}/resume", {}, BERTA),
        lambda id: gateway.post(f"/v1/runs/{id}/calls/{call}/approve", {"allowed": True}, BERTA),
    )
    for ask in asks:
        foreign, missing = ask(id), ask("nobody")
        refused(foreign, 404, "no run has the id")
        assert foreign.body.replace(id.encode(), b"nobody") == missing.body
    assert get(gateway, "", BERTA).json["data"] == []
    assert get(gateway, f"/{id}").json["status"] == "waiting"
    assert gateway.ask("GET", "/v1/runs").status == 401
    gateway.post(f"/v1/runs/{id}/cancel", {}, ANNA)


def test_an_id_that_another_tenant_uses_is_answered_like_a_free_one(
    upstream: ScriptedUpstream, gateway: Served
) -> None:
    """A taken id used to get 404 and a free one 201: any client could find out which ids other tenants use."""
    upstream.answers(says(WRITE))
    begin(gateway, id="nightly-build")
    until(gateway, "nightly-build", "call_asked")
    replies = {
        name: gateway.post("/v1/runs", {"task": "Mine?", "id": name, "model": "other"}, BERTA)
        for name in ("nightly-build", "weekly-build2")
    }
    shapes = [
        (reply.status, sorted(reply.headers), sorted(reply.json), reply.json["id"] == name, reply.json["task"])
        for name, reply in replies.items()
    ]
    assert shapes[0] == shapes[1]
    assert shapes[0][0] == 201
    for name in replies:
        assert get(gateway, f"/{name}", BERTA).json["task"] == "Mine?"
        assert gateway.post(f"/v1/runs/{name}/cancel", {}, BERTA).json["id"] == name
    shown = get(gateway, "/nightly-build").json
    assert (shown["task"], shown["status"], shown["id"]) == ("Look around.", "waiting", "nightly-build")
    refused(get(gateway, "/weekly-build2"), 404, "no run has the id 'weekly-build2'")
    gateway.post("/v1/runs/nightly-build/cancel", {}, ANNA)


def test_a_resume_passes_the_same_gates_as_a_start(gateway: Served, upstream: ScriptedUpstream) -> None:
    """Cancel all, start as many, resume all: that gave a tenant twice its limit of live runs."""
    upstream.answers(says(WRITE))
    ids = [begin(gateway) for _ in range(3)]
    for id in ids:
        assert gateway.post(f"/v1/runs/{id}/cancel", {}, ANNA).json["status"] == "cancelled"
    more = [begin(gateway) for _ in range(3)]
    for id in ids:
        reply = gateway.post(f"/v1/runs/{id}/resume", {}, ANNA)
        refused(reply, 429, "3 runs go on already (runs.live)")
        assert int(reply.headers["retry-after"]) > 0
    live = [each for each in get(gateway, "").json["data"] if each["ended"] is None]
    assert len(live) == 3
    for id in more:
        gateway.post(f"/v1/runs/{id}/cancel", {}, ANNA)
    limited = {"authorization": "Bearer anna-limited"}
    refused(gateway.post(f"/v1/runs/{ids[0]}/resume", {}, limited), 403, "may not use that model")
    assert gateway.post(f"/v1/runs/{ids[0]}/resume", {}, ANNA).status == 200
    gateway.post(f"/v1/runs/{ids[0]}/cancel", {}, ANNA)


def test_a_key_that_may_not_use_a_model_gets_no_run_with_it(upstream: ScriptedUpstream, gateway: Served) -> None:
    upstream.answers(says(Answer("Hello.")))
    for body in ({"task": "Go."}, {"task": "Go.", "model": "m"}):
        refused(gateway.post("/v1/runs", body, BERTA), 403, "may not use that model")
    assert upstream.asked == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "task"),
        ({"task": " "}, "task: it is empty"),
        ({"task": 3}, "task: "),
        ({"task": "Go.", "spade": 1}, "spade"),
        ({"task": "Go.", "tools": ["shell"]}, "tools: 'shell' is not offered; those that are: files"),
        ({"task": "Go.", "tools": ["os:system"]}, "tools: 'os:system' is not offered"),
        ({"task": "Go.", "tools": ["mcp:git"]}, "tools: 'mcp:git' is not offered"),
        ({"task": "Go.", "folder": "/etc"}, "folder: '/etc' is not offered"),
        ({"task": "Go.", "approval": "off"}, "approval: off is not offered; the modes that are: read-only, ask, auto"),
        ({"task": "Go.", "approval": "never"}, "approval"),
        ({"task": "Go.", "rounds": 51}, "rounds: 51 is not an integer from 1 to 50"),
        ({"task": "Go.", "output": 1 << 30}, "output: "),
        ({"task": "Go.", "settings": {"mode": "loud"}}, "settings.mode: "),
        (
            {"task": "Go.", "settings": {"dialekt": "hermes"}},
            "settings.dialekt: there is no such thing to say; known are",
        ),
        ({"task": "Go.", "sampling": {"max_tokens": "5"}}, "sampling.max_tokens: Expected `int | null`, got `str`"),
        ({"task": "Go.", "sampling": {"maxTokens": 5}}, "sampling.maxTokens: there is no such thing to say"),
        ({"task": "Go.", "history": [{"role": "user"}]}, "history: "),
        ({"task": "Go.", "id": "../x"}, "id: '../x' is not"),
        ({"task": "Go.", "tenant": "berta"}, "tenant"),
        ([], ""),
    ],
)
def test_a_request_gets_nothing_that_is_not_offered_run5(
    gateway: Served, upstream: ScriptedUpstream, folder: Path, body: object, words: str
) -> None:
    upstream.answers(says(Answer("Hello.")))
    del folder
    refused(gateway.post("/v1/runs", body, ANNA), 400, words)
    assert upstream.asked == []


def test_below_a_folder_that_is_offered_nothing_is(gateway: Served, folder: Path) -> None:
    """A run could make a link of it that leads elsewhere."""
    (folder / "inner").mkdir()
    for path in (folder / "inner", folder / "inner" / ".."):
        refused(gateway.post("/v1/runs", {"task": "Go.", "folder": str(path)}, ANNA), 400, "is not offered")


def test_a_tenant_has_so_many_runs_at_one_time(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(says(WRITE))
    ids = [begin(gateway) for _ in range(3)]
    reply = gateway.post("/v1/runs", {"task": "One more."}, ANNA)
    refused(reply, 429, "3 runs go on already (runs.live)")
    assert int(reply.headers["retry-after"]) > 0
    for id in ids:
        gateway.post(f"/v1/runs/{id}/cancel", {}, ANNA)
    upstream.answers(says(Answer("Hello.")))
    watched(gateway, begin(gateway))


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("?limit=0", 400, "limit: 0 is not an integer from 1 to 1000"),
        ("?limit=x", 400, "limit: 'x'"),
        ("?status=tired", 400, "status: 'tired' is not one of running, waiting"),
        ("/nobody", 404, "no run has the id 'nobody'"),
        ("/nobody/spade", 404, "there is nothing at GET"),
        ("/a%2Fb", 404, "no run has the id 'a/b'"),
    ],
)
def test_what_is_asked_wrong(gateway: Served, path: str, status: int, words: str) -> None:
    refused(get(gateway, path), status, words)


def test_without_a_word_in_the_configuration_nothing_is_offered(upstream: ScriptedUpstream) -> None:
    with serving(config_of(towards(upstream))) as served:
        for reply in (served.ask("GET", "/v1/runs"), served.post("/v1/runs", {"task": "Go."})):
            refused(reply, 404, "say enabled = true under [runs]")


def test_without_keys_everybody_is_one(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.answers(says(WRITE), says(Answer("Done.")))
    offer = Offer(enabled=True, approval=Approval.READ_ONLY, tools=("files",))
    with serving(config_of(towards(upstream), offer=offer, runs=Durable(folder=tmp_path))) as served:
        id = served.post("/v1/runs", {"task": "Write."}).json["id"]
        assert soon(lambda: served.ask("GET", f"/v1/runs/{id}").json["status"] == "done", PATIENCE_S)
        assert "read-only" in upstream.asked[1].json["messages"][-1]["content"], "the freest mode is the default"
        assert [each["id"] for each in served.ask("GET", "/v1/runs?status=done&limit=5").json["data"]] == [id]


def test_a_gateway_that_ends_ends_its_runs(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    upstream.answers(slowly(Answer("word " * 500), 0.05))
    with serving(config_of(towards(upstream), offer=Offer(enabled=True), runs=Durable(folder=tmp_path))) as served:
        assert served.post("/v1/runs", {"task": "Talk.", "tools": []}).status == 201
        upstream.wait_for(1)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert upstream.asked[0].hung_up.wait(5)


def test_a_run_is_continued_in_its_folder_run18(gateway: Served, upstream: ScriptedUpstream) -> None:
    read = Answer(calls=(("call_1", "read_file", {"path": "a.txt"}),))
    upstream.answers(*map(says, (WRITE, Answer("Written."), read, Answer("It says Hi."), Answer("Bye."))))
    first = begin(gateway)
    asked = until(gateway, first, "call_asked")
    refused(
        gateway.post(f"/v1/runs/{first}/continue", {"task": "Read it."}, ANNA), 400, "is waiting: wait until it ends"
    )
    gateway.post(f"/v1/runs/{first}/calls/{asked['id']}/approve", {"allowed": True}, ANNA)
    watched(gateway, first)
    reply = gateway.post(f"/v1/runs/{first}/continue", {"task": "Read it.", "rounds": 3}, ANNA)
    assert (reply.status, reply.json["spec"]["continues"], reply.json["spec"]["rounds"]) == (201, first, 3)
    assert watched(gateway, reply.json["id"])[-1]["text"] == "It says Hi."
    (kept,) = get(gateway, f"/{reply.json['id']}").json["message"]["rounds"]
    assert kept["results"][0]["content"][0]["text"] == "Hi", "the folder of the first run is that of the second"
    third = gateway.post(f"/v1/runs/{reply.json['id']}/continue", {"task": "Bye."}, ANNA).json
    assert watched(gateway, third["id"])[-1]["text"] == "Bye."
    assert third["spec"]["folder_of"] == reply.json["spec"]["folder_of"]
    said = str(upstream.asked[-1].json["messages"])
    places = [said.index(words) for words in ("Look around.", "Written.", "Read it.", "It says Hi.", "Bye.")]
    assert places == sorted(places)


def test_only_its_own_tenant_continues_a_run_run18(gateway: Served, upstream: ScriptedUpstream) -> None:
    upstream.answers(says(Answer("Hello.")))
    id = begin(gateway)
    watched(gateway, id)
    refused(gateway.post(f"/v1/runs/{id}/continue", {"task": "Go on."}, BERTA), 404, "no run has the id")
    refused(gateway.post(f"/v1/runs/{id}/continue", {"task": " "}, ANNA), 400, "task: it is empty")
    refused(gateway.post(f"/v1/runs/{id}/continue", {"task": "Go on.", "approval": "off"}, ANNA), 400, "is not offered")
