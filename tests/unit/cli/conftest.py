"""What tests of commands share: a scripted upstream, and nothing of the machine's own configuration."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.scripted_model import Scripted, scripted


@pytest.fixture
def upstream() -> Iterator[Scripted]:
    with scripted() as script:
        yield script


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep this machine's settings and keys out of every test."""
    for name in os.environ:
        if name.startswith("TOOLSPEAK_") or name.endswith("_API_KEY") or name in {"NO_COLOR", "OLLAMA_HOST"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
