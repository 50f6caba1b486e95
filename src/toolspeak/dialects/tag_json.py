"""Tags that no model was trained on but many write: `<toolcall>`, `<tool_use>`, `<tool>` around JSON or elements."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import BARE_INVOKE, RECOVERY
from toolspeak.dialects._tagged import ELEMENTS, XML

_NAMES = ("toolcall", "tool-call", "tool_use", "tool-use", "tool", "function_call")
TAGS = Wrapper(tuple(f"<{name}>" for name in _NAMES), tuple(f"</{name}>" for name in _NAMES), (JSON, ELEMENTS, XML))

DIALECT = Dialect("tag_json", Grammar((TAGS, BARE_INVOKE)) | RECOVERY, rescues=True)
