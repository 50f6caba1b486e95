"""A constraint in the words of the servers that speak this wire: each has added its own to OpenAI's (CHK-8)."""

from typing import Final

from toolspeak.ir.constraint import Constraint, ConstraintForm, TextGrammar, TextSchema, TextTags
from toolspeak.ir.json import JsonObject
from toolspeak.ir.request import Request
from toolspeak.wires.openai_chat.words import NAME

_STRICT: Final = (ConstraintForm.STRICT, ConstraintForm.VLLM, ConstraintForm.SGLANG)
"""Those that take `strict`, and keep to it."""
_TAGS: Final = (ConstraintForm.VLLM, ConstraintForm.SGLANG)


def write_constraint(request: Request, form: ConstraintForm) -> tuple[JsonObject, tuple[str, ...]]:
    """Write it; the second value says what this upstream has no word for. It never stands beside tools."""
    constraint = request.constraint
    if constraint is None:
        return {}, ()
    body = {} if request.tools or request.extra.get(NAME, {}).get("tools") else _body(constraint, form)
    return body, () if body else (f"constraint: {type(constraint).__name__}",)


def _body(constraint: Constraint, form: ConstraintForm) -> JsonObject:
    match constraint:
        case TextSchema(schema, name) if form is not ConstraintForm.NONE:
            said: JsonObject = {"name": name, "schema": schema, **({"strict": True} if form in _STRICT else {})}
            return {"response_format": {"type": "json_schema", "json_schema": said}}
        case TextTags(tags) if form in _TAGS:
            return {"response_format": {"type": "structural_tag", "format": tags}}
        case TextGrammar(gbnf) if form is ConstraintForm.LLAMACPP:
            return {"grammar": gbnf}
        case TextGrammar(gbnf) if form is ConstraintForm.VLLM:
            return {"structured_outputs": {"grammar": gbnf}}
        case TextGrammar(gbnf) if form is ConstraintForm.SGLANG:
            return {"ebnf": gbnf}
        case TextGrammar() | TextTags() | TextSchema():
            return {}
