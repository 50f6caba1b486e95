"""Ollama, spoken to in its own protocol: that one tells more than the one that it imitates."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "Ollama", "http://127.0.0.1:11434", wire="ollama", local=True, quirks=Quirks(constraint=CONSTRAINTS["ollama"])
)
