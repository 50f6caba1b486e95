"""Fetches a GGUF model from the Hugging Face Hub, or from a server that speaks its API (`HF_ENDPOINT`).

    fetch("hf:ORG/REPO:Q4_K_M", folder, report)     -> the file, checked against the hub's SHA-256

A download goes to `FILE.HASH.part`, and gets its name only after its checksum was right. So a file that has its name is
whole, and one that was interrupted, by whatever, goes on where it stopped. The package's own `hf_hub_download` deletes
what it has when it is interrupted; its `http_get`, which it uses itself, takes the size to continue from.

Tokens (`HF_TOKEN`), endpoint, timeouts and `HF_HUB_OFFLINE` are read by the package.
"""

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self, TypeAlias
from urllib.parse import urlsplit

from typing_extensions import override

from toolspeak.errors import BadConfig
from toolspeak.local.memory import bytes_text
from toolspeak.local.program import part_names, plain_stem
from toolspeak.local.stores import is_model, quant_of

PREFIX: Final = "hf:"
Report: TypeAlias = Callable[[str, int, int], None]
"""Called with what is done (`fetching FILE`), the bytes so far, and all of them."""
_FORM: Final = re.compile(r"hf:([A-Za-z0-9][\w.-]*)/([A-Za-z0-9][\w.-]*)(?::([\w.-]+))?")
_FILE: Final = re.compile(r"(?!.*//)(?!.*/[.+-])[A-Za-z0-9_][\w.+/-]*")
"""A path of the hub that may become a path of this machine: none of its parts is empty or begins with a dot."""
_USUAL: Final = ("Q4_K_M", "Q4_K_S", "Q4_0", "MXFP4", "Q5_K_M", "Q6_K", "Q8_0")
"""Quantisations in the order in which one is chosen if none is named."""
_BLOCK: Final = 1 << 20
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_NO_PACKAGE: Final = "models are fetched with the package huggingface_hub: pip install 'toolspeak[hub]'"


@dataclass(frozen=True, slots=True)
class HubName:
    """`hf:ORG/REPO[:QUANT]`."""

    repo: str
    quant: str = ""

    @override
    def __str__(self) -> str:
        return f"{PREFIX}{self.repo}:{self.quant}" if self.quant else f"{PREFIX}{self.repo}"


