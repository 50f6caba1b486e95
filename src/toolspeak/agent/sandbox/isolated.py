"""How a program of this package is started in an interpreter of its own that loads nothing else of toolspeak.

The packages are stand-ins that only have a path, since the real `toolspeak` loads half a second's worth of modules.
"""

import sys
from pathlib import Path
from typing import Final

_START: Final = """
import sys
from types import ModuleType
name, path = "", sys.argv[1]
for part in ("toolspeak", "agent", "sandbox"):
    name, path = f"{name}.{part}".strip("."), f"{path}/{part}"
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [path]
from toolspeak.agent.sandbox.guard import main
main()
"""


def guard_words() -> tuple[str, ...]:
    """Return the words that start the guard."""
    return (sys.executable, "-I", "-S", "-c", _START, str(Path(__file__).parents[3]))
