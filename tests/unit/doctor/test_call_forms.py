"""The forms that are tried, as data."""

from dataclasses import replace

import pytest

from toolspeak import dialects
from toolspeak.doctor import call_forms as forms
from toolspeak.doctor.call_forms import FORMS, DoctorForm, candidates, forms_by_name
from toolspeak.engine.guardrails import GUARDRAILS
from toolspeak.engine.plan import Plan, Way, decide
from toolspeak.engine.settings import Release
from toolspeak.errors import BadRequest
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.quirks import Quirks
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool
from toolspeak.runtime.profiles import settings_from, settings_said

REQUEST = Request("m", (Message(Role.USER, (Text("Is it cold?"),)),), (Tool("any"),))


def planned(name: str) -> Plan:
    form = next(form for form in FORMS if form.name == name)
    return decide(REQUEST, form.settings, ModelFacts(tools=form.tools or Support.UNKNOWN))


def test_names_are_unique_and_dialects_exist() -> None:
    assert len({form.name for form in FORMS}) == len(FORMS)
    for form in FORMS:
        if form.settings.dialect:
            assert dialects.load(form.settings.dialect).writer is not None


@pytest.mark.parametrize(
    ("name", "way"),
    [("native", Way.OFF), ("native+rescue", Way.NATIVE), ("hermes", Way.FORCE), ("decision", Way.FORCE)],
)
def test_a_form_is_asked_in_its_own_way(name: str, way: Way) -> None:
    assert planned(name).way is way


def test_every_profile_survives_being_written() -> None:
    for form in FORMS:
        assert settings_from(settings_said(form.settings)) == form.settings


def test_where_tools_are_refused_nothing_native_is_tried() -> None:
    assert not any(form.is_native for form in candidates(ModelFacts(Support.NONE)))
    assert candidates(ModelFacts())[0].name == "native"


def test_the_own_dialect_of_a_family_is_tried_too() -> None:
    names = [form.name for form in candidates(ModelFacts(dialect="react"))]
    assert names[2:4] == ["react", "react+care"]
    assert len(candidates(ModelFacts(dialect="hermes"))) == len(candidates(ModelFacts()))


@pytest.mark.parametrize(
    ("form", "missing"),
    [
        (ConstraintForm.NONE, {"hermes+grammar", "fenced+grammar", "json"}),
        (ConstraintForm.OLLAMA, {"hermes+grammar", "fenced+grammar"}),
        (ConstraintForm.LLAMACPP, set[str]()),
    ],
)
def test_a_constraint_is_tried_only_where_the_server_has_a_form_for_it_chk8(
    form: ConstraintForm, missing: set[str]
) -> None:
    tried = candidates(ModelFacts(quirks=Quirks(constraint=form)))
    assert {form.name for form in FORMS} - {form.name for form in tried} == missing


def test_guardrails_are_tried_beside_the_same_form_without_chk10_chk14() -> None:
    plain, careful = planned("hermes"), planned("hermes+strict")
    assert plain.guardrails == ()
    asked = replace(plain.settings, **dict.fromkeys(GUARDRAILS, True), release=Release.BUFFERED)
    assert careful == replace(plain, guardrails=careful.guardrails, settings=asked)
    assert tuple(guardrail.name for guardrail in careful.guardrails) == GUARDRAILS
    assert [guardrail.name for guardrail in planned("hermes+care").guardrails] == ["request_missing_calls"]


def test_guardrails_that_take_calls_away_are_marked_and_not_in_a_quick_trial_cap9() -> None:
    assert [form.name for form in FORMS if form.takes_calls] == ["hermes+strict", "fenced+strict", "fenced+doubt"]
    assert not any(form.takes_calls for form in candidates(ModelFacts(), quick=True))


def test_what_the_user_has_already_is_not_tried_again_cap9() -> None:
    today = decide(Request("", (), (Tool("any"),)), facts=ModelFacts(Support.NATIVE))
    names = [form.name for form in candidates(ModelFacts(), (today,))]
    assert "native+rescue" not in names, "that is what the user has"
    assert "hermes" in names


def test_a_whole_trial_has_no_more_than_sixteen_forms() -> None:
    assert len(FORMS) <= 16
    assert [form.name for form in FORMS[:2]] == ["native", "native+rescue"]


def test_two_forms_that_come_to_the_same_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a setting asks for what the upstream does not have."""
    twin = DoctorForm("twin", FORMS[3].settings)
    monkeypatch.setattr(forms, "FORMS", (*FORMS, twin))
    assert twin not in candidates(ModelFacts())
    assert [form for form in candidates(ModelFacts()) if form not in FORMS] == []


def test_quick_has_few() -> None:
    assert 2 < len(candidates(ModelFacts(), quick=True)) < len(FORMS) / 1.5


def test_forms_can_be_named() -> None:
    assert [form.name for form in forms_by_name(("fenced", "native", "fenced"), ())] == ["fenced", "native"]
    with pytest.raises(BadRequest, match="--forms: 'hermse' is not one of native, native\\+rescue, hermes"):
        forms_by_name(("hermse",), ())


def test_forms_in_the_familys_own_dialect_are_marked() -> None:
    assert {form.settings.dialect for form in candidates(ModelFacts(dialect="hermes")) if form.own} == {"hermes"}
    assert not any(form.own for form in candidates(ModelFacts()))
