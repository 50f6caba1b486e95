"""Reads the head of a GGUF file: what it takes to know how much memory the model needs.

The layout, all numbers little-endian:

    "GGUF", version u32, tensors u64, pairs u64, then the pairs: key string, type u32, value
    string: length u64, bytes.  array: type u32, count u64, values.

A file can be anything, so every length is checked before it is read and the whole head has a limit. The vocabulary is
by far the largest part of a head and comes after the numbers that matter here: reading stops there.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias

from toolspeak.errors import BadConfig

MAGIC: Final = b"GGUF"
Value: TypeAlias = int | float | bool | str | tuple[int | float | bool, ...] | None
_VERSIONS: Final = (2, 3)
"""Version 1 had shorter lengths, and was replaced within weeks in 2023."""
_STRING, _ARRAY = 8, 9
_FORMATS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MOST_PAIRS: Final = 4096
_MOST_BYTES: Final = 256 << 20
"""Of the whole head. The largest vocabularies take 30 MB."""
_LONGEST: Final = 1 << 20
"""Bytes of one key or text, such as a chat template."""
_MOST_KEPT: Final = 4096
"""Values of an array that are kept: one for each layer of a model."""
_VOCABULARY: Final = "tokenizer.ggml.tokens"


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The pairs of a GGUF file up to its vocabulary, and the number of words in that; 0 if it has none."""

    pairs: Mapping[str, Value]
    vocabulary: int = 0

    @property
    def architecture(self) -> str:
        """Return the name that the model's own keys begin with, such as `qwen2`."""
        found = self.pairs.get("general.architecture")
        return found if isinstance(found, str) else ""

    def number(self, key: str, default: int = 0) -> int:
        """Return a whole number of the model's own keys, such as `block_count`."""
        found = self.pairs.get(f"{self.architecture}.{key}")
        return int(found) if isinstance(found, int) and found >= 0 else default

    def numbers(self, key: str, count: int, default: int) -> tuple[int, ...]:
        """Return a number for each of `count` layers: some models have an array, most have one for all of them."""
        found = self.pairs.get(f"{self.architecture}.{key}")
        if isinstance(found, tuple):
            return tuple(int(each) for each in found[:count])
        return (self.number(key, default),) * count


def read_header(path: Path) -> GgufHeader:
    """Read a file's head. Raises `BadConfig` if it is not a whole GGUF head, and `OSError` if it cannot be read."""
    with path.open("rb") as file:
        reader = _Reader(file, path)
        if (begins := file.read(len(MAGIC))) != MAGIC:
            raise BadConfig(f"{path}: it begins with {begins!r}, and a GGUF file with {MAGIC!r}: this is no model")
        version = reader.number("I")
        if version not in _VERSIONS:
            raise BadConfig(
                f"{path}: is GGUF version {version}, and only {' and '.join(map(str, _VERSIONS))} are known. "
                "The file is damaged, or needs a newer toolspeak: fetch it again."
            )
        reader.number("Q")  # the number of tensors
        count = reader.number("Q")
        if count > _MOST_PAIRS:
            raise reader.damaged(f"it claims {count} settings")
        return _pairs(reader, count)


def _pairs(reader: "_Reader", count: int) -> GgufHeader:
    pairs: dict[str, Value] = {}
    for _ in range(count):
        key, kind = reader.text(), reader.number("I")
        if key == _VOCABULARY and kind == _ARRAY:
            reader.number("I")
            return GgufHeader(pairs, reader.number("Q"))
        pairs[key] = reader.value(kind)
    return GgufHeader(pairs)


class _Reader:
    """Takes values out of a file, and never more bytes than a head may have."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file: Final = file
        self._path: Final = path
        self._left = _MOST_BYTES

    def damaged(self, why: str) -> BadConfig:
        return BadConfig(
            f"{self._path}: its head cannot be read: {why}. The file is damaged or not whole: fetch it again."
        )

    def number(self, form: str) -> int:
        return int(self._unpacked(form, 1)[0])

    def text(self) -> str:
        return self._bytes(self._length(_LONGEST)).decode("utf-8", "replace")

    def value(self, kind: int) -> Value:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self._array()
        return self._unpacked(self._form(kind), 1)[0]

    def _array(self) -> Value:
        kind, count = self.number("I"), self.number("Q")
        if kind == _STRING:
            for _ in range(min(count, _MOST_BYTES)):  # each takes 8 bytes at least, so a false count soon ends the file
                self._skip(self._length(_LONGEST))
            return None
        form = self._form(kind)
        size = struct.calcsize(f"<{form}")
        if count > _MOST_BYTES // size:
            raise self.damaged(f"an array of {count} values")
        if count <= _MOST_KEPT:
            return self._unpacked(form, count)
        self._skip(count * size)
        return None

    def _form(self, kind: int) -> str:
        if kind not in _FORMATS:
            raise self.damaged(f"there is no type {kind}")
        return _FORMATS[kind]

    def _length(self, most: int) -> int:
        length = self.number("Q")
        if length > most:
            raise self.damaged(f"a text of {length} bytes")
        return length

    def _unpacked(self, form: str, count: int) -> tuple[int | float | bool, ...]:
        layout = struct.Struct(f"<{count}{form}")
        return layout.unpack(self._bytes(layout.size))

    def _bytes(self, size: int) -> bytes:
        self._spend(size)
        found = self._file.read(size)
        if len(found) < size:
            raise self.damaged("the file ends in it")
        return found

    def _skip(self, size: int) -> None:
        self._spend(size)
        self._file.seek(size, 1)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise self.damaged(f"it is longer than {_MOST_BYTES >> 20} MB")
