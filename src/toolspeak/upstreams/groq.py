"""Groq. It refuses a history with `reasoning_content`."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "Groq",
    "https://api.groq.com/openai/v1",
    key_env="GROQ_API_KEY",
    quirks=Quirks(reasoning_history=False, constraint=CONSTRAINTS["groq"]),
)
