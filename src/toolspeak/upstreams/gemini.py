"""Google's Gemini API. It serves Gemma too, some of which has no tools, so nothing is known for all of its models."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Auth, Preset

UPSTREAM = Preset(
    "Gemini",
    "https://generativelanguage.googleapis.com/v1beta",
    wire="gemini",
    auth=Auth.X_GOOG_API_KEY,
    key_env="GEMINI_API_KEY",
    quirks=Quirks(constraint=CONSTRAINTS["gemini"]),
)
