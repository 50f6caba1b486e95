"""MiniCPM5: `<function name="f"><param name="k">v</param></function>`, values perhaps in CDATA (D28)."""

from toolspeak.dialects._dialect import Dialect
from toolspeak.dialects._grammar import Grammar
from toolspeak.dialects._shared import FUNCTION, RECOVERY

DIALECT = Dialect("minicpm", Grammar((FUNCTION,)) | RECOVERY)
