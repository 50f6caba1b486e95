r"""Arguments as this wire has them: a JSON object, in one line.

    {"html": "\u003cbr\u003e"}  ->  {"html": "<br>"}

Ollama escapes what HTML and JavaScript might take amiss. The next model that sees the call would take the escapes for
its own words, so they are undone; all else stays to the byte.
"""

import re

from toolspeak.wires._arguments import object_text
from toolspeak.wires._body import one_line

_ESCAPE = re.compile(r"\\(?:u(003[ce]|0026|0085|2028|2029)|.)", re.DOTALL)


def object_bytes(arguments: str) -> bytes:
    """Write the arguments as they came; line ends can only stand between their tokens, where a space is the same."""
    return one_line(object_text(arguments).replace("\n", " ").replace("\r", " ").encode())


def unescaped(text: str) -> str:
    """Read JSON text without the escapes that nobody needs."""
    return _ESCAPE.sub(_character, text) if "\\u" in text else text


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[0]
