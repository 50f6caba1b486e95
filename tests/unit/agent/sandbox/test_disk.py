"""The disk budget of a run: carried across commands and restarts, and fair to what was there before (RUN-5).

What tries to hide from it: the area `disk` of `tests/security/sandbox`.
"""

import asyncio
import os
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from toolspeak.agent.sandbox import disk
from toolspeak.agent.sandbox.bwrap import Bwrap, find_bwrap
from toolspeak.agent.sandbox.disk import _COARSE, DiskBudget, DiskMeter, Used
from toolspeak.agent.sandbox.processes import Held, held_files
from toolspeak.agent.sandbox.sandbox import MIB, Command, Ran, SandboxLimits

BUDGET = 40 * MIB


def run(text: str, folder: Path, budget: DiskBudget) -> Ran:
    sandbox = find_bwrap()
    assert isinstance(sandbox, Bwrap), sandbox
    return asyncio.run(sandbox.run(Command(text, folder.resolve(), 30.0, SandboxLimits(), budget=budget)))


def write(name: str, mib: int) -> str:
    return f"head -c {mib * MIB} /dev/zero > {name}; sleep 0.4"


def old_file(folder: Path, mib: int) -> float:
    """Make a file, and return the earliest begin of a run for which it was there before, as its ctime says."""
    (folder / "old").write_bytes(bytes(mib * MIB))
    time.sleep(0.1)  # what the run changes has a later ctime, and counts as the run's
    return (folder / "old").stat().st_ctime + _COARSE + 0.01


def test_commands_of_a_run_share_its_budget_run5(tmp_path: Path) -> None:
    budget = DiskBudget(BUDGET)
    assert not run(write("a", 30), tmp_path, budget).killed
    assert "more than 40 MiB" in run(write("b", 30), tmp_path, budget).killed
    assert not run(write("c", 30), tmp_path, DiskBudget(BUDGET, began=time.time() + 60)).killed, "another run's"


def test_a_worker_that_takes_a_run_over_counts_what_it_has_added_run5(tmp_path: Path) -> None:
    began = time.time()
    run(write("a", 30), tmp_path, DiskBudget(BUDGET, began=began))
    assert "more than 40 MiB" in run(write("b", 30), tmp_path, DiskBudget(BUDGET, began=began)).killed


def test_a_run_over_its_budget_can_delete_and_far_over_it_cannot_run_run5(tmp_path: Path) -> None:
    budget = DiskBudget(BUDGET)
    (tmp_path / "a").write_bytes(bytes(45 * MIB))
    assert run("rm a; sleep 0.4; ls", tmp_path, budget) == Ran(0, "")
    assert not run(write("b", 30), tmp_path, budget).killed
    (tmp_path / "c").write_bytes(bytes(45 * MIB))
    ran = run("echo ran", tmp_path, budget)
    assert ran.output == ""
    assert "raise disk_mib" in ran.killed


def test_what_was_there_before_does_not_count_run5(tmp_path: Path) -> None:
    budget = DiskBudget(BUDGET, began=old_file(tmp_path, 60))
    assert not run("chmod 600 old; mv old older; sleep 1.5", tmp_path, budget).killed
    assert not run(f"rm older; {write('a', 30)}", tmp_path, budget).killed


def test_files_are_counted_from_time_to_time_even_if_the_disk_loses_nothing_run5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another program deletes as much as the command writes."""
    monkeypatch.setattr(disk, "_free", Mock(return_value=Used(1 << 40, 1 << 20)))
    assert "more than 40 MiB" in run(write("a", 60) + "; sleep 5", tmp_path, DiskBudget(BUDGET)).killed


@pytest.mark.parametrize(("looks", "is_breach"), [(1, False), (disk.DOUBTS, True)])
def test_a_file_in_flight_counts_only_if_every_look_sees_it_run5(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int, is_breach: bool
) -> None:
    """Ordinary programs pass files too, while another program fills the disk."""
    nothing = held_files(())
    found = iter([*[nothing._replace(in_flight=True)] * looks, *[nothing] * 9])
    meter = DiskMeter(DiskBudget(BUDGET), [tmp_path], 1 << 30)
    assert meter.begin() == ""
    before = disk._free(disk._disks([tmp_path]))
    monkeypatch.setattr(disk, "_free", Mock(return_value=before._replace(size=before.size - 2 * BUDGET)))
    monkeypatch.setattr(disk, "held_files", Mock(side_effect=found))
    assert bool(meter.breach()) is is_breach


def test_a_count_that_takes_long_is_not_repeated_at_once_run5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is stopped while its files are counted: in a large folder it would hardly run any more."""
    now, nothing = [100.0], held_files(())

    def count(_: object) -> Held:
        now[0] += 1.0
        return nothing

    monkeypatch.setattr(disk, "CLOCK", Mock(monotonic=lambda: now[0]))
    meter = DiskMeter(DiskBudget(BUDGET, began=time.time(), added=Used(0, 0)), [tmp_path], 1 << 30)
    assert meter.begin() == ""
    free = Mock(return_value=meter._free._replace(size=meter._free.size - 2 * BUDGET))
    monkeypatch.setattr(disk, "_free", free)
    monkeypatch.setattr(disk, "held_files", count)
    assert meter.is_over()
    assert meter.breach() == "", "another program has taken the space"
    free.return_value = free.return_value._replace(size=free.return_value.size - 2 * BUDGET)
    assert not meter.is_over()
    now[0] += 4.0
    assert meter.is_over()


def test_two_names_of_a_file_count_once_run5(tmp_path: Path) -> None:
    budget = DiskBudget(BUDGET)
    assert not run(f"{write('a', 25)}; ln a b; ln a c; sleep 1.5", tmp_path, budget).killed
    assert not run("echo more > d", tmp_path, budget).killed


@pytest.mark.parametrize("name", ["x", "y" * 200])
def test_folders_count_too_run5(tmp_path: Path, name: str) -> None:
    budget = DiskBudget(BUDGET, files=50)
    ran = run(f"i=0; while [ $i -lt 400 ]; do mkdir {name}$i; i=$((i+1)); done; sleep 5", tmp_path, budget)
    assert "or 50 files" in ran.killed
    assert len(os.listdir(tmp_path)) > 50  # noqa: PTH208
