"""Finds the program and the file to run a model: a GGUF file, and `llama-server` or the package `xllamacpp`.

The file is checked before a server is started for it, so that a wrong one is reported and does not crash the server.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from toolspeak.errors import BadConfig
from toolspeak.local.gguf import GgufHeader, read_header
from toolspeak.local.memory import bytes_text

_SPLIT: Final = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
_MOST_PARTS: Final = 999


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A GGUF model on this machine. Of a split one, `path` is the first part, and `size` that of all of them."""

    path: Path
    size: int
    name: str
    """The name that clients use; by it the model's family is recognised."""
    header: GgufHeader = field(compare=False, repr=False)

    @property
    def bulk(self) -> str:
        """Return its size for people, such as `4.37 GB`."""
        return bytes_text(self.size)


def model_file(path: Path, name: str = "") -> ModelFile:
    """Check a file and return it, named after itself unless it has a name. Raises `BadConfig` if it is no GGUF model.

    Any part of a split model stands for the whole, of which all parts must be there.
    """
    split = _SPLIT.fullmatch(path.name)
    parts = _parts(path, split) if split else [path]
    try:
        header = read_header(parts[0])
        size = sum(part.stat().st_size for part in parts)
    except OSError as error:
        raise BadConfig(f"{path}: {error.strerror}; a model is a GGUF file on this machine") from None
    # Of a blob of Ollama, the name says nothing. A link of a hub's cache says more than the blob that it leads to.
    return ModelFile(parts[0].absolute(), size, name or (split["stem"] if split else path.stem), header)


def is_later_part(name: str) -> bool:
    """Return whether a file is a part of a split model, and not its first."""
    split = _SPLIT.fullmatch(name)
    return split is not None and int(split["number"]) > 1


def part_names(name: str) -> list[str]:
    """Return the names of all parts of the model that a file is a part of; only its own if it is not split."""
    split = _SPLIT.fullmatch(name)
    if split is None or not 1 <= (count := int(split["count"])) <= _MOST_PARTS:
        return [name]
    return [f"{split['stem']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]


def plain_stem(name: str) -> str:
    """Return a file's name without `.gguf`, and without the number of its part."""
    split = _SPLIT.fullmatch(name)
    return split["stem"] if split else name.removesuffix(".gguf")


def _parts(path: Path, split: re.Match[str]) -> list[Path]:
    parts = [path.with_name(name) for name in part_names(path.name)]
    if missing := [part.name for part in parts if not part.exists()]:
        raise BadConfig(
            f"{path}: the model is split into {int(split['count'])} files, and {len(missing)} of them are not here: "
            f"{', '.join(missing[:3])}{' …' if missing[3:] else ''}. Put all of them into one folder."
        )
    return parts


# ---------------------------------------------------------------- programs


HOST: Final = "127.0.0.1"
CONTEXT: Final = 32_768
"""Tokens. Agents send long prompts."""
_BINARY: Final = "llama-server"
_PACKAGE: Final = "xllamacpp"
_CHILD: Final = "toolspeak.local.serve"
_NOTHING: Final = (
    "nothing here can run a model: install llama.cpp, so that `llama-server` is on the PATH (or pass --llama-server), "
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
        raise BadConfig(f"{' '.join(further)}: arguments after -- are for `llama-server`, and only {_PACKAGE} is here")
    return ServerProgram()


def _found(said: str, path: str) -> str:
    found = shutil.which(said, path=path)
    if found is None:
        raise BadConfig(f"--llama-server: {said!r} is no program that can be run")
    return found
