"""Defines the forms of string settings: their checks, names on the reference page and patterns in the JSON Schema."""

import re
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolspeak import dialects, upstreams, wires
from toolspeak.config.addresses import (
    collector_problem,
    database_problem,
    host_name_problem,
    host_problem,
    jwks_url_problem,
    origin_problem,
    proxy_problem,
    redis_problem,
    url_problem,
)
from toolspeak.config.problems import not_one_of
from toolspeak.config.shape import JWT_ALGORITHMS
from toolspeak.config.table import Check
from toolspeak.config.templates import template_problem
from toolspeak.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a string setting, such as a URL or a path."""

    title: str
    """The name on the reference page."""
    check: Check | None = None
    pattern: str = ""
    """The pattern in the JSON Schema; empty if no pattern can express the form."""


def _one_of(names: Callable[[], Sequence[str]]) -> Check:
    return lambda value: None if value in names() else not_one_of(value, names())


def _dialect_problem(name: str) -> str | None:
    """Load only this dialect: listing all of them takes long, and a file may have many models."""
    try:
        dialects.load(name)
    except UnknownName:
        return not_one_of(name, dialects.names())
    return None


def _matching(pattern: str, problem: str) -> Check:
    compiled = re.compile(pattern)
    return lambda value: None if compiled.fullmatch(value) else f"{value!r} {problem}"


def _folder_problem(folder: str) -> str | None:
    return None if Path(folder).is_absolute() else f"{folder!r} is not an absolute path"


def _file_problem(path: str) -> str | None:
    if not path.startswith(("/", "~/")):
        return f"{path!r} is not an absolute path, nor one that begins with ~/"
    return None if Path(path).expanduser().is_file() else f"there is no file {path!r}"


def _authorities_problem(path: str) -> str | None:
    if problem := _file_problem(path):
        return problem
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(Path(path).expanduser())
    except OSError as error:  # ssl.SSLError is one
        return f"{path!r} has no certificates in PEM form ({error.strerror or type(error).__name__})"
    return None


def _digest_problem(digest: str) -> str | None:
    # The value is not shown: it may be the key itself, written in the wrong field.
    return None if re.fullmatch(_DIGEST, digest) else "is not the SHA-256 of a key: 64 hexadecimal digits"


_DIGEST: Final = r"[0-9A-Fa-f]{64}"
_TENANT: Final = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
_VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_HOME_PATH: Final = r"(?:/|~/).*"

FORMS: Final = {
    "url": Form("URL", url_problem, r"https?://[^@?#]+"),
    "collector": Form("URL", collector_problem, r"https?://[^@?#]+"),
    "jwks_url": Form("URL", jwks_url_problem, r"https?://[^@?#]+"),
    "jwt_algorithm": Form(
        "one of " + ", ".join(f"`{each}`" for each in JWT_ALGORITHMS),
        _one_of(lambda: JWT_ALGORITHMS),
        "|".join(JWT_ALGORITHMS),
    ),
    "host": Form("address", host_problem),
    "host_name": Form("host name", host_name_problem),
    "origin": Form("origin", origin_problem, r"[A-Za-z][A-Za-z0-9+.-]*://.+"),
    "database": Form("URL", database_problem, r"(?:postgres(?:ql)?|sqlite)://.+"),
    "redis": Form("URL", redis_problem, r"(?:rediss?|unix)://.+"),
    "proxy": Form("URL or `none`", proxy_problem, r"none|https?://.+"),
    "file": Form("absolute path, or one that begins with `~/`", _file_problem, _HOME_PATH),
    "ca_file": Form("absolute path, or one that begins with `~/`", _authorities_problem, _HOME_PATH),
    "template": Form("absolute path, or one that begins with `~/`", template_problem, _HOME_PATH),
    "dialect": Form("name of a [dialect](dialects.md)", _dialect_problem),
    "wire": Form("name of a [wire](wires.md)", _one_of(wires.names)),
    "preset": Form("name of a [preset](upstreams.md)", _one_of(upstreams.names)),
    "folder": Form("absolute path", _folder_problem),
    "path": Form("absolute path", _matching(r"/.*", "is not an absolute path"), r"/.*"),
    "home_path": Form(
        "absolute path, or one that begins with `~/`",
        _matching(_HOME_PATH, "is not an absolute path, nor one that begins with ~/"),
        _HOME_PATH,
    ),
    "variable": Form(
        "name of an environment variable", _matching(_VARIABLE, "is not the name of a variable"), _VARIABLE
    ),
    "tenant": Form("name", _matching(_TENANT, "is not 1 to 64 letters, digits and . _ @ -"), _TENANT),
    "digest": Form("SHA-256 in hexadecimal digits", _digest_problem, _DIGEST),
}
