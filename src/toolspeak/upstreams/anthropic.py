"""Anthropic. Every model that it serves has tools."""

from toolspeak.facts.model import Support
from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Auth, Preset

UPSTREAM = Preset(
    "Anthropic",
    "https://api.anthropic.com/v1",
    wire="anthropic",
    auth=Auth.X_API_KEY,
    key_env="ANTHROPIC_API_KEY",
    headers=(("anthropic-version", "2023-06-01"),),
    tools=Support.NATIVE,
    quirks=Quirks(constraint=CONSTRAINTS["anthropic"]),
)
