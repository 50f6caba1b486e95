"""Reads the arguments of a native call, which are text that a model wrote, as an attempt.

One importer: the package exports the function; engine and bench use it from there.
"""

from toolspeak.dialects.core.form import Scope
from toolspeak.dialects.core.tag_form import XML
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Problem
from toolspeak.ir.message import Call
from toolspeak.text.repair import repair
from toolspeak.toolset.check import Attempt
from toolspeak.toolset.toolset import ToolSet


def native_attempt(call: Call, tools: ToolSet) -> Attempt:
    """Read the arguments of a native call. Some servers leave a dialect's markup in them, or cut them."""
    name, arguments, native_id = call.name, call.arguments, call.native_id
    if not arguments.strip():
        return Attempt(name, {}, native_id=native_id)
    if arguments.lstrip().startswith("<parameter"):
        return _from_tags(call, tools)
    try:
        repaired = repair(arguments, closed=False)
    except BadJson as error:
        detail = f"the arguments are not JSON: {error}"
        return Attempt(name, problem=Problem.PARSE_ERROR, detail=detail, native_id=native_id)
    source = None if repaired.fixes else arguments
    return Attempt(name, repaired.value, source=source, native_id=native_id, fixes=repaired.fixes)


def _from_tags(call: Call, tools: ToolSet) -> Attempt:
    form = XML.new(Scope(tools, stop=("</",)))
    _, outcome = form.feed(call.arguments.strip(), 0, final=True)
    if isinstance(outcome, tuple) and outcome[0].texts is not None:
        return Attempt(call.name, texts=outcome[0].texts, native_id=call.native_id)
    detail = "the arguments are not JSON"
    return Attempt(call.name, problem=Problem.PARSE_ERROR, detail=detail, native_id=call.native_id)
