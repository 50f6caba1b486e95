"""SGLang."""

from toolspeak.facts.servers import CONSTRAINTS
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("SGLang", "http://127.0.0.1:30000/v1", local=True, quirks=Quirks(constraint=CONSTRAINTS["sglang"]))
