"""Reads the `response_template` of a model from a file, and makes it a dialect that readers can load by its name."""

from hashlib import sha256
from pathlib import Path
from typing import Final

from toolspeak import dialects
from toolspeak.errors import BadField, BadJson
from toolspeak.ir.json import Json
from toolspeak.text.strict import dump, parse

_MAX_FILE: Final = 8 << 20
"""Bytes. A `tokenizer_config.json` lists special tokens, which makes it some hundred kilobytes in large models."""
_KEY: Final = "response_template"


def register_template(path: str) -> str:
    """Return the name of the dialect that a file's template describes. Raises BadField, BadJson and OSError.

    The name has a digest of the template, so that a file that has changed is another dialect.
    """
    from toolspeak.dialects.response_template import template_dialect  # noqa: PLC0415 # few configurations need it

    template = _read(Path(path).expanduser())
    name = f"{_KEY}:{sha256(dump(template).encode()).hexdigest()[:12]}"
    return dialects.register(template_dialect(template, name))


def template_problem(path: str) -> str | None:
    """Return what is wrong with a file, or None."""
    if not path.startswith(("/", "~/")):
        return f"{path!r} is not an absolute path, nor one that begins with ~/"
    try:
        register_template(path)
    except OSError as error:
        return f"{path!r} cannot be read: {error.strerror or error}"
    except (BadField, BadJson, UnicodeDecodeError) as error:
        return f"{path!r} has no template that toolspeak can use: {error}"
    return None


def _read(file: Path) -> Json:
    """Return the template in a `tokenizer_config.json`, or in a file that has nothing else."""
    with file.open("rb") as opened:
        data = opened.read(_MAX_FILE + 1)
    if len(data) > _MAX_FILE:
        raise BadField("", f"it is larger than {_MAX_FILE >> 20} MB")
    value = parse(data.decode("utf-8"))
    if isinstance(value, dict) and "fields" not in value:
        if _KEY not in value:
            raise BadField(_KEY, "is missing; transformers 5.13 and newer write it")
        return value[_KEY]
    return value
