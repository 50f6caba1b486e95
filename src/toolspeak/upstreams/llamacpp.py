"""The server of llama.cpp (`llama-server`)."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "llama.cpp", "http://127.0.0.1:8080/v1", local=True, quirks=Quirks(constraint=CONSTRAINTS["llamacpp"])
)
