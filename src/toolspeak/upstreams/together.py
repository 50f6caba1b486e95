"""Together AI."""

from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("Together AI", "https://api.together.ai/v1", key_env="TOGETHER_API_KEY")
