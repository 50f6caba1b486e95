"""The arguments of both transports, and the configuration that they lead to."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from toolspeak.client.models import ModelSource
from toolspeak.config.shape import Config
from toolspeak.engine.settings import NOTHING_SAID, Settings
from toolspeak.facts.strategy import NO_OVERRIDES, Capability, Overrides
from toolspeak.runtime.transport import Timeouts


class TransportOptions(TypedDict, total=False):
    """The keyword arguments of `Transport` and `AsyncTransport`; they mean the same as those of `Client`."""

    key: str
    """The upstream's key. Without it, the SDK's own key is sent, if the SDK's base URL is the upstream's."""
    wire: str
    """The upstream's protocol."""
    settings: Settings
    """How tools are handled: mode, dialect, strategy."""
    timeouts: Timeouts | None
    """Timeouts of requests to the upstream."""
    config: Config | str | Path | None
    """A configuration, or the path of its file."""
    capabilities: Overrides | Mapping[str, Capability | str]
    """What providers and models can do: `{"ollama:llama3.2*": "openai"}`."""


def load_source(upstream: str, options: TransportOptions) -> Config:
    """Return the configuration of a transport. Raises `BadConfig`.

    It is read when the transport is made, so that a mistake is raised there: SDKs retry what a request raises, and then
    say that the connection failed. Without an upstream a search for a local server takes up to a second; it has an
    event loop of its own and the caller may run one too, hence the thread.
    """
    config = options.get("config")
    said = options.get("capabilities", NO_OVERRIDES)
    source = ModelSource(
        upstream,
        options.get("wire", ""),
        options.get("key", ""),
        Path(config) if isinstance(config, str) else config,
        options.get("timeouts"),
        said if isinstance(said, Overrides) else Overrides.of(said),
    )
    with ThreadPoolExecutor(1, "toolspeak-config") as thread:
        loaded = thread.submit(source.load_config).result()
    return replace(loaded, settings=options.get("settings", NOTHING_SAID).over(loaded.settings))
