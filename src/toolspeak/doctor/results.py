"""Keeps the results of an unfinished trial in a file, so that the next doctor continues after the last answer.

    ~/.local/state/toolspeak/doctor/3f0c….json

The file belongs to one model, endpoint, server fingerprint, version of toolspeak and version of the suite: results of
another are never mixed in. It is written after every task, and deleted when the trial has ended. What is left then is
`3f0c….decided` with the verdict: the gateway does not begin the same trial again by itself (CAP-13).
"""

import logging
import os
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.doctor.call_forms import TODAY, DoctorForm
from toolspeak.doctor.task import DoctorTask, TaskResult
from toolspeak.engine.plan import Plan

_LOG: Final = logging.getLogger(__name__)
_LARGEST: Final = 1024 * 1024
_DIGITS: Final = 32
_DECIDED: Final = ".decided"
_decode = msgspec.json.Decoder(dict[str, dict[str, TaskResult]]).decode


class Results:
    """Results by form and task. Without a folder they are kept in memory only; storage errors are logged once."""

    def __init__(self, folder: Path | None, subject: tuple[str, ...], today: Plan) -> None:
        """Take the folder, what the results are about, and the plan that the form `TODAY` stands for."""
        name = sha256("\n".join(subject).encode()).hexdigest()[:_DIGITS]
        self._path: Final = folder / f"{name}.json" if folder is not None else None
        self._today: Final = today
        self._known: dict[str, dict[str, TaskResult]] = {}
        self._warned = False

    def load(self) -> int:
        """Read the file; return how many results it has. An unreadable file counts as none."""
        if self._path is not None:
            with suppress(OSError, ValueError), self._path.open("rb") as file:
                self._known = _decode(file.read(_LARGEST))
        return sum(map(len, self._known.values()))

    def get(self, form: DoctorForm, task: DoctorTask) -> TaskResult | None:
        """Return the result of a task in a form, if it is known."""
        return self._known.get(self._key(form), {}).get(task.name)

    def put(self, form: DoctorForm, task: DoctorTask, result: TaskResult) -> None:
        """Keep a result, in the file too."""
        self._known.setdefault(self._key(form), {})[task.name] = result
        if self._path is not None:
            self._keep(self._path, msgspec.json.encode(self._known))

    def clear(self) -> None:
        """Forget all results and whether the trial was decided, and delete the files."""
        self._known = {}
        if self._path is not None:
            for path in (self._path, self._path.with_suffix(_DECIDED)):
                with suppress(OSError):
                    path.unlink()

    def conclude(self, verdict: str) -> None:
        """Keep that the trial was decided, with its verdict for people who look into the folder."""
        if self._path is not None:
            self._keep(self._path.with_suffix(_DECIDED), f"{verdict}\n".encode())

    @property
    def is_concluded(self) -> bool:
        """Whether the trial was decided."""
        return self._path is not None and self._path.with_suffix(_DECIDED).is_file()

    def _keep(self, path: Path, data: bytes) -> None:
        try:
            _write(path, data)
        except OSError as error:
            if not self._warned:
                _LOG.warning("the doctor cannot keep its results in %s: %s", path, error)
            self._warned = True

    def _key(self, form: DoctorForm) -> str:
        """Return a key that changes with all that a form sends."""
        plan = (self._today.line, repr(self._today.settings)) if form is TODAY else ()
        digest = sha256(repr((form.settings, form.tools, plan)).encode()).hexdigest()[:_DIGITS]
        return f"{form.name} {digest}"


def _write(path: Path, data: bytes) -> None:
    """Write a file atomically: an interrupt leaves the old one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".new")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
