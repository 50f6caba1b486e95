"""The first request of a model that we measured uses the profile that ships with toolspeak (CAP-12)."""

from pathlib import Path

import pytest

from testkit.protocols import answering, question
from testkit.scripted_upstream import ScriptedUpstream, listening
from testkit.vendor_answers import Answer
from tests.gateway.scene import config_of, serving, towards
from toolspeak.facts.shipped import shipped_profile

MODEL = "qwen2.5-coder:0.5b"
CALL = Answer('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>')


def plan_of(upstream: ScriptedUpstream, preset: str, folder: Path | None) -> str:
    with serving(config_of(towards(upstream, preset=preset), profiles=folder)) as gateway:
        upstream.answers(answering(CALL))
        asked = question("openai_chat", model=MODEL)
        reply = gateway.post(asked.path, asked.body or {})
    assert reply.status == 200
    assert reply.json["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    return reply.headers["x-toolspeak-plan"]


def test_the_first_request_of_a_measured_model_uses_the_shipped_profile_cap12(tmp_path: Path) -> None:
    profile = shipped_profile(MODEL, "llamacpp")
    assert profile is not None
    with listening((MODEL,)) as upstream:
        plan = plan_of(upstream, "llamacpp", tmp_path)
    assert plan.startswith("force inline hermes")
    assert plan.endswith(f"{profile.form} did best with this model (shipped with toolspeak, {profile.date})")


@pytest.mark.parametrize(("preset", "has_profiles"), [("llamacpp", False), ("vllm", True), ("", True)])
def test_without_profiles_or_on_another_server_it_is_not_used_cap12(
    preset: str, has_profiles: bool, tmp_path: Path
) -> None:
    with listening((MODEL,)) as upstream:
        assert plan_of(upstream, preset, tmp_path if has_profiles else None).startswith("native")
