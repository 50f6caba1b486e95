"""Declares a setting once: as a field of a frozen dataclass, with its help, its unit and its range.

    @dataclass(frozen=True, slots=True)
    class Server:
        port: int = setting(4141, "Port to listen on; 0 picks a free one.", least=0, most=65535)

The type and the default are the field's own. `toolspeak.config` reads the rest: to read the file, the environment and
the command line, and to write the JSON Schema of the file and its reference page. A field without a declaration is not
set by people.

The dataclasses are in many packages, from `ir` to `config`, so this module is below all of them, and only describes.
"""

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field
from typing import Any, Final, TypeVar

T = TypeVar("T")
_PROMISE: Final = re.compile(r" \([A-Z]+-\d+\)")
_KEY: Final = "toolspeak"


@dataclass(frozen=True, slots=True)
class Declaration:
    """The description of a setting besides its type and its default."""

    help: str
    """What it does, in one or two sentences. Markdown."""
    unit: str = ""
    """The unit in the plural, such as `seconds`."""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    """The value must be larger than this."""
    fallback: Any = None
    """The value if no level sets it, for a setting with levels: the field's own default is None there."""
    otherwise: str = ""
    """The default in words, if neither the field's default nor `fallback` shows it, or if it depends on something."""
    form: str = ""
    """The name of a check in `toolspeak.config.forms`, such as `url`."""
    name: str = ""
    """The name in the file, if it is not the field's."""
    is_option: bool = False
    """It also has a command-line option and a request header of its name; for settings of a turn."""
    is_required: bool = False
    is_secret: bool = False
    """No message, log or repr shows its value."""
    is_inline: bool = False
    """The field is a dataclass whose settings are in the same table."""
    item: str = ""
    """For a table of tables: what the user calls each, such as `NAME`."""

    @property
    def plain_help(self) -> str:
        """The help text, without references to promises such as `(MODE-5)`."""
        return _PROMISE.sub("", self.help)


def setting(  # noqa: PLR0913 # one keyword for each property
    default: T,
    help: str,  # noqa: A002 # as argparse and click call it
    *,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    fallback: T | None = None,
    otherwise: str = "",
    form: str = "",
    name: str = "",
    is_option: bool = False,
    is_required: bool = False,
    is_secret: bool = False,
    is_inline: bool = False,
    item: str = "",
) -> T:
    """Return the default of a dataclass field, with its declaration; see `Declaration` for the keywords."""
    declared = Declaration(
        help,
        unit,
        least,
        most,
        above,
        fallback,
        otherwise,
        form,
        name,
        is_option,
        is_required,
        is_secret,
        is_inline,
        item,
    )
    return field(default=default, repr=not is_secret, metadata={_KEY: declared})


def declaration_of(each: Field[Any]) -> Declaration | None:
    """Return the declaration of a dataclass field, if it has one."""
    metadata: Mapping[str, Any] = each.metadata
    found = metadata.get(_KEY)
    return found if isinstance(found, Declaration) else None
