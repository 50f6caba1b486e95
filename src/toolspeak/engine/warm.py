"""What is built when it is first used, built before: the first request must not pay for it."""

from toolspeak.dialects import load
from toolspeak.engine.plan import ANY_DIALECT
from toolspeak.engine.refusal import RefusalWatch
from toolspeak.facts.families import family_facts
from toolspeak.facts.model import DEFAULT_DIALECT
from toolspeak.ir.tool import Tool

_TOOL = Tool("probe", parameters={"type": "object"})


def warm() -> None:
    """Compile the tables of the readers, of refusals and of model families."""
    for name in (DEFAULT_DIALECT, ANY_DIALECT):
        dialect = load(name)
        dialect.reader([_TOOL]).feed("Hello.")
        dialect.marks.count("Hello.")
    RefusalWatch().feed("Hello.")
    family_facts("a stranger")
