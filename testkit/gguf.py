"""Writes small GGUF files: a head as real ones have it, and zeros for weights."""

import struct
from collections.abc import Mapping
from pathlib import Path

HEAD: Mapping[str, int | str] = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def pair(key: str, value: int | str | list[int] | list[str]) -> bytes:
    return text(key) + _typed(value)


def _typed(value: int | str | list[int] | list[str]) -> bytes:
    match value:
        case int():
            return struct.pack("<II", 4, value)
        case str():
            return struct.pack("<I", 8) + text(value)
        case []:
            return struct.pack("<IIQ", 9, 4, 0)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(text(str(each)) for each in value)
        case _:
            return struct.pack(f"<IIQ{len(value)}I", 9, 4, len(value), *value)


def gguf_head(pairs: Mapping[str, int | str | list[int] | list[str]] = HEAD, version: int = 3) -> bytes:
    """Return the head of a file without tensors."""
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + b"".join(pair(*each) for each in pairs.items())


def write_gguf(path: Path, size: int = 2000) -> Path:
    """Write a file of this size, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf_head().ljust(size, b"\0"))
    return path
