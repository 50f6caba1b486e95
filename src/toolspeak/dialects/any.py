"""Every dialect whose markers never occur by chance, at once, to rescue calls that leaked as text.

It is derived: a dialect takes part by `rescues`, ours and those of other packages alike. Dialects that look like prose
or data are left out: labels (`Action:`), elements named like tools, JSON in the middle of a message.
"""

from functools import reduce
from typing import Final

from toolspeak.dialects import installed
from toolspeak.dialects.core.dialect import Dialect

_NAME: Final = "any"
# The order decides between dialects that share an opener. Case does not count, so `<TOOLCALL>` and `<toolcall>` are
# one: the later dialect has it. Of two that open with `<function_call>`, the earlier has it. Others follow by name,
# foreign ones last.
_FIRST: Final = ("nemotron", "tag_json")


def rescuers() -> tuple[Dialect, ...]:
    """Return the dialects that take part, in the order in which their forms are tried."""
    rank = {name: place for place, name in enumerate(_FIRST)}
    willing = (dialect for dialect in installed(but=_NAME) if dialect.rescue is not None)
    return tuple(sorted(willing, key=lambda dialect: rank.get(dialect.name, len(rank))))


_GRAMMARS = (dialect.rescue for dialect in rescuers() if dialect.rescue is not None)

DIALECT = Dialect(_NAME, reduce(lambda one, other: one | other, _GRAMMARS))
