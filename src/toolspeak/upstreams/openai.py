"""OpenAI."""

from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("OpenAI", "https://api.openai.com/v1", key_env="OPENAI_API_KEY")
