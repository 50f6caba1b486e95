"""Ways to quote a call, so that it is only shown."""

import json
from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

Quote: TypeAlias = Callable[[Random, str], str]

INFOS: Final = (
    "xml",
    "json",
    "text",
    "python",
    "",
    "",
    "html",
    "markdown",
    "bash",
    "yaml",
    "jinja",
    "js",
    "txt",
    "xml title=x",
)
RESULT_TAGS: Final = ("tool_response", "tool_result", "function_results", "tool_output")
_MARKS: Final = (('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("„", "“"))


def prefixed(text: str, prefix: str) -> str:
    """Put a prefix before each line."""
    return "\n".join(prefix + line for line in text.split("\n"))


def flat(text: str) -> str:
    """Put it on one line."""
    return " ".join(text.split("\n"))


def _ticks(text: str) -> str:
    """Return a fence that the text does not contain."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return ticks


def fence(dice: Random, text: str) -> str:
    """Put it in an ordinary fence, longer than any inside."""
    ticks = _ticks(text)
    return f"{ticks}{dice.choice(INFOS)}\n{text}\n{ticks}"


def tildes(dice: Random, text: str) -> str:
    """Put it in a fence of tildes."""
    ticks = "~" * dice.randint(3, 5)
    return f"{ticks}{dice.choice(INFOS)}\n{text}\n{ticks}"


def indented_fence(dice: Random, text: str) -> str:
    """Put it in a fence that is indented by up to three spaces."""
    return prefixed(fence(dice, text), " " * dice.randint(1, 3))


def nested_fence(dice: Random, text: str) -> str:
    """Put a fence in a longer fence, as pages about Markdown do."""
    inner = fence(dice, text)
    ticks = _ticks(inner)
    return f"{ticks}markdown\nSome text.\n\n{inner}\n\nMore text.\n{ticks}"


def listed_fence(dice: Random, text: str) -> str:
    """Put a fence in an item of a list."""
    marker = dice.choice(("- ", "* ", "1. "))
    return f"{marker}An example:\n\n{prefixed(fence(dice, text), ' ' * len(marker))}"


def deep_listed_fence(dice: Random, text: str) -> str:
    """Put a fence in an item of an inner list."""
    return f"- Calls\n    - An example:\n\n{prefixed(fence(dice, text), ' ' * 6)}"


def windows_fence(dice: Random, text: str) -> str:
    """Put it in a fence whose lines end as on Windows."""
    return fence(dice, text).replace("\n", "\r\n")


def sloppy_fence(dice: Random, text: str) -> str:
    """Put it in a fence that is no longer than the one inside: the first bare fence line closes it."""
    return f"```{dice.choice(('markdown', 'md', 'text'))}\nSome text.\n\n{text}\n```"


def open_fence(dice: Random, text: str) -> str:
    """Put it in a fence that never closes."""
    return f"{_ticks(text)}{dice.choice(INFOS)}\n{text}"


def inline(dice: Random, text: str) -> str:
    """Put it in inline code on one line."""
    ticks = "`" if "`" not in text else "`` " if "``" not in text else "```` "
    return f"In code: {ticks}{flat(text)}{ticks[::-1]} {dice.choice(('is a call.', 'and nothing else.', '.'))}"


def inline_triple(dice: Random, text: str) -> str:
    """Put it between three backticks on one line."""
    ticks = _ticks(text)
    return f"{dice.choice(('So: ', 'Write ', ''))}{ticks}{flat(text)}{ticks} and stop."


def inline_lines(dice: Random, text: str) -> str:
    """Put it in inline code that goes over several lines."""
    ticks = "`" if "`" not in text else "`` " if "``" not in text else "```` "
    return f"In code: {ticks}{text}{ticks[::-1]} {dice.choice(('is a call.', 'and nothing else.'))}"


def glued_fence(dice: Random, text: str) -> str:
    """Open the fence at the end of a line of prose."""
    ticks = _ticks(text)
    return f"Use this: {ticks}{dice.choice(('xml', 'json', ''))}\n{text}\n{ticks}"


def block_quote(dice: Random, text: str) -> str:
    """Quote it as mails do."""
    return prefixed(text, dice.choice(("> ", ">", "> > ", ">> ", "  > ")))


def quoted_fence(dice: Random, text: str) -> str:
    """Quote a fence."""
    return prefixed(fence(dice, text), "> ")


def bars(dice: Random, text: str) -> str:
    """Quote it with bars."""
    return prefixed(text, dice.choice(("| ", "|  ", "|")))


def indented(dice: Random, text: str) -> str:
    """Make it an indented code block."""
    return prefixed(text, dice.choice(("    ", "    ", "\t", "        ")))


def table(dice: Random, text: str) -> str:
    """Put it in a cell of a table."""
    cell = flat(text)
    cell = f"`{cell}`" if "`" not in cell and dice.random() < 0.5 else cell
    return f"| format | example |\n| --- | --- |\n| {dice.choice(('native', 'text'))} | {cell} |\n| other | none |"


def marks(dice: Random, text: str) -> str:
    """Put it in quotation marks."""
    before, after = dice.choice(_MARKS)
    return f"The model wrote {before}{flat(text)}{after} and stopped."


def literal(dice: Random, text: str) -> str:
    """Put it in a string of some language or log, with escapes."""
    string = json.dumps(text, ensure_ascii=dice.random() < 0.5)
    return dice.choice(
        ("output = {}", "INFO completion text={} tokens=42", "assert parse({}) == []", '"content": {},')
    ).format(string)


def echoed(dice: Random, text: str) -> str:
    """Echo it as (part of) a tool's result."""
    tag = dice.choice(RESULT_TAGS)
    return f"<{tag}>\n{dice.choice(('', '1 match:' + chr(10)))}{text}\n</{tag}>"


FENCES: Final[tuple[Quote, ...]] = (
    fence,
    fence,
    fence,
    tildes,
    indented_fence,
    nested_fence,
    listed_fence,
    sloppy_fence,
)
BLOCKS: Final[tuple[Quote, ...]] = (
    *FENCES,
    deep_listed_fence,
    windows_fence,
    open_fence,
    block_quote,
    quoted_fence,
    bars,
    indented,
    table,
)
LINES: Final[tuple[Quote, ...]] = (inline, inline, inline_triple, marks, literal)
ODD: Final[tuple[Quote, ...]] = (inline_lines, glued_fence, echoed)


def any_quote(dice: Random) -> Quote:
    """Pick a way: mostly fences, then lines, sometimes odd."""
    chance = dice.random()
    if chance < 0.55:
        return dice.choice(FENCES)
    if chance < 0.8:
        return dice.choice(BLOCKS)
    return dice.choice(LINES if chance < 0.95 else ODD)
