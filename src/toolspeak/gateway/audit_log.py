"""Writes the audit log: one JSON object on each line for each change of a key, and for keys that are refused (SAFE-10).

    {"time":"2026-11-18T04:11:06.120Z","event":"made","key":"k_4be1…","tenant":"anna","by":"cli:root"}
    {"time":"2026-11-18T04:12:09.004Z","event":"refused","key":"k_4be1…","tenant":"anna","reason":"expired","times":1}

It never has a key or the digest of one. Who sends a key that does not exist is not in it: the access log has the 401.
A client that is refused a thousand times a second writes a line every ten seconds, with the number of times.
The file is opened for each line, so that it can be rotated; a failure to write is logged, and stops no request.
"""

import logging
import os
from pathlib import Path
from time import gmtime, strftime
from typing import Final

import msgspec

from toolspeak.gateway.key_records import KeyRecord
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.clock import Clock

_LOG: Final = logging.getLogger(__name__)
QUIET: Final = 10.0
"""Seconds between two lines about the same refusal."""
_MOST: Final = 10_000
"""Refusals that are counted at one time."""


class AuditLog:
    """Appends to one file; without a file, it does nothing."""

    def __init__(self, file: Path | None, clock: Clock) -> None:
        """Take the file; it is created with the first line."""
        self._file: Final = file
        self._clock: Final = clock
        self._refusals: Final[dict[tuple[str, str], list[float]]] = {}
        """When a refusal was last written, and how many were not, by key and reason."""
        self._is_failing = False

    def changed(self, event: str, record: KeyRecord, by: str, **more: str) -> None:
        """Write a change: `made`, `rotated` or `revoked`, and who did it."""
        self._write({"event": event, "key": record.id, "tenant": record.tenant, "by": by, **more})

    def refused(self, key: str, tenant: str, reason: str, client: str = "") -> None:
        """Write that a key was refused: it is expired or revoked, or a limit was reached."""
        if self._file is None:
            return
        now, about = self._clock.monotonic(), (key, reason)
        known = self._refusals.get(about)
        if known is not None and now < known[0] + QUIET:
            known[1] += 1
            return
        times = 1 if known is None else int(known[1]) + 1
        if len(self._refusals) >= _MOST:
            self.flush()
        self._refusals[about] = [now, 0]
        self._write_refusal(key, tenant, reason, times, client)

    def flush(self) -> None:
        """Write the refusals that were only counted."""
        for (key, reason), (_, times) in self._refusals.items():
            if times:
                self._write_refusal(key, "", reason, int(times), "")
        self._refusals.clear()

    def _write_refusal(self, key: str, tenant: str, reason: str, times: int, client: str) -> None:
        more = {name: value for name, value in (("tenant", tenant), ("client", client)) if value}
        self._write({"event": "refused", "key": key, **more, "reason": reason, "times": times})

    def _write(self, line: JsonObject) -> None:
        if self._file is None:
            return
        seconds, rest = divmod(self._clock.nanoseconds(), 1_000_000_000)
        time = f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(seconds))}.{rest // 1_000_000:03d}Z"
        data = msgspec.json.encode({"time": time, **line}) + b"\n"
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            opened = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(opened, data)  # one write: lines of several processes do not mix
            finally:
                os.close(opened)
            self._is_failing = False
        except OSError as error:
            if not self._is_failing:
                _LOG.error("the audit log %s cannot be written: %s", self._file, error.strerror)
            self._is_failing = True
