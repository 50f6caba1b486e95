"""Writes docs/configuration-reference.md and docs/configuration.schema.json from the declarations of settings.

With `--check` it writes nothing and exits with status 1 if one of the two is stale.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolspeak.config.declared import Declared, declared_in
from toolspeak.config.forms import FORMS
from toolspeak.config.options import flag, overrides, variable
from toolspeak.config.schema import config_schema
from toolspeak.config.sections import ConfigFile
from toolspeak.engine.settings import Settings
from toolspeak.facts.model import ModelFacts

DOCS = Path(__file__).parent.parent / "docs"
PAGE, SCHEMA = DOCS / "configuration-reference.md", DOCS / "configuration.schema.json"
HEAD = """# Configuration reference

Every setting of `toolspeak.toml`: its type, default and range, what it does, and the environment variable and the
option that override it. [Configuration](configuration.md) explains where the file is, and has an example of the whole
file.

`toolspeak config schema` prints the same as a JSON Schema, which editors use to complete and check the file.
[configuration.schema.json](configuration.schema.json) is a copy of it. `just docs` generates both from the source.
"""
SHARED = {Settings: "tools", ModelFacts: "upstreams.NAME.facts"}
"""Tables that several sections have, and where they are described."""
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def page() -> str:
    """Return the reference page."""
    return HEAD + "".join(_sections(ConfigFile, ""))


def schema() -> str:
    """Return the JSON Schema as text."""
    return json.dumps(config_schema(), indent=2, ensure_ascii=False) + "\n"


def _sections(kind: Any, path: str, help_: str = "") -> Iterator[str]:  # noqa: ANN401 # a dataclass
    settings = list(_flat(kind))
    title = f"`[[{path[:-2]}]]`" if path.endswith("[]") else f"`[{path}]`" if path else "Top level"
    rows = [row for each in settings if not _is_section(each) for row in _row(each, path)]
    yield f"\n## {title}\n\n{help_}\n" if help_ else f"\n## {title}\n"
    if rows:
        yield "\n| setting | type | default | what it does | set by |\n| --- | --- | --- | --- | --- |\n" + "".join(
            rows
        )
    for each in settings:
        if not _is_section(each):
            continue
        inner = f"{path}.{each.name}".strip(".")
        inner += "[]" if each.is_array else f".{each.about.item}" if each.is_mapping else ""
        if (told := SHARED.get(each.element)) and told != inner:
            yield f"\n## `[{inner}]`\n\n{each.help}\n"
        elif each.is_table:
            yield from _sections(each.element, inner, each.help)
        else:
            yield f"\n## `[{inner.rpartition('.')[0]}]`\n\n{each.help}\n"
            choices = ", ".join(f"`{one}`" for one in each.choices)
            yield f"\nEach key is a {each.about.item.lower()}, each value one of {choices}.\n"


def _flat(kind: Any) -> Iterator[Declared]:  # noqa: ANN401 # a dataclass
    for each in declared_in(kind):
        if each.about.is_inline:
            yield from _flat(each.kind)
        else:
            yield each


def _is_section(each: Declared) -> bool:
    return each.is_table or bool(each.about.item)


def _row(each: Declared, path: str) -> Iterator[str]:
    cells = (f"`{each.name}`", _type(each), _default(each), each.help, _set_by(f"{path}.{each.name}".strip(".")))
    yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |\n"


def _type(each: Declared) -> str:
    about = each.about
    if each.choices:
        return ", ".join(f"`{one}`" for one in each.choices)
    word = FORMS[about.form].title if about.form else TYPES[each.element]
    word = (
        f"table, each value: {word}" if each.is_mapping else f"array, each element: {word}" if each.is_array else word
    )
    word += f", {about.unit}" if about.unit else ""
    if about.above is not None:
        return f"{word}, above {about.above:g}"
    if about.most is not None:
        return f"{word}, {about.least:g} to {about.most:g}"
    return word if about.least is None else f"{word}, at least {about.least:g}"


def _default(each: Declared) -> str:
    if each.about.is_required:
        return "required"
    if each.otherwise:
        return each.otherwise
    value: Any = each.default
    if value in ((), None, ""):
        return "none"
    return f"`{json.dumps(list(value) if each.is_array else value)}`" if not each.choices else f"`{value}`"


def _set_by(path: str) -> str:
    found = [(name, target) for name, target in overrides().items() if target.path == path]
    words = [f"`{variable(name)}`" for name, target in found if target.has_variable]
    words += [f"`{flag(name)}`" for name, target in found if target.has_flag]
    return ", ".join(words)


def main() -> int:
    """Write both files, or check them."""
    fresh = {PAGE: page(), SCHEMA: schema()}
    if "--check" in sys.argv[1:]:
        stale = [
            path.name for path, text in fresh.items() if not path.exists() or path.read_text(encoding="utf-8") != text
        ]
        if stale:
            print(f"not fresh: {', '.join(stale)}; run `just docs`")
        return int(bool(stale))
    for path, text in fresh.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
