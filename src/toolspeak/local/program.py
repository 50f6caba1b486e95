"""What runs a model: a GGUF file, and a `llama-server` of this machine or llama.cpp out of a Python package.

The file is checked before anything is started for it.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
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


# ---------------------------------------------------------------- programs


HOST: Final = "127.0.0.1"
CONTEXT: Final = 32_768
"""Tokens: agents send long prompts."""
_BINARY: Final = "llama-server"
_PACKAGE: Final = "xllamacpp"
_CHILD: Final = "toolspeak.local.serve"
_NOTHING: Final = (
    "nothing here can run a model: install llama.cpp, so that `llama-server` is on the PATH (or say --llama-server), "
    "or install the package: pip install 'toolspeak[llama]'"
)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a model is to be run. No `threads`: as many as the server thinks right; `further` is for `llama-server`."""

    port: int
    context: int = CONTEXT
    threads: int = 0
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """Something that runs a model; without a path it is the package."""

    path: str = ""

    @property
    def name(self) -> str:
        """Return what people call it."""
        return _BINARY if self.path else _PACKAGE

    def command(self, model: ModelFile, wish: ServerOptions) -> list[str]:
        """Return the command that serves a model on loopback."""
        if not self.path:
            counts = (wish.port, wish.context, wish.threads)
            return [sys.executable, "-m", _CHILD, str(model.path), model.name, *map(str, counts)]
        options = {
            "--model": str(model.path),
            "--alias": model.name,
            "--host": HOST,
            "--port": str(wish.port),
            "--ctx-size": str(wish.context),
            **({"--threads": str(wish.threads)} if wish.threads else {}),
        }
        return [self.path, *(word for option in options.items() for word in option), "--jinja", *wish.further]


def find_server_program(said: str, path: str, further: Sequence[str] = ()) -> ServerProgram:
    """Find it: what was said, a `llama-server` on this PATH, the package."""
    if said:
        return ServerProgram(_found(said, path))
    if on_path := shutil.which(_BINARY, path=path):
        return ServerProgram(on_path)
    if find_spec(_PACKAGE) is None:
        raise BadConfig(_NOTHING)
    if further:
        raise BadConfig(f"{' '.join(further)}: arguments behind -- are for `llama-server`, and only {_PACKAGE} is here")
    return ServerProgram()


def _found(said: str, path: str) -> str:
    found = shutil.which(said, path=path)
    if found is None:
        raise BadConfig(f"--llama-server: {said!r} is no program that can be run")
    return found
