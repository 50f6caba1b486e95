"""A model's file: looked at before anything is started for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolspeak.errors import BadConfig

_MAGIC: Final = b"GGUF"
_UNITS: Final = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that begins as a model does."""

    path: Path
    size: int

    @property
    def name(self) -> str:
        """Return what the model is called: families are known by it."""
        return self.path.stem

    @property
    def bulk(self) -> str:
        """Return its size as people say it."""
        unit, bytes_ = next((each for each in _UNITS if self.size >= each[1]), ("bytes", 1.0))
        return f"{self.size / bytes_:.3g} {unit}"


def model_file(path: Path) -> ModelFile:
    """Look at a file; what is no model is said here, and not by a server that dies of it."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
        size = path.stat().st_size
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; a model is a GGUF file on this machine") from None
    if begins != _MAGIC:
        raise BadConfig(f"{path}: it begins with {begins!r}, and a GGUF file with {_MAGIC!r}: this is no model")
    return ModelFile(path.resolve(), size)
