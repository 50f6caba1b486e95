"""The server of LM Studio."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "LM Studio", "http://127.0.0.1:1234/v1", local=True, quirks=Quirks(constraint=CONSTRAINTS["lmstudio"])
)
