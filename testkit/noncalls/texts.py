"""Texts that look like tool calling, but make no call (P5).

Each text is generated from its number alone. The tools whose names and arguments occur in them are offered, see
`tools.py`. A call is quoted by: fences, inline code, `>` and `|` at line starts, indented code blocks, cells
of tables, quotation marks and string literals right around it, a closed block of reasoning, a tool result's tags.

Not among them, because by rule it is a call ("a canonical, closed, wrapped call needs only gates 1-2"): an unquoted,
unfenced, complete call in a reader's own canonical markup with a registered name. For dialects whose markup is a fence
that is the fence itself, for those without markers it is the whole message (or its last lines), alone or in one fence.
Neither do HTML elements or comments quote: `<pre>` around a call in plain markup is not among them either, nor is
reasoning that the prompt has opened, nor a token that ends its family's reasoning by itself (`[TOOL_CALLS]`).

Truncated markup and names that are not offered are among them: a complaint is fine, a delivered call is not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from testkit.noncalls.code import code
from testkit.noncalls.data import data
from testkit.noncalls.docs import correspondence, documentation
from testkit.noncalls.draft import Draft
from testkit.noncalls.pages import page, prose
from testkit.noncalls.talk import reasoning, transcript

SEED: Final = "noncalls"
FAMILIES: Final[dict[str, Callable[[Random], Draft]]] = {
    "documentation": documentation,
    "code": code,
    "transcripts": transcript,
    "pages": page,
    "json": data,
    "correspondence": correspondence,
    "reasoning": reasoning,
    "prose": prose,
}


@dataclass(frozen=True, slots=True)
class NonCall:
    """A text without a call."""

    number: int
    family: str
    kind: str
    """Family and template, to group findings by."""
    text: str
    dialects: tuple[str, ...]
    """The dialects whose markup it shows."""
    strangers: bool
    """It may be given to any reader; else only to those whose markup it shows."""


def noncall(number: int) -> NonCall:
    """Make the text of that number."""
    family = tuple(FAMILIES)[number % len(FAMILIES)]
    draft = FAMILIES[family](Random(f"{SEED}/{number}"))
    return NonCall(number, family, draft.kind, draft.text, draft.dialects, draft.strangers)


def noncalls(count: int) -> Iterator[NonCall]:
    """Make the first `count` texts."""
    return map(noncall, range(count))
