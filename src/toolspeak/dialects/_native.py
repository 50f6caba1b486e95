"""A call that came natively, judged like one that was read: its arguments are text that a model wrote."""

from toolspeak.dialects._attempt import Attempt, Scope
from toolspeak.dialects._tagged import XML
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Problem
from toolspeak.text.repair import repair
from toolspeak.toolset.toolset import ToolSet


def native_attempt(name: str, arguments: str, tools: ToolSet, native_id: str = "") -> Attempt:
    """Read the arguments of a native call; servers have been seen to leave a dialect's markup in them."""
    if not arguments.strip():
        return Attempt(name, {}, native_id=native_id)
    if arguments.lstrip().startswith("<parameter"):
        return _from_tags(name, arguments, tools, native_id)
    try:
        repaired = repair(arguments, closed=False)
    except BadJson as error:
        detail = f"the arguments are not JSON: {error}"
        return Attempt(name, problem=Problem.PARSE_ERROR, detail=detail, native_id=native_id)
    source = None if repaired.fixes else arguments
    return Attempt(name, repaired.value, source=source, native_id=native_id, fixes=repaired.fixes)


def _from_tags(name: str, arguments: str, tools: ToolSet, native_id: str) -> Attempt:
    form = XML.new(Scope(tools, stop=("</",)))
    _, outcome = form.feed(arguments.strip(), 0, final=True)
    if isinstance(outcome, tuple) and outcome[0].texts is not None:
        return Attempt(name, texts=outcome[0].texts, native_id=native_id)
    return Attempt(name, problem=Problem.PARSE_ERROR, detail="the arguments are not JSON", native_id=native_id)
