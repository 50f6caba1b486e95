"""Mistral: `[TOOL_CALLS]f[ARGS]{…}` for each; before v11 `[TOOL_CALLS] [{"name": …, "arguments": …}]` (D11, 12)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._named_json import NamedJson, by_pattern
from toolspeak.dialects._shared import RECOVERY

_NAMED = NamedJson(
    (by_pattern(r"\s*(?P<name>[\w.\-/:]{1,128})\s*(?:\[CALL_ID\](?P<id>\w{0,64})\s*)?(?:\[ARGS\])?\s*"),)
)
CALLS = Wrapper(("[TOOL_CALLS]", "[TOOL_CALLS"), ("[/TOOL_CALLS]", "</s>"), (JSON, _NAMED))

DIALECT = Dialect("mistral", Grammar((CALLS,), results=(*RESULT_TAGS, "[TOOL_RESULTS]")) | RECOVERY)
