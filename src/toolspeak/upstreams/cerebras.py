"""Cerebras. It refuses a history with `reasoning_content`."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "Cerebras",
    "https://api.cerebras.ai/v1",
    key_env="CEREBRAS_API_KEY",
    quirks=Quirks(reasoning_history=False, constraint=CONSTRAINTS["cerebras"]),
)
