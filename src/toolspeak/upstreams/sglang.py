"""SGLang."""

from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.quirks import Quirks
from toolspeak.upstreams._preset import Preset

UPSTREAM = Preset("SGLang", "http://127.0.0.1:30000/v1", local=True, quirks=Quirks(constraint=ConstraintForm.SGLANG))
