"""Profiles that the doctor has kept: behind what the user says, before tables (CAP-5)."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.runtime.scene import REQUEST, Paced
from toolspeak.engine.effects import Kept, Outcome
from toolspeak.engine.plan import Plan, Way
from toolspeak.engine.settings import NOTHING_SAID, Mode, Settings
from toolspeak.engine.verdict import Verdict
from toolspeak.facts.model import Constrain, ModelFacts, Profile, Score, Source, Support
from toolspeak.facts.shipped import shipped_profile
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.quirks import Quirks
from toolspeak.runtime import profiles as module
from toolspeak.runtime.directory import Route
from toolspeak.runtime.learned import Origin
from toolspeak.runtime.profile_watch import WatchedTurn
from toolspeak.runtime.profiles import FRESH, LARGEST, NO_PROFILES, NOT_MEASURED, Profiles, settings_from, settings_said
from toolspeak.testing import AsyncScriptedUpstream, ScriptedUpstream

HERE = "http://127.0.0.1:8080/v1"
HERMES: dict[str, str | int | float | bool] = {"mode": "force", "dialect": "hermes", "few_shot": True}
SMALL = Profile("small", HERE, "hermes+example", HERMES, scores={"native": Score(6, 24)}, date="2026-11-15")


@pytest.fixture
def kept(tmp_path: Path) -> Profiles:
    profiles = Profiles(tmp_path / "profiles", HERE)
    profiles.keep(SMALL)
    return profiles


def planned(
    profiles: Profiles,
    asked: Settings = NOTHING_SAID,
    settings: Settings = NOTHING_SAID,
    tools: Support = Support.UNKNOWN,
) -> Plan:
    upstream, facts = AsyncScriptedUpstream(ScriptedUpstream()), ModelFacts(tools, source=Source.TABLE)
    return Route("box", upstream, "small", facts, settings, profiles=profiles).plan(REQUEST, asked)


def test_a_profile_comes_back_as_it_was(kept: Profiles, tmp_path: Path) -> None:
    measured = Profiles(tmp_path / "profiles", HERE).of("small")
    assert measured.profile == SMALL
    assert measured.settings == Settings(Mode.FORCE, dialect="hermes", few_shot=True)
    assert kept.of("small") == measured


def test_a_profile_decides_where_nothing_is_said_cap5(kept: Profiles) -> None:
    plan = planned(kept)
    assert (plan.way, plan.dialect, plan.settings.few_shot) == (Way.FORCE, "hermes", True)
    assert plan.why == "hermes+example did best with this model (doctor, 2026-11-15)"
    assert planned(NO_PROFILES).way is Way.NATIVE


def test_a_profile_beats_tables_cap5(kept: Profiles) -> None:
    assert planned(kept, tools=Support.NATIVE).way is Way.FORCE


def test_auto_leaves_the_mode_to_the_profile_mode5(kept: Profiles) -> None:
    assert planned(kept, Settings(Mode.AUTO)).way is Way.FORCE
    assert planned(kept, settings=Settings(Mode.AUTO)).way is Way.FORCE


@pytest.mark.parametrize("asks", [True, False], ids=["asked", "configured"])
def test_what_the_user_says_goes_before_a_profile_cap5(kept: Profiles, asks: bool) -> None:
    def said(settings: Settings) -> Plan:
        return planned(kept, settings) if asks else planned(kept, settings=settings)

    plan = said(Settings(dialect="react", few_shot=False))
    assert (plan.way, plan.dialect, plan.settings.few_shot) == (Way.FORCE, "react", False)
    plan = said(Settings(Mode.OFF))
    assert (plan.way, plan.why) == (Way.OFF, "the mode is off")
    assert said(Settings(chat=True)).way is Way.PLAIN


def test_a_native_winner_says_what_the_upstream_does(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path, HERE)
    profiles.keep(Profile("small", HERE, "native+rescue", tools=Support.LEAKS))
    plan = planned(profiles, tools=Support.NONE)
    assert (plan.way, plan.settings.rescue) == (Way.NATIVE, True)


def test_other_models_and_endpoints_have_none(kept: Profiles, tmp_path: Path) -> None:
    assert kept.of("large") is NOT_MEASURED
    assert Profiles(tmp_path / "profiles", "http://127.0.0.1:9/v1").of("small") is NOT_MEASURED
    assert kept.of("small:latest").profile == SMALL, "which says nothing"


def test_without_a_folder_there_are_none() -> None:
    assert NO_PROFILES.of("small") is NOT_MEASURED
    assert not NO_PROFILES.on
    with pytest.raises(FileNotFoundError):
        NO_PROFILES.keep(SMALL)


def test_only_the_user_may_open_them_and_nothing_else_is_left(kept: Profiles, tmp_path: Path) -> None:
    folder = tmp_path / "profiles"
    assert kept.on
    assert folder.stat().st_mode & 0o077 == 0
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    said = json.loads(file.read_text())
    assert (said["model"], said["endpoint"], said["settings"]) == ("small", HERE, HERMES)


def test_a_write_that_breaks_leaves_the_old_one(
    kept: Profiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> bytes:
        raise OSError("no space left")

    monkeypatch.setattr(module.msgspec.json, "encode", broken)
    with pytest.raises(OSError, match="no space"):
        kept.keep(Profile("small", HERE, "fenced"))
    assert len([*(tmp_path / "profiles").iterdir()]) == 1
    assert kept.of("small").profile == SMALL


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"model": "small"}',
        b'{"model": "small", "endpoint": "%b", "form": "x", "format": 2}' % HERE.encode(),
        b'{"model": "other", "endpoint": "%b", "form": "x"}' % HERE.encode(),
        b'{"model": "small", "endpoint": "http://elsewhere/v1", "form": "x"}',
        b'{"model": "small", "endpoint": "%b", "form": "x", "settings": {"mode": "loud"}}' % HERE.encode(),
        b'{"model": "small", "endpoint": "%b", "form": "x", "tools": "some"}' % HERE.encode(),
        b" " * (LARGEST + 1),
        b"\xff\xfe",
    ],
)
def test_a_foreign_file_is_left_out_with_a_warning(
    kept: Profiles, tmp_path: Path, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (file,) = (tmp_path / "profiles").iterdir()
    file.write_bytes(body)
    again = Profiles(tmp_path / "profiles", HERE)
    with caplog.at_level(logging.WARNING):
        assert again.of("small") is NOT_MEASURED
        assert again.of("small") is NOT_MEASURED
    (record,) = caplog.records
    assert str(file) in record.getMessage()
    assert "left out" in record.getMessage()
    assert kept.on


def test_a_folder_in_the_place_of_the_file_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    profiles = Profiles(tmp_path, HERE)
    profiles.keep(SMALL).unlink()
    profiles._path(tmp_path, "small").mkdir()
    assert profiles.of("small") is NOT_MEASURED
    assert "left out" in caplog.text


def test_what_a_newer_version_says_beside_is_left_out(kept: Profiles, tmp_path: Path) -> None:
    (file,) = (tmp_path / "profiles").iterdir()
    said = json.loads(file.read_text())
    said["settings"]["telepathy"] = True
    file.write_text(json.dumps({**said, "mood": "good"}))
    assert Profiles(tmp_path / "profiles", HERE).of("small").settings == kept.of("small").settings


def test_a_gateway_that_runs_takes_up_what_is_new(tmp_path: Path) -> None:
    clock = Paced()
    running = Profiles(tmp_path, HERE, clock)
    assert running.of("small") is NOT_MEASURED
    Profiles(tmp_path, HERE).keep(SMALL)
    assert running.of("small") is NOT_MEASURED, "not at each request"
    clock.now += FRESH
    assert running.of("small").profile == SMALL
    first = running.of("small")
    clock.now += FRESH
    assert running.of("small") is first, "a file that is the same is not read again"


def test_memory_is_bounded_p7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 3)
    profiles = Profiles(tmp_path, HERE)
    for number in range(10):
        profiles.of(f"model-{number}")
    assert len(profiles._known) == 3


def test_settings_are_written_sparsely() -> None:
    assert settings_said(Settings(Mode.FORCE, retries=0, few_shot=False)) == {
        "mode": "force",
        "retries": 0,
        "few_shot": False,
    }
    assert settings_from({}) == Settings()
    with pytest.raises(ValueError, match="mode"):
        settings_from({"mode": 3})


def test_a_profile_does_not_ask_for_a_constraint_that_traffic_has_seen_fail_but_the_user_may_chk8(
    tmp_path: Path,
) -> None:
    profiles = Profiles(tmp_path, HERE)
    profiles.keep(replace(SMALL, settings={**HERMES, "constraint": "text"}))
    facts = ModelFacts(quirks=Quirks(constraint=ConstraintForm.LLAMACPP))
    route = Route("box", AsyncScriptedUpstream(ScriptedUpstream()), "small", facts, profiles=profiles)
    before = route.plan(REQUEST)
    route.learned.note("small", Outcome((), before, 2, constraint=Kept.REFUSED), Origin(request=REQUEST))
    asked = Settings(constraint=Constrain.JSON)
    assert [plan.settings.constraint for plan in (before, route.plan(REQUEST))] == [Constrain.TEXT, Constrain.OFF]
    assert route.plan(REQUEST, asked).settings.constraint is Constrain.JSON


def test_a_profile_of_another_server_counts_for_nothing_and_that_is_said_once_cap5(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profiles = Profiles(tmp_path, HERE)
    profiles.keep(replace(SMALL, fingerprint="aaaa"))
    route = Route("box", AsyncScriptedUpstream(ScriptedUpstream()), "small", profiles=profiles)
    ways = [route.plan(REQUEST).way]
    for fingerprint in ("", "aaaa", "bbbb", "bbbb", "aaaa"):
        route.learned.keep("small", Verdict(Support.NATIVE, 0.9, fingerprint=fingerprint), 60)
        ways.append(route.plan(REQUEST).way)
    assert ways == [Way.FORCE, Way.FORCE, Way.FORCE, Way.NATIVE, Way.NATIVE, Way.FORCE]
    assert [record.getMessage() for record in caplog.records] == [
        f"the profile of 'small' at {HERE} is left out: its server is another one since then; run the doctor again"
    ]


def test_a_profile_without_a_fingerprint_is_heard_whatever_the_server_is_cap5(kept: Profiles) -> None:
    assert kept.heard("small", "bbbb") is kept.of("small")


def test_a_profile_knows_the_form_of_constraints_unless_somebody_says_one_chk8(tmp_path: Path) -> None:
    profiles = Profiles(tmp_path, HERE)
    profiles.keep(replace(SMALL, constraint=ConstraintForm.LLAMACPP))
    found = profiles.of("small")
    assert found.facts(ModelFacts()).quirks.constraint is ConstraintForm.LLAMACPP
    said = ModelFacts(quirks=Quirks(constraint=ConstraintForm.JSON_SCHEMA))
    assert found.facts(said) is said


# ---------------------------------------------------------------- profiles that ship with toolspeak


CODER = "qwen2.5-coder:0.5b"


def coder_route(profiles: Profiles, settings: Settings = NOTHING_SAID) -> Route:
    return Route("box", AsyncScriptedUpstream(ScriptedUpstream()), CODER, settings=settings, profiles=profiles)


def on_ollama(folder: Path | None) -> Profiles:
    return Profiles(folder, HERE, server_of=lambda _: "ollama")


def test_the_first_request_of_a_known_model_uses_its_shipped_profile_cap12(tmp_path: Path) -> None:
    shipped = shipped_profile(CODER, "ollama")
    assert shipped is not None
    plan = coder_route(on_ollama(tmp_path)).plan(REQUEST)
    assert (plan.way, plan.dialect) == (Way.FORCE, shipped.settings["dialect"])
    assert plan.why == f"{shipped.form} did best with this model (shipped with toolspeak, {shipped.date})"


def test_without_profiles_or_on_an_unknown_server_nothing_is_shipped_cap12(tmp_path: Path) -> None:
    assert coder_route(on_ollama(None)).plan(REQUEST).way is Way.NATIVE
    assert coder_route(Profiles(tmp_path, HERE)).plan(REQUEST).way is Way.NATIVE


def test_the_doctors_profile_overrides_a_shipped_one_cap12(tmp_path: Path) -> None:
    profiles = on_ollama(tmp_path)
    profiles.keep(Profile(CODER, HERE, "no profile", date="2026-11-19"))
    assert coder_route(profiles).plan(REQUEST).way is Way.NATIVE
    profiles.remove(CODER)
    assert coder_route(profiles).plan(REQUEST).way is Way.FORCE


def test_what_the_user_says_overrides_a_shipped_profile_cap12(tmp_path: Path) -> None:
    profiles = on_ollama(tmp_path)
    assert coder_route(profiles).plan(REQUEST, Settings(Mode.OFF)).way is Way.OFF
    assert coder_route(profiles, Settings(dialect="fenced")).plan(REQUEST).dialect == "fenced"


def test_a_shipped_profile_can_be_suspended_as_any_other_cap11(tmp_path: Path) -> None:
    profiles = on_ollama(tmp_path)
    for number in range(16):
        profiles.note(CODER, WatchedTurn("", b"before %d" % number, is_silent=False), used=False)
    for number in range(16):
        profiles.note(CODER, WatchedTurn("", b"with %d" % number, is_silent=True), used=True)
    assert profiles.suspension(CODER) == "suspended"
    assert coder_route(profiles).plan(REQUEST).way is Way.NATIVE
