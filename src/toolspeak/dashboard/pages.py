"""Renders the templates of the dashboard, and finds its static files.

Every value that a template shows is escaped, its control characters are made visible, and a missing one is an error.
No page has an inline script, an inline style or an address of another host, so that a strict Content-Security-Policy
holds on all of them.
"""

from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolspeak.dashboard.formats import FILTERS
from toolspeak.text.display import visible

_FOLDER: Final = Path(__file__).parent
_STATIC: Final = {
    "toolspeak.css": b"text/css; charset=utf-8",
    "toolspeak.js": b"text/javascript; charset=utf-8",
    "htmx.min.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}
"""The files that are served, with their media types. No other file can be named."""


def render(template: str, **values: object) -> bytes:
    """Return a page, or a part of one, in UTF-8."""
    text = _environment().get_template(template).render(**values)
    # JSON can carry lone surrogates, which UTF-8 cannot.
    return text.encode("utf-8", "replace")


def static_file(name: str) -> tuple[bytes, bytes] | None:
    """Return the media type and the content of a static file; None if there is none of that name."""
    media_type = _STATIC.get(name)
    return None if media_type is None else (media_type, _content(name))


def static_url(name: str) -> str:
    """Return the address of a static file. It changes with the content, so that browsers may keep the file."""
    return f"/ui/static/{name}?v={sha256(_content(name)).hexdigest()[:12]}"


@lru_cache(maxsize=len(_STATIC))
def _content(name: str) -> bytes:
    return (_FOLDER / "static" / name).read_bytes()


def _shown(value: object) -> object:
    """Return a value without invisible characters: text that turns its direction or hides letters must not deceive."""
    return visible(value) if type(value) is str else value


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_shown,
    )
    environment.filters.update(FILTERS | {"static_url": static_url})
    return environment
