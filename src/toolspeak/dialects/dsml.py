"""DeepSeek V3.2 and V4: `<｜DSML｜invoke name="f"><｜DSML｜parameter name="k" string="true">` (D22)."""

from itertools import product

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import RESULT_TAGS, Grammar, Where, Wrapper
from toolspeak.dialects._shared import RECOVERY
from toolspeak.dialects._tagged import XML

_BARS = ("｜", "‖", "|", "｜｜", "||")
_BLANKS = ("", " ")
_WRAPPERS = ("tool_calls", "function_calls", "toolcalls", "calls")


def _spelled(name: str, *, closes: bool = False, end: str = ">") -> tuple[str, ...]:
    slash = "/" if closes else ""
    return tuple(f"<{slash}{bar}DSML{bar}{blank}{name}{end}" for bar, blank in product(_BARS, _BLANKS))


_OPENERS = tuple(tag for name in _WRAPPERS for tag in _spelled(name))
_CLOSERS = tuple(tag for name in _WRAPPERS for tag in _spelled(name, closes=True))
CALLS = Wrapper(_OPENERS, _CLOSERS, (XML,))
BARE = Wrapper(_spelled("invoke", end=" "), _CLOSERS, (XML,), Where.LINE, sure=False, keep_opener=True)

DIALECT = Dialect(
    "dsml", Grammar((CALLS, BARE), results=(*RESULT_TAGS, *_spelled("function_results"))) | RECOVERY, rescues=True
)
