"""The stored keys as a running gateway knows them: it looks for changes every second (SAFE-10).

If the store cannot be read, the keys that are known stay valid, and the log says that changes are not seen. A gateway
that has never read it knows no key, and refuses all of them.
"""

import asyncio
import logging
from typing import Final

from toolspeak.config.shape import Key
from toolspeak.gateway.audit_log import AuditLog
from toolspeak.gateway.key_records import KeyRecord, KeysUnavailable
from toolspeak.gateway.key_store import KeyStore, Records
from toolspeak.runtime.clock import Clock

_LOG: Final = logging.getLogger(__name__)
PERIOD: Final = 1.0
"""Seconds between two looks."""


class StoredKeys:
    """A copy of the store."""

    def __init__(self, store: KeyStore, audit: AuditLog, clock: Clock) -> None:
        """Begin without a key; `start` reads the store."""
        self._store: Final = store
        self._audit: Final = audit
        self._clock: Final = clock
        self._keys: dict[bytes, tuple[Key, KeyRecord]] = {}
        self._version: str | None = None
        self._watching: asyncio.Task[None] | None = None
        self._is_failing = False

    async def start(self) -> None:
        """Read the keys, and go on looking for changes."""
        await self.look()
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self) -> None:
        """Stop looking."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait((self._watching,))

    def find(self, digest: bytes, client: str = "") -> Key | None:
        """Return the valid key of this digest. One that has expired or was revoked is None, and in the audit log."""
        found = self._keys.get(digest)
        if found is None:
            return None
        key, record = found
        state = record.state(self._clock.seconds())
        if state == "valid":
            return key
        self._audit.refused(record.id, record.tenant, state, client)
        return None

    async def look(self) -> None:
        """Read the keys if they have changed; failures are logged once."""
        try:
            version, records = await asyncio.to_thread(self._read)
        except KeysUnavailable as error:
            if not self._is_failing:
                _LOG.error(
                    "%s: the %d keys that are known stay valid, and changes are not seen", error, len(self._keys)
                )
            self._is_failing = True
            return
        if self._is_failing:
            self._is_failing = False
            _LOG.warning("the stored keys can be read again")
        if records is not None:
            self._version, self._keys = version, _by_digest(records)

    def _read(self) -> tuple[str, Records | None]:
        # The version first: a change between the two is then seen by the next look.
        version = self._store.version()
        return version, None if version == self._version else self._store.read()

    async def _watch(self) -> None:
        while True:
            await self._clock.sleep(PERIOD)
            await self.look()


def _by_digest(records: Records) -> dict[bytes, tuple[Key, KeyRecord]]:
    found: dict[bytes, tuple[Key, KeyRecord]] = {}
    for record in records.values():
        try:
            key = record.key()
        except ValueError:
            _LOG.warning("the stored key %.20r is damaged, and is refused", record.id)
            continue
        found[key.digest] = key, record
    return found
