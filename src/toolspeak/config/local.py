"""Finds the upstream if none is configured: a model server on this machine."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from toolspeak.config.environment import local_places
from toolspeak.config.options import Options
from toolspeak.config.overlay import with_options
from toolspeak.config.shape import Config
from toolspeak.errors import BadConfig
from toolspeak.local.detection import LocalServer, find_local
from toolspeak.runtime.http_transport import HttpTransport


def with_local(config: Config, options: Options, environ: Mapping[str, str]) -> Config:
    """Return the configuration with the local server that was found. Raises `BadConfig` if there is none.

    It runs an event loop of its own, so it must not be called inside one.
    """
    places = local_places(environ)
    found = asyncio.run(_found(places))
    if found is None:
        raise BadConfig(
            f"no upstream is configured, and no model server answers at {', '.join(places)}: "
            "pass --upstream URL or --preset NAME, or start Ollama, llama.cpp, LM Studio, vLLM or SGLang, "
            "or run a model here: toolspeak up MODEL.gguf"
        )
    return with_options(config, replace(options, upstream=found.url, preset=found.preset), environ)


async def _found(places: list[str]) -> LocalServer | None:
    transport = HttpTransport()
    try:
        return await find_local(transport, places)
    finally:
        await transport.close()
