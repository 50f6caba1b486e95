"""What the gateway is told: a file, the environment, the command line, in one frozen value.

Belongs here: reading and checking what people write. Does not: what is done with it.
Read first: `shape.py` (what can be said), then `file.py`.

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
