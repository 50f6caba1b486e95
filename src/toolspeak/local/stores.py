"""Finds the models that other programs, or earlier downloads, have stored on this machine. No program need run.

    Ollama        OLLAMA_MODELS, ~/.ollama/models           qwen2.5-coder:7b
    LM Studio     ~/.lmstudio/models                        lmstudio-community/Qwen2.5-Coder-7B-Instruct-GGUF
    Hugging Face  HF_HUB_CACHE, ~/.cache/huggingface/hub    hf:ORG/REPO:QUANT
    toolspeak     ~/.cache/toolspeak/models/hf              hf:ORG/REPO:QUANT

A store is another program's folder: what is unreadable or of an unknown form in it is left out, never an error.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import msgspec

from toolspeak.errors import BadConfig
from toolspeak.local.program import is_later_part, part_names, plain_stem

_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_MODEL_LAYER: Final = "application/vnd.ollama.image.model"
_OLLAMA_HOST, _OLLAMA_OWNER = "registry.ollama.ai", "library"
_OLLAMA_SERVICE: Final = "/usr/share/ollama/.ollama/models"
"""Where the models are if Ollama runs as a service of Linux."""
_LARGEST_MANIFEST: Final = 1 << 20
_MOST: Final = 2000
"""Files that are looked at in one store."""
_QUANT: Final = re.compile(
    r"(?:^|[-._])((?:UD-)?(?:I?Q\d[A-Z0-9_]*|TQ\d_\d|BF16|F16|F32|MXFP4[A-Z_]*))(?=$|[-.])", re.IGNORECASE
)
_LATEST: Final = ":latest"
_HUB: Final = "hf:"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model in a store. `names` has all names by which it may be called, the one to show first."""

    names: tuple[str, ...]
    path: Path
    size: int
    store: str
    served_as: str
    """The name that clients use."""

    @property
    def name(self) -> str:
        """Return the name to show."""
        return self.names[0]

    @property
    def is_whole(self) -> bool:
        """Return whether all parts of a split model are there."""
        return all(_is_file(self.path.with_name(name)) for name in part_names(self.path.name))


def stored_models(environ: Mapping[str, str]) -> list[StoredModel]:
    """Return the models of all stores, each file once."""
    home = _home(environ)
    found = [
        *(model for folder in _ollama_folders(environ, home) for model in _ollama(folder)),
        *(model for folder in _studio_folders(home) for model in _studio(folder)),
        *_downloads(download_folder(environ)),
        *_hub_cache(_hub_folder(environ, home)),
    ]
    return list({model.path: model for model in reversed(found)}.values())[::-1]


def find_model(name: str, environ: Mapping[str, str]) -> StoredModel:
    """Return the stored model of a name. Raises `BadConfig`, with names that are similar, if there is none."""
    stored = stored_models(environ)
    for model in stored:
        if name in model.names:
            return model
    known = [each for model in stored for each in model.names]
    close = get_close_matches(name, known, 3, 0.5)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise BadConfig(
        f"{name}: is no file, and no model of Ollama or LM Studio has this name.{hint} "
        "`toolspeak up` lists the models of this machine; `toolspeak up hf:ORG/REPO` fetches one."
    )


def stored_from_hub(repo: str, quant: str, environ: Mapping[str, str]) -> StoredModel | None:
    """Return the model of a repository of the hub that was fetched before; None if there is none, or several fit."""
    wanted = f"{_HUB}{repo}:{quant}".lower()
    found = [model for model in stored_models(environ) if model.name.lower().startswith(wanted) and model.is_whole]
    exact = [model for model in found if model.name.lower() == wanted]
    if quant:
        return exact[0] if exact else None
    return found[0] if len(found) == 1 else None


def quant_of(name: str) -> str:
    """Return the quantisation that a file is named after, such as `Q4_K_M`; empty if it names none."""
    found = _QUANT.findall(plain_stem(Path(name).name))
    return found[-1].upper() if found else ""