@dataclass(frozen=True, slots=True)
class _HubFile:
    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _HubModel:
    """One model of a repository: a file, or all parts of a split one."""

    quant: str
    files: tuple[_HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def stem(self) -> str:
        return plain_stem(Path(self.files[0].path).name)


def parse_name(text: str) -> HubName:
    """Return the parts of a name that begins with `hf:`. Raises `BadConfig`."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise BadConfig(
            f"{text}: a model of the hub is hf:ORG/REPO or hf:ORG/REPO:QUANT, such as hf:Qwen/Qwen3-8B-GGUF"
        )
    return HubName(f"{found[1]}/{found[2]}", found[3] or "")


def fetch(name: HubName, folder: Path, report: Report) -> Path:
    """Return the file of a model below `folder`, the first part of a split one; what is missing is downloaded.

    Raises `BadConfig`.
    """
    hub = _Hub(name)
    model = _chosen(name, hub.models())
    target = folder / name.repo
    files = [(file, target / Path(file.path).name) for file in model.files]
    _check_space(name, [file for file, path in files if not _is_checked(path, file)], folder)
    for file, path in files:
        if not _is_checked(path, file):
            hub.download(file, path, report)
    return files[0][1]


# ---------------------------------------------------------------- which file


def _chosen(name: HubName, models: Sequence[_HubModel]) -> _HubModel:
    """Return the model of the named quantisation, else the usual one. Raises `BadConfig` with those that exist."""
    if not models:
        raise BadConfig(
            f"{name}: the repository has no GGUF file. Look for one whose name ends in -GGUF: "
            f"toolspeak up {PREFIX}{name.repo}-GGUF"
        )
    if name.quant:
        wanted = name.quant.lower()
        found = [model for model in models if wanted in (model.quant.lower(), model.stem.lower())]
        if found:
            return found[0]
        known = ", ".join(f"{model.quant or model.stem} ({bytes_text(model.size)})" for model in models)
        example = HubName(name.repo, _usual(models).quant or _usual(models).stem)
        raise BadConfig(f"{name}: there is no {name.quant}. There are {known}. Type: toolspeak up {example}")
    return _usual(models)


def _usual(models: Sequence[_HubModel]) -> _HubModel:
    by_quant = {model.quant: model for model in reversed(models)}
    found = next((by_quant[quant] for quant in _USUAL if quant in by_quant), None)
    return found or min(models, key=lambda model: model.size)


def _is_checked(path: Path, file: _HubFile) -> bool:
    """Return whether a file is there that had this checksum when it was fetched."""
    try:
        return path.stat().st_size == file.size and _note(path).read_text(encoding="ascii") == file.sha256
    except (OSError, ValueError):
        return False


def _note(path: Path) -> Path:
    """Return the file that keeps the checksum of another: a hub may replace a file under the same name."""
    return path.with_name(f".{path.name}.sha256")


def _check_space(name: HubName, files: Sequence[_HubFile], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    have = sum(part.stat().st_size for part in (folder / name.repo).glob("*.part"))
    need, free = sum(file.size for file in files) - have, shutil.disk_usage(folder).free
    if need > free:
        raise BadConfig(
            f"{name}: {bytes_text(need)} are to be fetched, and {folder} has room for {bytes_text(free)}. "
            "Free some space, name a smaller quantisation, or set XDG_CACHE_HOME to another disk."
        )


# ---------------------------------------------------------------- the hub


class _Hub:
    """Asks the hub about one repository."""

    def __init__(self, name: HubName) -> None:
        """Import the package. Raises `BadConfig` if it is not installed."""
        try:
            self._package: Any = _module("huggingface_hub")
            self._errors: Any = _module("huggingface_hub.errors")
            self._files: Any = _module("huggingface_hub.file_download")
        except ModuleNotFoundError:
            raise BadConfig(f"{name}: {_NO_PACKAGE}") from None
        self._name: Final = name
        self._package.logging.set_verbosity_error()  # it warns of every retry, in the middle of our progress line

    def models(self) -> list[_HubModel]:
        """Return the models of the repository, the smallest first."""
        try:
            info: Any = self._package.HfApi().model_info(self._name.repo, files_metadata=True)
        except (AttributeError, KeyError, TypeError, ValueError):  # the package reads JSON of another form
            endpoint = self._package.constants.ENDPOINT
            raise BadConfig(f"{self._name}: {endpoint} does not answer as a hub does. Is HF_ENDPOINT right?") from None
        except Exception as error:  # noqa: BLE001 # of the package's HTTP client; `_explained` raises all others again
            raise self._explained(error) from None
        siblings: list[Any] = info.siblings or []
        files: dict[str, _HubFile] = {
            each.rfilename: _HubFile(each.rfilename, each.size or 0, each.lfs.sha256)
            for each in siblings
            if each.lfs is not None and each.rfilename.endswith(".gguf") and _FILE.fullmatch(each.rfilename)
        }
        found = (_whole(path, files) for path in sorted(files) if is_model(Path(path).name))
        return sorted((model for model in found if model is not None), key=lambda model: model.size)

    def download(self, file: _HubFile, path: Path, report: Report) -> None:
        """Fetch a file, or the rest of it, and check it. Raises `BadConfig`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{file.sha256[:12]}.part")
        part.touch()
        have = part.stat().st_size
        if have < file.size:
            self._fetch_rest(file, part, have, report)
        found = _digest(part, lambda done: report(f"checking {path.name}", done, file.size))
        if found != file.sha256:
            raise BadConfig(
                f"{self._name}: {part} has the SHA-256 {found}, and the hub says {file.sha256}: it was damaged on the "
                f"way, or changed on the server. It is not used, and was kept. "
                f"To fetch it again: rm '{part}' and toolspeak up {self._name}"
            )
        part.replace(path)
        _note(path).write_text(file.sha256, encoding="ascii")

    def _fetch_rest(self, file: _HubFile, part: Path, have: int, report: Report) -> None:
        repo = self._name.repo
        url: str = self._package.hf_hub_url(repo, file.path)
        bar = _bar(lambda done: report(f"fetching {Path(file.path).name}", done, file.size), have)
        try:
            there: str = self._package.get_hf_file_metadata(url).location
            headers = self._package.utils.build_hf_headers()
            if urlsplit(there).netloc != urlsplit(url).netloc:
                # The hub leads to storage of others, with a signature in the address: the token is not for them.
                headers.pop("authorization", None)
            with part.open("r+b") as out:
                out.seek(have)
                self._files.http_get(
                    there, out, resume_size=have, headers=headers, expected_size=file.size, tqdm_class=bar
                )
        except Exception as error:  # noqa: BLE001 # as above
            raise self._explained(error, part) from None

    def _explained(self, error: Any, part: Path | None = None) -> BadConfig:  # noqa: ANN401 # its classes are the package's
        """Return the error for people; of errors that are a bug of ours, themselves."""
        errors, name = self._errors, self._name
        if isinstance(error, errors.GatedRepoError):
            return BadConfig(
                f"{name}: its owner gives the model only to people who accept the terms. Accept them at "
                f"{self._package.constants.ENDPOINT}/{name.repo}, and set HF_TOKEN to a token of that account."
            )
        if isinstance(error, errors.RepositoryNotFoundError):
            return BadConfig(
                f"{name}: the hub knows no such repository, or it is private. Check the name; for a private one set "
                "HF_TOKEN."
            )
        if isinstance(error, errors.HfHubHTTPError):
            status = error.response.status_code
            token = " Is HF_TOKEN valid?" if status in (_UNAUTHORIZED, _FORBIDDEN) else ""
            return BadConfig(f"{name}: {self._package.constants.ENDPOINT} answers with status {status}.{token}")
        if isinstance(error, errors.OfflineModeIsEnabled):
            return BadConfig(f"{name}: is not on this machine, and HF_HUB_OFFLINE forbids to fetch it: unset it")
        # `HTTPError` is what the package's HTTP client, which has changed its name before, raises.
        if isinstance(error, errors.HTTPError | OSError):
            kept = f" {bytes_text(part.stat().st_size)} are kept" if part is not None and part.exists() else ""
            again = f":{kept}. Run the same command again to continue there." if kept else "."
            return BadConfig(f"{name}: no connection to {self._package.constants.ENDPOINT} ({_one_line(error)}){again}")
        if isinstance(error, ValueError) and "hf_xet" in str(error):
            return BadConfig(f"{name}: files of this size come through another protocol: pip install hf_xet")
        raise error


def _module(name: str) -> Any:  # noqa: ANN401 # the package is optional, so its types are not used
    return import_module(name)


def _whole(path: str, files: dict[str, _HubFile]) -> _HubModel | None:
    """Return the model of a file, with all parts of a split one; None if the repository lacks some of them."""
    folder = Path(path).parent
    names = [(folder / name).as_posix() for name in part_names(Path(path).name)]
    if any(name not in files for name in names):
        return None
    return _HubModel(quant_of(path), tuple(files[name] for name in names))


def _digest(path: Path, report: Callable[[int], None]) -> str:
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            report(done)
    return digest.hexdigest()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _bar(report: Callable[[int], None], have: int) -> type:
    """Return a class in the place of tqdm's, which reports instead of drawing."""

    class Bar:
        def __init__(self, *_: object, **__: object) -> None:
            self.done = have

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self.close()

        def update(self, count: float = 1) -> None:
            self.done += int(count)
            report(self.done)

        def close(self) -> None:
            """Do nothing: the last report was of the last bytes."""

    return Bar
