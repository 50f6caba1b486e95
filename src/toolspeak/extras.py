"""The optional packages of toolspeak, and the one message that a user gets when they are missing."""

from importlib.util import find_spec
from typing import Final

from toolspeak.errors import MissingExtra

EXTRAS: Final = {
    "runs": ("dbos", "sqlalchemy"),
    "mcp": ("mcp",),
    "redis": ("redis",),
    "jwt": ("jwt", "cryptography"),
    "sandlock": ("sandlock",),
    "llama": ("xllamacpp",),
    "hub": ("huggingface_hub",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}
"""Each extra, and the modules without which it does not count as installed."""


def has_extra(extra: str) -> bool:
    """Return whether an extra is installed."""
    try:
        return all(find_spec(module) is not None for module in EXTRAS[extra])
    except ModuleNotFoundError:  # the package that contains the module is missing
        return False


def require_extra(extra: str, purpose: str) -> None:
    """Raise `MissingExtra` unless an extra is installed. `purpose` is what needs it, such as `redis.url`."""
    if not has_extra(extra):
        raise MissingExtra(purpose, extra)
