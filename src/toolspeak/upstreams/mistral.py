"""Mistral's own API. It wants ids of nine letters and digits, and refuses a history with `reasoning_content`."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import IdForm, Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "Mistral",
    "https://api.mistral.ai/v1",
    key_env="MISTRAL_API_KEY",
    quirks=Quirks(ids=IdForm.MISTRAL, reasoning_history=False, constraint=CONSTRAINTS["mistral"]),
)
