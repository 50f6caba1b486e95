"""Together AI."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "Together AI",
    "https://api.together.ai/v1",
    key_env="TOGETHER_API_KEY",
    quirks=Quirks(constraint=CONSTRAINTS["together"]),
)
