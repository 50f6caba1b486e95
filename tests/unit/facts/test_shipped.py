"""Profiles that ship with toolspeak: which models get one, and that each is a form that was measured (CAP-12)."""

import pytest

from toolspeak import upstreams
from toolspeak.doctor.call_forms import FORMS
from toolspeak.facts.shipped import ShippedProfile, shipped_profile, shipped_profiles
from toolspeak.runtime.profiles import settings_from, settings_said

ROWS = pytest.mark.parametrize("row", shipped_profiles(), ids=lambda row: row.name)


@ROWS
def test_every_example_gets_its_profile_on_every_named_server_cap12(row: ShippedProfile) -> None:
    for example in row.examples:
        for server in row.servers:
            assert shipped_profile(example, server) == row.profile


@ROWS
def test_a_row_names_servers_that_exist_and_says_when_and_how_it_was_measured_cap12(row: ShippedProfile) -> None:
    assert set(row.servers) <= set(upstreams.names())
    assert row.date > "2026"
    assert "held-out" in row.evidence


@ROWS
def test_its_settings_are_those_of_the_form_that_it_names_cap12(row: ShippedProfile) -> None:
    form = next(form for form in FORMS if form.name == row.form)
    assert settings_said(settings_from(row.settings)) == settings_said(form.settings) == row.settings


@pytest.mark.parametrize(
    ("model", "server"),
    [
        ("qwen2.5-coder:0.5b", "vllm"),
        ("qwen2.5-coder:0.5b", ""),
        ("qwen2.5-coder:0.5b-base", "ollama"),
        ("qwen2.5-coder:7b", "ollama"),
        ("qwen2.5:0.5b", "ollama"),
        ("gpt-6", "openai"),
    ],
)
def test_another_model_size_or_server_gets_none_cap12(model: str, server: str) -> None:
    assert shipped_profile(model, server) is None