def download_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for models from the hub; None if the user has no home directory."""
    said, home = environ.get("XDG_CACHE_HOME", ""), _home(environ)
    if said and Path(said).is_absolute():
        return Path(said) / "toolspeak" / "models" / "hf"
    return home / ".cache" / "toolspeak" / "models" / "hf" if home else None


# ---------------------------------------------------------------- Ollama


class _Layer(msgspec.Struct):
    mediaType: str = ""  # noqa: N815 # the vendor's name
    digest: str = ""


class _Manifest(msgspec.Struct):
    layers: list[_Layer] = []


def _ollama_folders(environ: Mapping[str, str], home: Path | None) -> list[Path]:
    if said := environ.get("OLLAMA_MODELS"):
        return [Path(said)]
    return [*([home / ".ollama" / "models"] if home else []), Path(_OLLAMA_SERVICE)]


def _ollama(folder: Path) -> Iterator[StoredModel]:
    """Yield the models of a store: manifests/HOST/OWNER/MODEL/TAG names the blob of each."""
    manifests = folder / "manifests"
    for manifest in _files(manifests, "*/*/*/*"):
        host, owner, model, tag = manifest.relative_to(manifests).parts
        blob = _blob(folder, manifest)
        if blob is None:
            continue
        near = [model] if (host, owner) == (_OLLAMA_HOST, _OLLAMA_OWNER) else [owner, model]
        name = "/".join(near if host == _OLLAMA_HOST else [host, owner, model]) + f":{tag}"
        short = name.removesuffix(_LATEST)
        names = (short, name) if short != name else (name,)
        yield StoredModel(names, blob, blob.stat().st_size, "Ollama", short)


def _blob(folder: Path, manifest: Path) -> Path | None:
    """Return the file with a model's weights. Models in other forms than one GGUF file have none."""
    try:
        if manifest.stat().st_size > _LARGEST_MANIFEST:
            return None
        layers = msgspec.json.decode(manifest.read_bytes(), type=_Manifest).layers
    except (OSError, msgspec.MsgspecError):
        return None
    digests = [_DIGEST.fullmatch(layer.digest) for layer in layers if layer.mediaType == _MODEL_LAYER]
    if len(digests) != 1 or digests[0] is None:  # the digest becomes part of a path
        return None
    blob = folder / "blobs" / f"sha256-{digests[0][1]}"
    return blob if _is_file(blob) else None


# ---------------------------------------------------------------- LM Studio, and the hub's files


def _studio_folders(home: Path | None) -> list[Path]:
    return [home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"] if home else []


def _studio(folder: Path) -> Iterator[StoredModel]:
    """Yield the models of PUBLISHER/REPO/FILE.gguf. A repository with one model may be called by its own name."""
    found = [file for file in _files(folder, "*/*/*.gguf") if is_model(file.name)]
    repos = [file.parent for file in found]
    for file in found:
        repo, stem = file.parent.relative_to(folder).as_posix(), plain_stem(file.name)
        alone = (repo, file.parent.name) if repos.count(file.parent) == 1 else ()
        yield StoredModel((*alone, f"{repo}/{stem}", stem), file, _size(file), "LM Studio", stem)


def _downloads(folder: Path | None) -> Iterator[StoredModel]:
    if folder is not None:
        yield from _of_hub(_files(folder, "*/*/*.gguf"), folder, "toolspeak")


def _hub_folder(environ: Mapping[str, str], home: Path | None) -> Path | None:
    if said := environ.get("HF_HUB_CACHE"):
        return Path(said)
    if said := environ.get("HF_HOME"):
        return Path(said) / "hub"
    cache = Path(environ["XDG_CACHE_HOME"]) if environ.get("XDG_CACHE_HOME") else home / ".cache" if home else None
    return cache / "huggingface" / "hub" if cache else None


def _hub_cache(folder: Path | None) -> Iterator[StoredModel]:
    """Yield the models of models--ORG--REPO/snapshots/REVISION/FILE.gguf."""
    if folder is None:
        return
    for repo in sorted(folder.glob("models--*--*")):
        org, _, name = repo.name.removeprefix("models--").partition("--")
        files = _files(repo, "snapshots/*/*.gguf")
        yield from (_hub_model(f"{org}/{name}", file, "Hugging Face") for file in files if is_model(file.name))


def _of_hub(files: Iterable[Path], folder: Path, store: str) -> Iterator[StoredModel]:
    for file in files:
        if is_model(file.name):
            yield _hub_model(file.parent.relative_to(folder).as_posix(), file, store)


def _hub_model(repo: str, file: Path, store: str) -> StoredModel:
    stem = plain_stem(file.name)
    return StoredModel((f"{_HUB}{repo}:{quant_of(file.name) or stem}", stem), file, _size(file), store, stem)


# ---------------------------------------------------------------- files


def is_model(name: str) -> bool:
    """Return whether a file has a model: not the later part of one, nor what it needs to see images (`mmproj`)."""
    return name.endswith(".gguf") and not is_later_part(name) and not name.lower().startswith("mmproj")


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        found = (path for path in folder.glob(pattern) if _is_file(path))
        return sorted(path for path, _ in zip(found, range(_MOST), strict=False))
    except OSError:
        return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above it may not be entered
        return False


def _size(file: Path) -> int:
    parts = (file.with_name(name) for name in part_names(file.name))
    return sum(part.stat().st_size for part in parts if _is_file(part))


def _home(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    return Path(home) if Path(home).is_absolute() else None
