"""Solar Open: `<|tool_call:begin|>id<|tool_call:name|>f<|tool_call:args|>{…}<|tool_call:end|>`, then `<|calls|>`."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar, Wrapper
from toolspeak.dialects._named_json import NamedJson, by_pattern
from toolspeak.dialects._shared import RECOVERY

_HEADER = r"\s*(?P<id>[^\s<]{0,64})\s*<\|tool_call:name\|>\s*(?P<name>[^\s<]{1,128})\s*<\|tool_call:args\|>\s*"
_NAMED = NamedJson((by_pattern(_HEADER),), first="<")
_CALL = Wrapper(("<|tool_call:begin|>",), ("<|tool_call:end|>",), (_NAMED,), single=True)

DIALECT = Dialect("solar", Grammar((_CALL,), closers=("<|calls|>",)) | RECOVERY, rescues=True)
