"""DeepSeek. It wants the reasoning of earlier rounds back."""

from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("DeepSeek", "https://api.deepseek.com/v1", key_env="DEEPSEEK_API_KEY")
