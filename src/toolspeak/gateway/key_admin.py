"""Makes, lists, rotates and revokes stored keys, for the command line and for the admin API (SAFE-10)."""

from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from toolspeak.config.shape import Config
from toolspeak.errors import BadConfig
from toolspeak.gateway.audit_log import AuditLog
from toolspeak.gateway.key_records import KeyOrder, KeyRecord, UnknownKey, check_duration, make_key, rotate_key
from toolspeak.gateway.key_store import KeyStore, Records, audit_file, open_key_store
from toolspeak.runtime.clock import CLOCK, Clock
from toolspeak.text.display import visible

T = TypeVar("T")


class KeyAdmin:
    """Changes the keys of one store, and writes each change to the audit log. Methods raise `KeysUnavailable`."""

    def __init__(self, store: KeyStore, audit: AuditLog, by: str, clock: Clock = CLOCK) -> None:
        """`by` is who makes changes, for the audit log."""
        self._store: Final = store
        self._audit: Final = audit
        self._by: Final = by
        self._clock: Final = clock

    def make(self, order: KeyOrder) -> tuple[KeyRecord, str]:
        """Store a new key; return its record and the key, which cannot be shown again. Raises `BadField`."""
        order.check()
        record, secret = make_key(order, self._clock.seconds())
        self._change(lambda records: records.update({record.id: record}))
        self._audit.changed("made", record, self._by)
        return record, secret

    def list(self) -> list[KeyRecord]:
        """Return all keys, the newest last."""
        return sorted(self._store.read().values(), key=lambda record: (record.made, record.id))

    def rotate(self, id: str, overlap: int) -> tuple[KeyRecord, str]:  # as people call it
        """Replace a key by a new one; the old one is valid for `overlap` more seconds.

        Raises `UnknownKey`, `BadField`.
        """
        check_duration("overlap", overlap)
        now = self._clock.seconds()

        def rotate(records: Records) -> tuple[KeyRecord, str]:
            record = _found(records, id)
            if (state := record.state(now)) != "valid":
                raise UnknownKey(f"the key {record.id} is {state}: make a new one")
            old, new, secret = rotate_key(record, now, overlap)
            records.update({old.id: old, new.id: new})
            return new, secret

        new, secret = self._change(rotate)
        self._audit.changed("rotated", new, self._by, replaces=new.replaces)
        return new, secret

    def revoke(self, id: str) -> KeyRecord:  # as people call it
        """End a key at once. Raises `UnknownKey`."""
        now = self._clock.seconds()

        def revoke(records: Records) -> KeyRecord:
            record = _found(records, id)
            if record.revoked is None:
                record = records[record.id] = msgspec.structs.replace(record, revoked=now)
            return record

        record = self._change(revoke)
        self._audit.changed("revoked", record, self._by)
        return record

    def _change(self, work: Callable[[Records], T]) -> T:
        """Change the store by `work`, and return its result. It finds the keys as they are at that moment.

        A revocation that another process makes between a look and a change would be lost otherwise.
        """
        now, results = self._clock.seconds(), deque[T](maxlen=1)

        def change(records: Records) -> None:
            results.append(work(records))
            for id in [id for id, record in records.items() if record.is_forgotten(now)]:
                del records[id]

        self._store.change(change)
        return results[0]


def _found(records: Records, id: str) -> KeyRecord:  # as people call it
    record = records.get(id)
    if record is None:
        raise UnknownKey(f"there is no key {visible(id[:40])!r}: `toolspeak keys list` shows all")
    return record


def open_key_admin(config: Config, by: str, clock: Clock = CLOCK) -> KeyAdmin:
    """Return the administration of the configured store. Raises `BadConfig` if there is none."""
    store = open_key_store(config)
    if store is None:
        raise BadConfig(
            'no keys are stored: write store = "file" (one machine) or store = "redis" (a fleet) under [access] in '
            "toolspeak.toml, and restart the gateway"
        )
    return KeyAdmin(store, AuditLog(audit_file(config), clock), by, clock)
