"""The tasks: the Berkeley Function Calling Leaderboard v4, from its package on PyPI, which is never installed.

Sets of our own (languages.py, shapes.py) are written in its format.

Its schemas use Python's types (`dict`, `float`, `tuple`), and its names have dots: both are converted for the wires.
"""

import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench.accuracy import languages, shapes
from bench.accuracy.split import Split, split_of
from testkit.llama_models import cache_folder
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.tool import Tool

PIN = "bfcl-eval==2026.3.23"
SHA256 = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"
MEMBER = "bfcl_eval/data/{folder}BFCL_v4_{name}.json"
SETS = ("simple_python", "multiple", "parallel", "irrelevance")
"""The sets that the average is taken over."""
MORE_SETS = (
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_irrelevance",
    *languages.SETS,
    *shapes.SETS,
)
SEED = 6
_TYPES: dict[str, JsonObject] = {
    "dict": {"type": "object"},
    "float": {"type": "number"},
    "tuple": {"type": "array"},
    "any": {},
}
_NOT_LEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Wanted:
    """An expected call; an empty text among the right values of a parameter marks it as optional."""

    name: str
    accepted: dict[str, list[Json]]
    types: dict[str, str]
    """The parameters' types as the data names them."""


@dataclass(frozen=True, slots=True)
class Task:
    """One question with its tools and its expected calls; without an expected call, any call is wrong."""

    id: str
    set: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    wanted: tuple[Wanted, ...]
    names: dict[str, str]
    """The legal names, each with its name in the data."""


def sample(name: str, count: int, seed: int = SEED, split: Split = Split.HELD_OUT) -> list[Task]:
    """Return so many tasks of a split of a set, the same for every form and model.

    A larger sample begins with the smaller.
    """
    tasks = load(name)
    order = list(range(len(tasks)))
    random.Random(f"{seed} {name}").shuffle(order)
    return [tasks[index] for index in order if split_of(tasks[index].id) is split][:count]


@cache
def load(name: str) -> list[Task]:
    """Return all tasks of a set, in the order of the data."""
    return [task_of(name, row, right) for row, right in _rows_of(name)]


def _rows_of(name: str) -> list[tuple[dict[str, Any], languages.Answers]]:
    """Return the lines of a set of BFCL or of our own, each with its right answers."""
    if name in languages.SETS:
        return languages.rows(name)
    if name == shapes.NESTED:
        return shapes.nested()
    if name == shapes.AGENTS:
        return shapes.agents()
    if name == shapes.FORTY_TOOLS:
        tasks, others = shapes.FORTY_FROM
        return shapes.forty_tools(rows(tasks), _answers(tasks), rows(others))
    answers = {} if "irrelevance" in name else _answers(name)
    return [(row, answers.get(row["id"], [])) for row in rows(name)]


def _answers(name: str) -> dict[str, languages.Answers]:
    return {row["id"]: row["ground_truth"] for row in rows(name, "possible_answer/")}


def rows(name: str, folder: str = "") -> list[dict[str, Any]]:
    """Return the lines of one file of the package."""
    with zipfile.ZipFile(archive()) as package, package.open(MEMBER.format(folder=folder, name=name)) as file:
        return [json.loads(line) for line in file if line.strip()]


def task_of(name: str, row: dict[str, Any], answers: Sequence[dict[str, dict[str, list[Json]]]]) -> Task:
    """Make a task of a line of the data and its right answers."""
    functions: list[dict[str, Any]] = row["function"]
    legal = legal_names([function["name"] for function in functions])
    types = {function["name"]: types_of(function["parameters"]) for function in functions}
    tools = tuple(
        Tool(legal[function["name"]], function.get("description", ""), schema_of(function["parameters"]))
        for function in functions
    )
    wanted = tuple(
        Wanted(legal[called], accepted, types[called]) for answer in answers for called, accepted in answer.items()
    )
    said = tuple(Message(Role(each["role"]), (Text(each["content"]),)) for each in row["question"][0])
    return Task(row["id"], name, said, tools, wanted, {mapped: original for original, mapped in legal.items()})


def legal_names(names: Iterable[str]) -> dict[str, str]:
    """Map each name to a unique name that every wire accepts."""
    legal: dict[str, str] = {}
    for name in names:
        plain = _NOT_LEGAL.sub("_", name)[:_LONGEST_NAME]
        taken, number = plain, 2
        while taken in legal.values():
            taken, number = f"{plain[: _LONGEST_NAME - 3]}_{number}", number + 1
        legal[name] = taken
    return legal


def types_of(parameters: dict[str, Any]) -> dict[str, str]:
    """Return the type of each parameter, as the data names it."""
    return {name: str(schema.get("type", "any")) for name, schema in parameters.get("properties", {}).items()}


def schema_of(schema: JsonObject) -> JsonObject:
    """Write a schema of the data as JSON Schema."""
    written: JsonObject = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            written |= _TYPES.get(value, {"type": value})
        elif key == "properties" and isinstance(value, dict):
            written[key] = {name: schema_of(each) for name, each in value.items() if isinstance(each, dict)}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            written[key] = schema_of(value)
        elif key != "optional":  # `required` lists what is not optional
            written[key] = value
    return written


@cache
def archive() -> Path:
    """Return the package, fetched if it is not there, and checked."""
    kept = cache_folder() / "accuracy" / "bfcl.whl"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        _fetch(kept)
    if (found := hashlib.sha256(kept.read_bytes()).hexdigest()) != SHA256:
        raise SystemExit(f"{kept} has the sha256 {found}, not {SHA256}: delete it, or {PIN} is not what it was")
    return kept


def _fetch(kept: Path) -> None:
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "-d", folder, PIN]
        told = subprocess.run(pip, check=False, capture_output=True, text=True)
        if told.returncode:
            raise SystemExit(f"{PIN} could not be fetched: {told.stderr.strip()[-500:]}")
        next(Path(folder).iterdir()).replace(kept)
