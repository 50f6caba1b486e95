"""Which tasks a form may be shaped on, and which tasks the tables show.

    split_of("multiple_17")     Split.DEVELOPMENT or Split.HELD_OUT

The sha256 of a task's id decides, so the split needs no list, holds for sets that are added later, and never moves.
Of an id such as `multiple_17@forty_tools` only the part before the `@` counts, so that the variants of a task (more
tools, another language) are in one split. Tasks that were looked at before there was a split are listed in
looked_at.txt and are development tasks for ever: the guardrails were shaped on them. Prompts, guardrails and readers
may be changed after a look at development tasks only.
"""

import hashlib
from enum import StrEnum
from functools import cache
from pathlib import Path

DEVELOPMENT_BYTES = 77
"""Of 256 values of the hash's first byte: 30 %. With the tasks that were looked at, about 40 % of the sets of 200 tasks
are development tasks, and more than 100 tasks of each set are held out."""
LOOKED_AT = Path(__file__).with_name("looked_at.txt")


class Split(StrEnum):
    """One half of the tasks."""

    DEVELOPMENT = "development"
    HELD_OUT = "held-out"


def split_of(task: str) -> Split:
    """Return the split that a task or a conversation belongs to, by its id."""
    task = task.partition("@")[0]
    first = hashlib.sha256(task.encode()).digest()[0]
    return Split.DEVELOPMENT if first < DEVELOPMENT_BYTES or task in looked_at() else Split.HELD_OUT


@cache
def looked_at() -> frozenset[str]:
    """Return the ids of the tasks that were looked at before there was a split."""
    lines = LOOKED_AT.read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
