"""GLM 4.5 to 5: `<tool_call>f<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>` (D24)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar
from toolspeak.dialects._shared import RECOVERY, TOOL_CALL

DIALECT = Dialect("glm", Grammar((TOOL_CALL,), results=(*RESULT_TAGS, "<|observation|>")) | RECOVERY)
