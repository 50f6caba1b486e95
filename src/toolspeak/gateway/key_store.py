"""Stores made keys: in a file of one machine, or in Redis for a fleet. Both are read by gateways every second.

    FILE                          JSON, mode 600, replaced as a whole; FILE.lock keeps two commands apart
    toolspeak:keys:v1             hash: the record of each key by its id
    toolspeak:keys:v1:version     counts the changes

Everything here blocks: gateways call it in a thread.
"""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from toolspeak.config.shape import Config, KeyPlace
from toolspeak.errors import BadConfig
from toolspeak.extras import require_extra
from toolspeak.gateway.key_records import KeyRecord, KeysUnavailable

if sys.platform != "win32":
    import fcntl

Records: TypeAlias = dict[str, KeyRecord]
Change: TypeAlias = Callable[[Records], None]
_LARGEST: Final = 64 << 20
"""Bytes of the file."""
_TIMEOUT: Final = 2.0
"""Seconds for one response of Redis: a person waits, or a thread."""
_TRIES: Final = 20
_KEYS, _VERSION = "toolspeak:keys:v1", "toolspeak:keys:v1:version"
_decode_file = msgspec.json.Decoder(list[KeyRecord]).decode
_decode_record = msgspec.json.Decoder(KeyRecord).decode


class KeyStore(Protocol):
    """The stored keys. Every method raises `KeysUnavailable` if they cannot be read or written."""

    def version(self) -> str:
        """Return a text that changes whenever a key does."""
        ...

    def read(self) -> Records:
        """Return all keys by id."""
        ...

    def change(self, change: Change) -> None:
        """Let a function change the keys, and store them; no other process changes them meanwhile."""
        ...


class FileKeys:
    """Keys in a file."""

    def __init__(self, file: Path) -> None:
        """Take the file, which need not exist."""
        self._file: Final = file

    def version(self) -> str:
        """Return what the system knows about the file."""
        with _file_errors(self._file):
            try:
                found = self._file.stat()
            except FileNotFoundError:
                return ""
            return f"{found.st_mtime_ns}:{found.st_ino}:{found.st_size}"

    def read(self) -> Records:
        """Read the file; one that does not exist has no keys."""
        with _file_errors(self._file):
            try:
                with self._file.open("rb") as opened:
                    data = opened.read(_LARGEST)
            except FileNotFoundError:
                return {}
            return {record.id: record for record in _decode_file(data)}

    def change(self, change: Change) -> None:
        """Read, change and replace the file under a lock."""
        with _file_errors(self._file):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked():
                records = self.read()
                change(records)
                self._write(msgspec.json.format(msgspec.json.encode(list(records.values()))))

    def _write(self, data: bytes) -> None:
        new = self._file.with_name(f"{self._file.name}.new")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(self._file)  # a reader sees the old file or the new one, never a part

    @contextmanager
    def _locked(self) -> Generator[None]:
        lock = os.open(self._file.with_name(f"{self._file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if sys.platform != "win32":
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


@contextmanager
def _file_errors(file: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise KeysUnavailable(f"the keys in {file} cannot be used: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KeysUnavailable(f"{file} is not a file of keys: {error}") from None


class RedisKeys:
    """Keys in Redis."""

    def __init__(self, url: str) -> None:
        """Prepare a client without connecting. Raises `BadConfig` if the URL is invalid, `MissingExtra`."""
        require_extra("redis", "access.store")
        from redis import Redis  # noqa: PLC0415
        from redis.exceptions import RedisError, WatchError  # noqa: PLC0415

        self._errors: Final = (RedisError, OSError)
        self._conflict: Final = WatchError
        try:
            self._redis: Final[Any] = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
                url, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT
            )
        except ValueError:
            raise BadConfig("redis.url: is not a URL such as redis://127.0.0.1:6379/0 (it is not shown)") from None

    def version(self) -> str:
        """Return the number of changes."""
        with self._redis_errors():
            return (self._redis.get(_VERSION) or b"").decode("ascii", "replace")

    def read(self) -> Records:
        """Read the keys. A record that cannot be read counts as missing: its key is refused."""
        with self._redis_errors():
            return _decoded(self._redis.hgetall(_KEYS))

    def change(self, change: Change) -> None:
        """Read, change and store the keys, again if another process was faster."""
        with self._redis_errors():
            for _ in range(_TRIES):
                try:
                    self._try_change(change)
                except self._conflict:
                    continue
                return
        raise KeysUnavailable("the keys in redis are changed by others all the time. Try again.")

    def _try_change(self, change: Change) -> None:
        with self._redis.pipeline() as pipe:
            pipe.watch(_VERSION)
            old = _decoded(pipe.hgetall(_KEYS))
            new = dict(old)
            change(new)
            pipe.multi()
            for id in old.keys() - new.keys():
                pipe.hdel(_KEYS, id)
            for id, record in new.items():
                if old.get(id) != record:
                    pipe.hset(_KEYS, id, msgspec.json.encode(record))
            pipe.incr(_VERSION)
            pipe.execute()

    @contextmanager
    def _redis_errors(self) -> Generator[None]:
        """Only the type of an error is told: its text may have the URL's password."""
        try:
            yield
        except self._errors as error:
            if isinstance(error, self._conflict):
                raise
            raise KeysUnavailable(f"redis gives no answer ({type(error).__name__}). Is it running?") from None


def _decoded(found: Mapping[bytes, bytes]) -> Records:
    records: Records = {}
    for value in found.values():
        try:
            record = _decode_record(value)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        records[record.id] = record
    return records


def open_key_store(config: Config) -> KeyStore | None:
    """Return the store of made keys; None if there is none. Raises `BadConfig`."""
    access = config.access
    match access.store:
        case KeyPlace.NONE:
            return None
        case KeyPlace.FILE:
            return FileKeys(_state_file(config, access.file, "keys.json", "access.file"))
        case KeyPlace.REDIS:
            if not config.redis:
                raise BadConfig('access.store: "redis" needs redis.url, or TOOLSPEAK_REDIS_URL')
            return RedisKeys(config.redis)


def audit_file(config: Config) -> Path | None:
    """Return the file of the audit log; None if there is none. Raises `BadConfig`."""
    access = config.access
    if not access.audit and access.store is KeyPlace.NONE and not access.jwt.is_configured:
        return None
    return _state_file(config, access.audit, "audit.jsonl", "access.audit")


def _state_file(config: Config, said: str, name: str, setting: str) -> Path:
    if said:
        return Path(said)
    if config.access.folder is None:
        raise BadConfig(f"{setting}: there is no home directory for {name}: name a file")
    return config.access.folder / name
