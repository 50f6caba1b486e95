"""A fence with the info string `json action` around `{"tool": …, "parameters": …}` (D40)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

FENCE = Wrapper(("json action",), ("```",), (JSON,), fence=True)

DIALECT = Dialect("json_action", Grammar((FENCE,)) | RECOVERY)
