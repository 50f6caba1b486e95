"""Stores the answers of a model's server: in a database during a measurement, and in the repository for replays.

    just accuracy-answers        writes what the database has to bench/accuracy/answers/MODEL.jsonl.xz

At temperature 0 the same question has the same answer. So no question is sent twice, and `just accuracy --replay`
computes every figure again from the answers in the repository, without a model. A new version of toolspeak needs a
model only for the questions that it words differently.
"""

import argparse
import hashlib
import json
import lzma
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.accuracy.kept import FOLDER
from testkit.llama_models import MODELS
from testkit.report import close

ARCHIVE = Path(__file__).with_name("answers")
TABLE = "create table if not exists answer (key text primary key, type text, body blob, seconds real) without rowid"
SERVER = "create table if not exists server (model text primary key, version text) without rowid"
STREAM = "text/event-stream"
KEY_LENGTH = 32
_VOLATILE = ("id", "created", "timings", "system_fingerprint")
"""Fields that differ from answer to answer and that no form reads: they would be most of the archive."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer of the server."""

    type: str
    body: bytes
    seconds: float


class Answers:
    """The answers of one model, in a file."""

    def __init__(self, model: str, folder: Path = FOLDER, archive: Path = ARCHIVE) -> None:
        """Open the file, and add the answers that only the archive has."""
        folder.mkdir(parents=True, exist_ok=True)
        self.model = model
        self._archive = archive / f"{model}.jsonl.xz"
        self._kept = sqlite3.connect(folder / f"answers-{model}.sqlite", isolation_level=None, timeout=60)
        self._kept.execute("pragma journal_mode = wal")
        self._kept.execute("pragma synchronous = off")  # answers that a crash loses are requested again
        self._kept.execute(TABLE)
        self._kept.execute(SERVER)
        self._load()

    def close(self) -> None:
        """Close the file."""
        self._kept.close()

    @property
    def server(self) -> str:
        """The version of the last server; empty if there was none."""
        row = self._kept.execute("select version from server where model = ?", (self.model,)).fetchone()
        return row[0] if row else ""

    def asked_of(self, server: str) -> None:
        """Record the version of the current server."""
        self._kept.execute("insert or replace into server values (?, ?)", (self.model, server))

    def find(self, key: str) -> Kept | None:
        """Return the answer to a question, or None."""
        row = self._kept.execute("select type, body, seconds from answer where key = ?", (key,)).fetchone()
        return Kept(*row) if row else None

    def keep(self, key: str, kept: Kept) -> None:
        """Keep an answer."""
        row = (key, kept.type, kept.body, kept.seconds)
        self._kept.execute("insert or replace into answer values (?, ?, ?, ?)", row)

    def save(self) -> int:
        """Write everything to the archive; return how many answers that are."""
        self._archive.parent.mkdir(parents=True, exist_ok=True)
        rows = self._kept.execute("select key, type, body, seconds from answer order by key").fetchall()
        lines = [json.dumps({"server": self.server})]
        for key, kind, body, seconds in rows:
            lines.append(json.dumps([key, kind, compact(kind, body), round(seconds, 2)], ensure_ascii=False))
        text = "".join(f"{line}\n" for line in lines)
        self._archive.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        return len(rows)

    def _load(self) -> None:
        if not self._archive.exists():
            return
        first, *lines = lzma.decompress(self._archive.read_bytes()).decode().splitlines()
        self._kept.execute("begin")
        for line in lines:
            key, kind, body, seconds = json.loads(line)
            self._kept.execute("insert or ignore into answer values (?, ?, ?, ?)", (key, kind, body.encode(), seconds))
        server = (self.model, json.loads(first)["server"])
        self._kept.execute("insert or ignore into server values (?, ?)", server)
        self._kept.execute("commit")


def key_of(model: str, server: str, path: str, body: bytes) -> str:
    """Return the key of a question: a hash of the model, the server, the path and the body."""
    identity = f"{model} {MODELS[model].sha256} {server}\n{path}\n"
    return hashlib.sha256(identity.encode() + body).hexdigest()[:KEY_LENGTH]


def compact(kind: str, body: bytes) -> str:
    """Return an answer without volatile fields; the text chunks of a stream are joined."""
    if not kind.startswith(STREAM):
        return _plain(json.loads(body)) if kind.startswith("application/json") else body.decode()
    lines = [line.removeprefix("data: ") for line in body.decode().splitlines() if line.startswith("data: ")]
    chunks = [json.loads(line) for line in lines if line != "[DONE]"]
    return "".join(f"data: {_plain(chunk)}\n\n" for chunk in _joined(chunks)) + "data: [DONE]\n\n"


def _plain(value: dict[str, Any]) -> str:
    kept = {key: inner for key, inner in value.items() if key not in _VOLATILE}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def _joined(chunks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a stream; adjacent chunks that hold only text are joined."""
    text: list[str] = []
    for chunk in chunks:
        piece = _text_only(chunk)
        if piece is not None:
            text.append(piece)
            continue
        if text:
            yield _text_chunk(text)
            text = []
        yield chunk
    if text:
        yield _text_chunk(text)


def _text_only(chunk: dict[str, Any]) -> str | None:
    choices: list[dict[str, Any]] = chunk.get("choices") or []
    if len(choices) != 1 or choices[0].get("finish_reason") or chunk.get("usage"):
        return None
    delta: dict[str, Any] = choices[0].get("delta") or {}
    return delta["content"] if set(delta) == {"content"} and isinstance(delta["content"], str) else None


def _text_chunk(pieces: list[str]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": "".join(pieces)}, "finish_reason": None}]}


def main() -> None:
    """Save the answers of all models that have some."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", default=list(MODELS), choices=MODELS)
    options = parser.parse_args()
    saved: dict[str, int] = {}
    for model in options.model:
        if (FOLDER / f"answers-{model}.sqlite").exists():
            answers = Answers(model)
            saved[model] = answers.save()
            answers.close()
    close("accuracy-answers", ok=bool(saved), saved=saved)


if __name__ == "__main__":
    main()
