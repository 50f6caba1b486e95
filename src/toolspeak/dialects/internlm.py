"""InternLM2, Intern-S1: `<|action_start|> <|plugin|>` JSON `<|action_end|>` (D09)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._json_form import JSON
from toolspeak.dialects._shared import RECOVERY

_CALL = Wrapper(("<|action_start|>", "<|plugin|>"), ("<|action_end|>",), (JSON,))

DIALECT = Dialect("internlm", Grammar((_CALL,)) | RECOVERY, rescues=True)
