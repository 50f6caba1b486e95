"""What a request or a model asks of its reader."""

from dataclasses import dataclass

from toolspeak.ir.tool import AUTO, ToolChoice


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read one turn."""

    choice: ToolChoice = AUTO
    stop: tuple[str, ...] = ()
    """Stop sequences that were sent upstream; the text ends before them."""
    calls_in_reasoning: bool = False
    """Take calls out of closed reasoning too: some models never leave it."""
    starts_in_reasoning: bool = False
    """The prompt's template has opened the reasoning already."""
    max_calls: int = 128
    max_block: int = 8 * 1024 * 1024
    """Characters that one block may hold."""


DEFAULTS = ReadOptions()
