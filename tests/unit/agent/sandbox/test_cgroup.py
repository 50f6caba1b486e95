"""Control groups: made below our own, filled in, removed (RUN-5).

Version 2 is a tree of files here; version 1 is real where root runs the tests.
"""

from pathlib import Path

import pytest

from toolspeak.agent.sandbox import resources
from toolspeak.agent.sandbox.resources import confined
from toolspeak.agent.sandbox.sandbox import SandboxLimits

LIMITS = SandboxLimits(memory=123 << 20, processes=20)


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "is_root", lambda: True)


def own(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(resources, "_own", lambda: list(lines))


@pytest.mark.usefixtures("as_root")
def test_version_1_has_one_group_for_each_controller_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(monkeypatch, "8:pids:/us", "4:memory:/", "1:cpu:/", "0::/")
    for name in ("pids/us", "memory"):
        (tmp_path / name).mkdir(parents=True)
    with confined(LIMITS, tmp_path) as files:
        groups = [Path(file).parent for file in files]
        assert [group.parent for group in groups] == [tmp_path / "pids/us", tmp_path / "memory"]
        assert (groups[0] / "pids.max").read_text() == "28"
        assert (groups[1] / "memory.limit_in_bytes").read_text() == str(123 << 20)


@pytest.mark.usefixtures("as_root")
def test_version_2_has_one_where_controllers_are_handed_down_run5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(monkeypatch, "0::/us")
    (tmp_path / "us").mkdir()
    (tmp_path / "us/cgroup.subtree_control").write_text("cpu memory pids\n")
    with confined(LIMITS, tmp_path) as files:
        group = Path(files[0]).parent
        kept = {file.name: file.read_text() for file in group.iterdir()}
        assert kept == {"pids.max": "28", "memory.max": str(123 << 20), "memory.swap.max": "0"}
    (tmp_path / "us/cgroup.subtree_control").write_text("cpu\n")
    with confined(LIMITS, tmp_path) as files:
        assert files == ()


def test_who_is_not_root_has_none_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "is_root", lambda: False)
    with confined(LIMITS, tmp_path) as files:
        assert files == ()


@pytest.mark.usefixtures("as_root")
def test_what_the_dead_have_left_is_removed_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own(monkeypatch, "8:pids:/")
    left, alive = tmp_path / "pids/toolspeak-999999999-0", tmp_path / "pids/toolspeak-1-0"
    left.mkdir(parents=True)
    alive.mkdir()
    with confined(LIMITS, tmp_path):
        assert not left.exists()
        assert alive.exists()


def test_real_groups_are_gone_afterwards_run5() -> None:
    with confined(LIMITS) as files:
        groups = [Path(file).parent for file in files]
        assert all(group.is_dir() for group in groups)
    assert not any(group.exists() for group in groups)
