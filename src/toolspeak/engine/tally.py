"""How calls came from an upstream that was sent the tools: what a turn says about it, for later requests (CAP-4)."""

from dataclasses import dataclass

from toolspeak.engine.reading import Reading
from toolspeak.engine.trouble import Kind, Trouble


@dataclass(slots=True)
class Tally:
    """Counted over all native answers of a turn."""

    native: int = 0
    """Calls that came as calls."""
    rescued: int = 0
    """Calls that leaked as text, or in an error."""
    empty: int = 0
    """Answers in which there was nothing at all."""

    def count(self, reading: Reading, trouble: Trouble | None) -> None:
        """Take a native answer that has ended."""
        native = sum(complaint is None for _, complaint in reading.attempted)
        self.native += native
        self.rescued += max(0, reading.calls - native)
        self.empty += trouble is not None and trouble.kind is Kind.EMPTY
