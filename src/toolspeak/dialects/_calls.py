"""Calls inside a JSON value, under every key that models have been seen to use.

{"name": …, "arguments": …}   {"tool": …, "args": …}   {"function": {"name": …, "arguments": …}}
{"tool_calls": [ … ]}         {"get_weather": { … }}   [ … ]
"""

from collections.abc import Mapping
from typing import Final

from toolspeak.dialects._attempt import Mark, Scope
from toolspeak.errors import BadJson
from toolspeak.ir.complaint import Problem
from toolspeak.ir.fix import Fix
from toolspeak.ir.json import Json, JsonObject
from toolspeak.text.strict import parse
from toolspeak.toolset.check import Attempt, is_schema

NAME_KEYS: Final = ("name", "tool_name", "tool", "function", "action", "recipient", "function_name")
ARGUMENT_KEYS: Final = ("arguments", "parameters", "params", "args", "input", "action_input", "tool_input")
ID_KEYS: Final = ("id", "tool_call_id", "call_id")
ENVELOPE_KEYS: Final = ("tool_calls", "tools", "tool_call", "function_call", "calls", "command")
CALL_KEYS: Final = frozenset(
    {*NAME_KEYS, *ARGUMENT_KEYS, *ID_KEYS, *ENVELOPE_KEYS, "type", "index", "thoughts", "thought"}
)
_MAX_ENVELOPES = 3


def attempts_in(value: Json, scope: Scope, depth: int = 0) -> tuple[Attempt, ...] | Mark:
    """Return the calls that a JSON value holds, or TEXT where it is no call and need not be one."""
    if isinstance(value, list):
        return _each(value, scope, depth)
    if not isinstance(value, dict):
        return _wrong_shape(scope)
    inner = _enveloped(value)
    if inner is not None and depth < _MAX_ENVELOPES:
        if inner == [] and scope.no_calls_is_answer:
            return Mark.DEBRIS
        return attempts_in(inner, scope, depth + 1)
    return _single(value, scope)


def _each(items: list[Json], scope: Scope, depth: int) -> tuple[Attempt, ...] | Mark:
    found: list[Attempt] = []
    for item in items:
        attempts = attempts_in(item, scope, depth + 1) if isinstance(item, dict) else Mark.TEXT
        if isinstance(attempts, tuple):
            found.extend(attempts)
        elif not scope.sure:
            return Mark.TEXT
    if len(found) < len(items) or not items:
        misfit = _wrong_shape(scope)
        return (*found, *misfit) if isinstance(misfit, tuple) else Mark.TEXT
    return tuple(found)


def _wrong_shape(scope: Scope) -> tuple[Attempt, ...] | Mark:
    if not scope.sure:
        return Mark.TEXT
    return (Attempt(None, problem=Problem.PARSE_ERROR, detail="a call is an object with a name and arguments"),)


def _enveloped(value: JsonObject) -> Json:
    for key in ENVELOPE_KEYS:
        inner = value.get(key)
        if isinstance(inner, list | dict) and not any(isinstance(value.get(name), str) for name in NAME_KEYS[:3]):
            return inner
    return None


def _single(value: JsonObject, scope: Scope) -> tuple[Attempt, ...] | Mark:
    name, key = name_in(value)
    if name is None:
        return _by_its_key(value, scope)
    function = value.get(key)
    inner = function if isinstance(function, dict) else {}
    native_id = next((str(value[key]) for key in ID_KEYS if isinstance(value.get(key), str)), "")
    found = _arguments({**value, **{k: v for k, v in inner.items() if k in ARGUMENT_KEYS}}, name, scope)
    if found is None or (not scope.sure and (is_schema(found[0]) or _has_foreign_keys(value, found[0]))):
        return Mark.TEXT
    arguments, fixes = found
    fixes = fixes if key == "name" else (Fix("name_key"), *fixes)
    if not name:
        detail = "the call's name is empty"
        return (Attempt(name, problem=Problem.PARSE_ERROR, detail=detail, sure=scope.sure),)
    return (Attempt(name, arguments, native_id=native_id, fixes=fixes, sure=scope.sure),)


def name_in(value: Mapping[str, Json]) -> tuple[str | None, str]:
    """Return the name of the called tool and the key under which it stands."""
    for key in NAME_KEYS:
        named = value.get(key)
        if isinstance(named, str):
            return named, key
        if key == "function" and isinstance(named, dict) and isinstance(named.get("name"), str):
            return str(named["name"]), key
    return None, ""


def _by_its_key(value: JsonObject, scope: Scope) -> tuple[Attempt, ...] | Mark:
    """Read `{"get_weather": {…}}`; a thought may stand beside it."""
    named = [key for key in value if key not in ("thought", "thoughts")]
    if len(named) == 1 and scope.tools.find(named[0]).tool is not None and isinstance(value[named[0]], dict):
        return (Attempt(named[0], value[named[0]], fixes=(Fix("name_as_key"),), sure=scope.sure),)
    if not scope.sure:
        return Mark.TEXT
    return (Attempt(None, problem=Problem.PARSE_ERROR, detail="the call has no name"),)


def _arguments(value: JsonObject, name: str, scope: Scope) -> tuple[Json, tuple[Fix, ...]] | None:
    keys = [key for key in ARGUMENT_KEYS if key in value]
    if "arguments" in keys:
        return _decoded(value["arguments"])
    if len(keys) == 1:
        arguments, fixes = _decoded(value[keys[0]])
        return arguments, (Fix("arguments_key"), *fixes)
    beside = {key: item for key, item in value.items() if key not in {*NAME_KEYS, *ID_KEYS, "type"}}
    if beside and _are_properties(beside, name, scope):
        return beside, (Fix("arguments_beside_name"),)
    # A bare object with a name and nothing that looks like arguments is some other JSON (a package.json, say).
    return ({}, (Fix("no_arguments"),)) if scope.sure else None


def _has_foreign_keys(value: JsonObject, arguments: Json) -> bool:
    """Tell a record of a call (with its output, say) from a call."""
    are_beside = isinstance(arguments, dict) and not any(key in value for key in ARGUMENT_KEYS)
    beside = arguments.keys() if isinstance(arguments, dict) and are_beside else ()
    return not value.keys() <= {*CALL_KEYS, *beside}


def _are_properties(beside: JsonObject, name: str, scope: Scope) -> bool:
    tool = scope.tools.find(name).tool
    return tool is not None and beside.keys() <= scope.tools.properties(tool)


def _decoded(arguments: Json) -> tuple[Json, tuple[Fix, ...]]:
    """Decode arguments that are a JSON string holding an object: exactly one level."""
    if not isinstance(arguments, str):
        return arguments, ()
    try:
        inner = parse(arguments)
    except BadJson:
        return arguments, ()
    return (inner, (Fix("decoded_string"),)) if isinstance(inner, dict) else (arguments, ())
