"""Starts confined programs with the guard around them; every sandbox does so through here."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from toolspeak.agent.sandbox import journal
from toolspeak.agent.sandbox.child import run_process
from toolspeak.agent.sandbox.git_paths import git_paths
from toolspeak.agent.sandbox.isolated import guard_words
from toolspeak.agent.sandbox.sandbox import Command, Ran, Start
from toolspeak.ir.json import Json, JsonObject


class Launch(NamedTuple):
    """What the guard starts: the module of the launcher and its plan."""

    launcher: str
    plan: JsonObject
    mounts: bool
    """The launcher can mount paths read-only. Otherwise the guard keeps copies, and puts back what was changed."""
    temporary: str = ""
    """A folder for the program's own files, which the guard removes."""


@asynccontextmanager
async def prepare_guard(folders: Sequence[Path], journal_folder: Path | None, launch: Launch) -> AsyncGenerator[Start]:
    """Make ready a guard for a program that can write to these folders; its entry in the journal is the caller's."""
    described: list[Json] = []
    for folder in _outermost(folders):
        paths = await git_paths(folder)
        described.append({"path": str(folder), "referenced": [*paths.referenced], "gitlinks": [*paths.gitlinks]})
    with journal.open_entry(journal_folder) as entry:
        plan: JsonObject = {
            "parent": os.getpid(),
            "folders": described,
            "journal": str(entry.path),
            "launcher": launch.launcher,
            "launch": launch.plan,
            "mounts": launch.mounts,
            "temporary": launch.temporary,
        }
        scratch = (Path(launch.temporary),) if launch.temporary else ()
        yield Start(guard_words(), json.dumps(plan).encode(), scratch=scratch, entry=entry)


async def run_guarded(command: Command, launch: Launch) -> Ran:
    """Run a command to its end, and say what it has left in its folder."""
    left = await _left(command)
    async with prepare_guard((command.folder,), command.journal, launch) as start:
        entry, is_done = start.entry, False
        assert entry is not None  # noqa: S101 # it is guarded
        try:
            ran = await run_process(start, command)
            is_done = True
        finally:
            reports = await asyncio.to_thread(entry.reports)
            if is_done or not any(each.notes for each in reports):
                entry.remove()
            elif command.journal is None:  # else the next command in this folder tells, or the next start
                journal.warn(reports)
    stopped = next((each.stopped for each in reports), "")
    notes = tuple(note for each in reports for note in each.notes)
    return replace(ran, killed=ran.killed or stopped, notes=(*left, *notes))


async def _left(command: Command) -> tuple[str, ...]:
    """Return what earlier commands have left in this folder whose toolspeak was killed."""
    reports = await asyncio.to_thread(journal.recover, command.journal)
    journal.warn(each for each in reports if each.folder != command.folder)
    return tuple(note for each in reports if each.folder == command.folder for note in each.notes)


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Leave out folders inside others: what is in them is found, and judged, once."""
    return [each for each in dict.fromkeys(folders) if not any(outer in each.parents for outer in folders)]
