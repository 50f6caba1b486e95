"""A constraint where the wire has one word only: the schema of the answer (CHK-8)."""

from dataclasses import replace

from toolspeak.ir.constraint import TextSchema
from toolspeak.ir.request import Request


def with_schema(request: Request) -> tuple[Request, tuple[str, ...]]:
    """Return the request with its constraint as the schema of its answer, and what cannot be said so."""
    constraint = request.constraint
    if constraint is None:
        return request, ()
    if not isinstance(constraint, TextSchema) or request.tools:
        return request, (f"constraint: {type(constraint).__name__}",)
    return replace(request, output_schema=constraint.schema), ()
