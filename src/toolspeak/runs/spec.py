"""What a run is asked to do, as JSON: whoever has it can work on it, in another process, after a crash."""

from msgspec import Struct

from toolspeak.engine.agent import ROUNDS
from toolspeak.ir.json import JsonObject
from toolspeak.runtime.tools.approval import Approval
from toolspeak.runtime.tools.toolbox import OUTPUT


class Spec(Struct, frozen=True, omit_defaults=True):
    """A run's beginning. What is not said is left to the configuration of whoever works on it."""

    task: str
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ("files", "shell", "final_output")
    """Names of built-in tools, `mcp:NAME` for a server of the configuration, `module:attribute` for functions."""
    folder: str = ""
    """The one folder that the run's tools may change; empty: a fresh one of its own."""
    approval: Approval = Approval.ASK
    rounds: int = ROUNDS
    output: int = OUTPUT
    history: tuple[JsonObject, ...] = ()
    """Messages that came before, each as `engine.journal.compact_json` writes it."""
    settings: JsonObject = {}
    """What is said about tool calling (`engine.plan.Settings`), by name."""
    tenant: str = ""
