"""Whisper: `((psst {"name": …, "arguments": …} psst))`."""

from toolspeak.dialects import JSON, Dialect, MarkupGrammar, Wrapper

DIALECT = Dialect("whisper", MarkupGrammar((Wrapper(("((psst",), ("psst))",), (JSON,)),)), rescues=True)
