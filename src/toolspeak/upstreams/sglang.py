"""SGLang."""

from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("SGLang", "http://127.0.0.1:30000/v1", local=True)
