"""OpenRouter."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "OpenRouter",
    "https://openrouter.ai/api/v1",
    key_env="OPENROUTER_API_KEY",
    quirks=Quirks(constraint=CONSTRAINTS["openrouter"]),
)
