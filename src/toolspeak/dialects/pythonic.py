"""Python calls: the message is `[f(a="x", n=2), g()]` (Llama 3.2, ToolACE, watt, CoALM, Gemma 3) (D31)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shared import BARE_PYTHON, RECOVERY

DIALECT = Dialect("pythonic", Grammar((BARE_PYTHON,)) | RECOVERY)
