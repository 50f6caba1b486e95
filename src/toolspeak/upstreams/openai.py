"""OpenAI."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "OpenAI", "https://api.openai.com/v1", key_env="OPENAI_API_KEY", quirks=Quirks(constraint=CONSTRAINTS["openai"])
)
