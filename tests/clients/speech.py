"""How the scripted model writes a call in plain text: the forms of a few dialects, made by hand."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Arguments: TypeAlias = Mapping[str, Any]


def _object(name: str, arguments: Arguments, keys: tuple[str, str] = ("name", "arguments")) -> str:
    return json.dumps({keys[0]: name, keys[1]: arguments}, ensure_ascii=False)


def _fenced(name: str, arguments: Arguments) -> str:
    return f"```tool_call\n{_object(name, arguments)}\n```"


def _hermes(name: str, arguments: Arguments) -> str:
    return f"<tool_call>\n{_object(name, arguments)}\n</tool_call>"


def _json_action(name: str, arguments: Arguments) -> str:
    return f"```json action\n{_object(name, arguments, ('tool', 'parameters'))}\n```"


def _qwen_xml(name: str, arguments: Arguments) -> str:
    values = "".join(f"<parameter={key}>\n{_raw(value)}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>"


def _invoke_xml(name: str, arguments: Arguments) -> str:
    values = "".join(f'<parameter name="{key}">{_raw(value)}</parameter>\n' for key, value in arguments.items())
    return f'<function_calls>\n<invoke name="{name}">\n{values}</invoke>\n</function_calls>'


def _raw(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


FORMS: Mapping[str, Callable[[str, Arguments], str]] = {
    "fenced": _fenced,
    "hermes": _hermes,
    "json_action": _json_action,
    "qwen_xml": _qwen_xml,
    "invoke_xml": _invoke_xml,
}
