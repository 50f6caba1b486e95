"""Finds the program and the file to run a model: a GGUF file, and `llama-server` or the package `xllamacpp`.

The file is checked before a server is started for it, so that a wrong one is reported and does not crash the server.
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
    """A file that starts like a GGUF model."""

    path: Path
    size: int

    @property
    def name(self) -> str:
        """Return the model's name, by which its family is recognised."""
        return self.path.stem

    @property
    def bulk(self) -> str:
        """Return its size for people, such as `4.37 GB`."""
        unit, bytes_ = next((each for each in _UNITS if self.size >= each[1]), ("bytes", 1.0))
        return f"{self.size / bytes_:.3g} {unit}"


def model_file(path: Path) -> ModelFile:
    """Check a file and return it. Raises `BadConfig` if it is not a GGUF file."""
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
"""Tokens. Agents send long prompts."""
_BINARY: Final = "llama-server"
_PACKAGE: Final = "xllamacpp"
_CHILD: Final = "toolspeak.local.serve"
_NOTHING: Final = (
    "nothing here can run a model: install llama.cpp, so that `llama-server` is on the PATH (or say --llama-server), "
    "or install the package: pip install 'toolspeak[llama]'"
)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of a model server. `threads` 0: the server decides; `further` are extra arguments of `llama-server`."""

    port: int
    context: int = CONTEXT
    threads: int = 0
    further: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """A program that serves a model; without a path, the package."""

    path: str = ""

    @property
    def name(self) -> str:
        """Return the display name."""
        return _BINARY if self.path else _PACKAGE

    def command(self, model: ModelFile, wish: ServerOptions) -> list[str]:
        """Return the command line that serves a model on loopback."""
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
        # Without `--jinja`, llama.cpp rejects requests with tools ("tools param requires --jinja flag").
        return [self.path, *(word for option in options.items() for word in option), "--jinja", *wish.further]


def find_server_program(said: str, path: str, further: Sequence[str] = ()) -> ServerProgram:
    """Return the program: the given one, a `llama-server` on this PATH, or the package. Raises `BadConfig`."""
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
