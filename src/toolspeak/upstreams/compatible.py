"""Any other server that imitates OpenAI's chat completions: its URL must be said."""

from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("OpenAI-compatible")
