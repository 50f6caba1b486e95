"""After a profile is kept, the gateway watches whether calls still come (CAP-11)."""

import logging
from collections.abc import Generator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import Reply, Served, config_of, key, serving, towards
from toolspeak.cli import main
from toolspeak.config.shape import Config
from toolspeak.facts.model import Profile
from toolspeak.runtime import profile_watch, profiles
from toolspeak.runtime.profiles import Profiles

CALL = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
SORRY = Answer("Sorry, but I can't assist with that.")


@pytest.fixture(scope="module")
def upstream() -> Generator[ScriptedUpstream]:
    with listening(("a",)) as found:
        yield found


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the gateway look at files for every request, as it otherwise does after some seconds."""
    monkeypatch.setattr(profiles, "FRESH", 0.0)
    monkeypatch.setattr(profile_watch, "WRITE_EVERY", 0.0)


def config(upstream: ScriptedUpstream, folder: Path, *tenants: str) -> Config:
    keys = tuple(key(f"sk-{tenant}", tenant) for tenant in tenants)
    return config_of(towards(upstream), profiles=folder, keys=keys)


ASKED = count(1)


def ask(gateway: Served, upstream: ScriptedUpstream, answers: Sequence[Answer], tenant: str = "") -> list[Reply]:
    """Ask a question of its own for each answer, so that every turn counts."""
    replies = list[Reply]()
    for answer in answers:
        upstream.answers(answering(answer))
        asked = question("openai_chat", model="a")
        words = {"role": "user", "content": f"What is the weather in city {next(ASKED)}?"}
        headers = {"authorization": f"Bearer sk-{tenant}"} if tenant else {}
        body: dict[str, Any] = {**cast("dict[str, Any]", asked.body), "messages": [words]}
        replies.append(gateway.post(asked.path, body, headers))
        assert replies[-1].status == 200
    return replies


def keep(upstream: ScriptedUpstream, folder: Path) -> Path:
    url = f"http://127.0.0.1:{upstream.port}/v1"
    return Profiles(folder, url).keep(
        Profile("a", url, "fenced", {"mode": "force", "dialect": "fenced"}, date="2026-11-17")
    )


def plan(reply: Reply) -> str:
    return reply.headers["x-toolspeak-plan"]


def test_calls_came_before_and_stay_out_since_so_the_profile_is_suspended_and_the_log_says_what_to_do_cap11(
    upstream: ScriptedUpstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(config(upstream, tmp_path)) as gateway, caplog.at_level(logging.WARNING):
        ask(gateway, upstream, [CALL] * 7)
        path = keep(upstream, tmp_path)
        replies = ask(gateway, upstream, [SORRY] * 8)
        assert plan(replies[-1]).endswith("fenced did best with this model (doctor, 2026-11-17)")
        (after,) = ask(gateway, upstream, [CALL])
        assert plan(after).startswith("native"), "what the user had before"
    (said,) = [record.getMessage() for record in caplog.records if "suspended" in record.getMessage()]
    assert said.startswith("the profile of 'a' at http://127.0.0.1:")
    assert "since it is used, 8 of 8 answers had no call, before it 0 of 7." in said
    assert said.endswith(f"Run toolspeak doctor to measure again, or delete {path}")


def test_a_profile_that_calls_as_often_as_before_stays_cap11(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    with serving(config(upstream, tmp_path)) as gateway:
        ask(gateway, upstream, [CALL, SORRY] * 4)
        keep(upstream, tmp_path)
        replies = ask(gateway, upstream, [CALL, SORRY] * 8)
    assert plan(replies[-1]).startswith("force inline fenced")


def test_one_request_sent_again_and_again_is_one_piece_of_evidence_cap11(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with serving(config(upstream, tmp_path)) as gateway:
        ask(gateway, upstream, [CALL] * 8)
        keep(upstream, tmp_path)
        upstream.answers(answering(SORRY))
        asked = question("openai_chat", model="a")
        replies = [gateway.post(asked.path, asked.body) for _ in range(20)]
    assert plan(replies[-1]).startswith("force inline fenced")


def test_one_tenant_suspends_a_profile_only_for_itself_and_two_for_all_cap11(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    with serving(config(upstream, tmp_path, "one", "two", "three")) as gateway:
        for tenant in ("one", "two", "three"):
            ask(gateway, upstream, [CALL] * 8, tenant)
        keep(upstream, tmp_path)
        ask(gateway, upstream, [SORRY] * 8, "one")
        assert plan(*ask(gateway, upstream, [CALL], "one")).startswith("native")
        assert plan(*ask(gateway, upstream, [CALL], "three")).startswith("force"), "no client decides for another"
        ask(gateway, upstream, [SORRY] * 8, "two")
        assert plan(*ask(gateway, upstream, [CALL], "three")).startswith("native")


def test_models_shows_it_and_a_new_profile_begins_anew_cap11(
    upstream: ScriptedUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "toolspeak" / "profiles"
    with serving(config(upstream, folder)) as gateway:
        ask(gateway, upstream, [CALL] * 7)
    keep(upstream, folder)
    with serving(config(upstream, folder)) as gateway:  # the counts outlive a restart
        ask(gateway, upstream, [SORRY] * 8)
    assert "measured: fenced (suspended: run toolspeak doctor)" in models(upstream, capsys)
    with serving(config(upstream, folder)) as gateway:
        assert plan(*ask(gateway, upstream, [CALL])).startswith("native")
    keep(upstream, folder)
    assert "suspended" not in models(upstream, capsys)


def models(upstream: ScriptedUpstream, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["models", "--upstream", f"http://127.0.0.1:{upstream.port}/v1"])
    return " ".join(capsys.readouterr().out.split())
