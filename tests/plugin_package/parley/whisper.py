"""Whisper: `((psst {"name": …, "arguments": …} psst))`."""

from toolspeak.dialects import JSON, Dialect, Grammar, Wrapper

DIALECT = Dialect("whisper", Grammar((Wrapper(("((psst",), ("psst))",), (JSON,)),)), rescues=True)
