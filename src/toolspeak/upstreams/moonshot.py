"""Moonshot AI. Kimi goes astray when its calls come back with ids that are not its own."""

from toolspeak.ir.quirks import IdForm, Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset(
    "Moonshot AI", "https://api.moonshot.ai/v1", key_env="MOONSHOT_API_KEY", quirks=Quirks(ids=IdForm.KIMI)
)
