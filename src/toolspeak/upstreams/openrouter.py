"""OpenRouter."""

from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("OpenRouter", "https://openrouter.ai/api/v1", key_env="OPENROUTER_API_KEY")
