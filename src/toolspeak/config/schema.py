"""Generates the JSON Schema of the file, for editors and for checks before a deployment.

It comes from the declarations and is as strict as they are: unknown names are errors. Only `toolspeak` itself can check
conditions across several settings, such as a default model that no upstream has.
"""

from typing import Any, Final, TypeAlias

from toolspeak.config.declared import Declared, declared_in
from toolspeak.config.forms import FORMS
from toolspeak.config.sections import ConfigFile

Schema: TypeAlias = dict[str, Any]
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string"}


def config_schema() -> Schema:
    """Return the schema of the whole file."""
    return {"$schema": _DRAFT, "title": "toolspeak.toml", **_table(ConfigFile)}


def _table(kind: Any) -> Schema:  # noqa: ANN401 # a dataclass
    properties: Schema = {}
    required: list[str] = []
    for each in declared_in(kind):
        if each.about.is_inline:
            properties |= _table(each.kind)["properties"]
        else:
            properties[each.name] = _setting(each)
            required += [each.name] if each.about.is_required else []
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _setting(each: Declared) -> Schema:
    described: Schema = {"description": _description(each)}
    inner = _table(each.element) if each.is_table else _value(each)
    if each.is_array:
        return {"type": "array", "items": inner, **described, **_default(each)}
    if each.is_mapping:
        return {"type": "object", "additionalProperties": inner, **described}
    return {**inner, **described, **_default(each)}


def _value(each: Declared) -> Schema:
    if each.choices:
        return {"type": "string", "enum": each.choices}
    kind: Schema = {"type": _TYPES[each.element]}
    about = each.about
    bounds = {"minimum": about.least, "maximum": about.most, "exclusiveMinimum": about.above}
    kind |= {name: _number(bound) for name, bound in bounds.items() if bound is not None}
    if each.element is str:
        kind["minLength"] = 1
        if about.form and FORMS[about.form].pattern:
            kind["pattern"] = f"^(?:{FORMS[about.form].pattern})$"
    return kind


def _number(bound: float) -> int | float:
    return int(bound) if float(bound).is_integer() else bound


def _default(each: Declared) -> Schema:
    """Return the default as a keyword of the schema; empty if it is described in words, or there is none."""
    if each.otherwise or each.about.is_required or each.is_table:
        return {}
    return {"default": list(each.default) if each.is_array else each.default}


def _description(each: Declared) -> str:
    about = each.about
    unit = f" Unit: {about.unit}." if about.unit else ""
    otherwise = f" Default: {each.otherwise}." if each.otherwise else ""
    return each.help + unit + otherwise
