"""Opens the model that a user names: a GGUF file, a model of a local store, or one of the Hugging Face Hub.

One importer: a way to open a model has nothing to do with a command line, and is tested without one.
"""

from collections.abc import Mapping
from pathlib import Path

from toolspeak.errors import BadConfig
from toolspeak.local.hub import PREFIX, Report, fetch, parse_name
from toolspeak.local.program import ModelFile, model_file
from toolspeak.local.stores import download_folder, find_model, stored_from_hub


def open_model(model: str, environ: Mapping[str, str], report: Report, name: str = "") -> ModelFile:
    """Return the file of a model, fetched first if need be. `name` replaces its own. Raises `BadConfig`.

    A model of the hub that is on this machine already is used as it is: the hub is not asked.
    """
    if model.startswith(PREFIX):
        return _from_hub(model, environ, report, name)
    path = Path(model).expanduser()
    if path.exists() or model.endswith(".gguf"):
        return model_file(path, name)
    found = find_model(model, environ)
    return model_file(found.path, name or found.served_as)


def _from_hub(model: str, environ: Mapping[str, str], report: Report, name: str) -> ModelFile:
    wanted = parse_name(model)
    if stored := stored_from_hub(wanted.repo, wanted.quant, environ):
        return model_file(stored.path, name or stored.served_as)
    folder = download_folder(environ)
    if folder is None:
        raise BadConfig(f"{model}: there is no folder to keep it in. Set XDG_CACHE_HOME, or HOME, to one.")
    return model_file(fetch(wanted, folder, report), name)
