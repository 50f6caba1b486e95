"""Estimates how much memory a model needs before it is loaded, and finds out how much is free.

weights         the size of the file: llama.cpp maps it as it is
KV cache        context x layers x (key + value) x 2 bytes, as 16-bit floats
working memory  512 tokens of a batch, each with the probabilities of the vocabulary, as 32-bit floats

The estimate is on the safe side: models with sliding windows need less KV cache than this.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolspeak.local.gguf import GgufHeader

_HALF, _FLOAT = 2, 4
"""Bytes of a number in the KV cache, and in working memory."""
_BATCH: Final = 512
_LAYERS_OF_WORK: Final = 8
"""Vectors of the model's width that are computed at one time."""
_MOST_LAYERS: Final = 4096
_STEP: Final = 1024
"""Contexts that are proposed are multiples of it."""
_UNITS: Final = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_GPU_OPTIONS: Final = ("-ngl", "--gpu-layers", "--n-gpu-layers")
_GPU_DEVICES: Final = ("/dev/nvidiactl", "/dev/kfd")


def bytes_text(size: float) -> str:
    """Return a number of bytes for people, such as `4.37 GB`."""
    unit, bytes_ = next((each for each in _UNITS if size >= each[1]), ("bytes", 1.0))
    return f"{size / bytes_:.3g} {unit}"


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The memory of one model, in bytes."""

    weights: int
    per_token: int
    """KV cache of one token of context."""
    work: int
    context: int

    @property
    def total(self) -> int:
        """Return the sum, at the context that the model is run with."""
        return self.weights + self.work + self.per_token * self.context

    def largest_context(self, free: int) -> int:
        """Return the largest context, in steps of 1024 tokens, with which the model fits; 0 if none does."""
        rest = free - self.weights - self.work
        if rest <= 0 or not self.per_token:
            return 0
        return min(rest // self.per_token // _STEP * _STEP, self.context)


def memory_need(header: GgufHeader, size: int, context: int) -> MemoryNeed:
    """Return what a model of this head and file size needs. Missing keys count as 0."""
    layers = min(header.number("block_count"), _MOST_LAYERS)
    width = header.number("embedding_length")
    heads = header.numbers("attention.head_count", layers, 0)
    most_heads = max(heads, default=0)
    usual = width // most_heads if most_heads else 0
    key, value = header.number("attention.key_length", usual), header.number("attention.value_length", usual)
    kv_heads = header.numbers("attention.head_count_kv", layers, most_heads)
    work = _BATCH * _FLOAT * (header.vocabulary + _LAYERS_OF_WORK * width)
    return MemoryNeed(size, sum(kv_heads) * (key + value) * _HALF, work, context)


def free_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that programs may still take: of the machine, or of its control group. None if unknown.

    A container sees the whole machine in /proc/meminfo, and is killed at the limit of its group. `root` is for tests.
    """
    if sys.platform != "linux":
        return None
    found = [each for each in (_available(root), _left_in_group(root)) if each is not None]
    return min(found, default=None)


def has_gpu(arguments: Sequence[str], root: Path = Path("/")) -> bool:
    """Return whether weights may go to the memory of a GPU, which is not measured here."""
    named = any(each.partition("=")[0] in _GPU_OPTIONS for each in arguments)
    return named or any((root / each.lstrip("/")).exists() for each in _GPU_DEVICES)


def _available(root: Path) -> int | None:
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = next(line.split() for line in lines if line.startswith("MemAvailable:"))
        return int(fields[1]) * 1024
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _left_in_group(root: Path) -> int | None:
    folder = root / "sys/fs/cgroup"
    try:
        most = int((folder / "memory.max").read_text(encoding="ascii"))
        used = int((folder / "memory.current").read_text(encoding="ascii"))
        # The page cache counts as used, but gives way.
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
        cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):  # no such file, or "max": no limit
        return None
    return max(0, most - used + cached)
