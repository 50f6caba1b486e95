"""The configuration: reads file, environment and command line into one frozen value.

Belongs here: reading and checking settings. Does not: acting on them. Read first: `sections.py` (the tables of the
file) and `shape.py` (the result), then `file.py`. A setting is declared once, as a field of one of these classes;
`declared.py` reads it, `schema.py` describes it.

    environ = current()
    config = load(path, environ, options)
    check_public(config)
"""

from toolspeak.config.addresses import check_public
from toolspeak.config.environment import current, local_places
from toolspeak.config.file import load
from toolspeak.config.options import Options
from toolspeak.config.overlay import doubts, with_options
from toolspeak.config.shape import Config, Key, Limits, Model, Server, Upstream

__all__ = [
    "Config",
    "Key",
    "Limits",
    "Model",
    "Options",
    "Server",
    "Upstream",
    "check_public",
    "current",
    "doubts",
    "load",
    "local_places",
    "with_options",
]
