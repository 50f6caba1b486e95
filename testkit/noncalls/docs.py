"""Families 1 and 6: documentation about tool calling; mails, issues and chats that quote calls."""

from collections.abc import Callable
from random import Random
from typing import Final

from testkit.noncalls.draft import Draft, Shown, shown, written
from testkit.noncalls.quotes import BLOCKS, Quote, any_quote, block_quote, fence, flat, indented, open_fence, prefixed
from testkit.noncalls.renderings import BARE, Rendering, pick
from testkit.noncalls.tools import NAMES, PLACEHOLDERS, Args, arguments
from testkit.noncalls.words import PEOPLE, intro, outro, paragraph, sentence, stamp

REMINDERS: Final = (
    "Syntax reminder: write {opener} and then the arguments.",
    "The {opener} marker opens a call; nothing may stand before it.",
    "{opener} begins a call.",
    'Put {opener} first, then e.g. {{"city": "Oslo"}}, and nothing after.',
    "Never write {opener} in an ordinary answer.",
    "- {opener} is for calls, not for answers",
    "If you see {opener} in the log, the server has not parsed it.",
    "The `{opener}` tag is a special token.",
    "Models were trained on {opener} (see above) and rarely forget it.",
    "| {opener} | opens a call | always |",
)

GAPS: Final = (
    *("YOUR_KEY", "<key>", "<your key>", "<the key to use>", "[key]", "{key}", "{{key}}", "${KEY}", "...", "KEY"),
    *("KEY_NAME", "your_key", "Your_Key", "YOUR KEY", "your key here", "<KEY>", "the key here", "<insert key here>"),
)
"""Placeholders that a reader of the text is expected to fill in."""


def documentation(dice: Random) -> Draft:
    """Make a page about tool calling."""
    make = dice.choice(
        (_example, _example, _example, _examples, _reminder, _reminder, _placeholder, _gaps, _bare, _cut)
    )
    return make(dice)


def _example(dice: Random) -> Draft:
    """Quote one call, with prose on one side at least."""
    quote = any_quote(dice)
    call = shown(dice)
    block = quote(dice, call.text)
    sides = dice.randint(1, 3) | (quote is indented)  # blanks at the very beginning quote nothing
    before = f"{_heading(dice)}{intro(dice, call.name)}\n\n" if sides & 1 else ""
    after = f"\n\n{outro(dice, call.name)}" if sides & 2 else ""
    return Draft(f"docs/{quote.__name__}", f"{before}{block}{after}", call.dialects)


def _heading(dice: Random) -> str:
    return dice.choice(("", "", "## Calling tools\n\n", "# Format\n\n", "**Tools**\n\n", "Hi!\n\n"))


def _examples(dice: Random) -> Draft:
    """Quote several calls, with prose between them. Only the last fence may stay open: a later one would close it."""
    parts: list[str] = []
    dialects: list[str] = []
    closed = [quote for quote in BLOCKS if quote is not open_fence]
    for left in reversed(range(dice.randint(2, 3))):
        call = shown(dice)
        quote = dice.choice(closed if left else BLOCKS)
        parts += [f"{intro(dice, call.name)}\n\n{quote(dice, call.text)}", paragraph(dice, call.name)]
        dialects += call.dialects
    return Draft("docs/several", "\n\n".join(parts), tuple(dict.fromkeys(dialects)))


def _reminder(dice: Random) -> Draft:
    """Mention an opener without a call, perhaps with a quoted call after it."""
    call = shown(dice, fences=False)
    lines = [dice.choice(REMINDERS).format(opener=call.opener) for _ in range(dice.randint(1, 3))]
    lines.insert(dice.randint(0, len(lines)), sentence(dice, call.name))
    if dice.random() < 0.6:
        lines += ["", fence(dice, call.text), "", outro(dice, call.name)]
    return Draft("docs/reminder", "\n".join(lines), call.dialects)


def _placeholder(dice: Random) -> Draft:
    """Echo the instructions: the markup is plain, but no tool has that name."""
    row = shown(dice).row
    text = row.write(dice.choice(PLACEHOLDERS), {"arg": "value"})
    prose = f"{intro(dice, 'a tool')}\n\n{text}\n\n{outro(dice, 'a tool')}"
    return Draft("docs/placeholder", prose, row.dialects)


def _gaps(dice: Random) -> Draft:
    """Explain a call in plain markup, with a gap as the value of an argument, and continue in prose."""
    name = dice.choice([name for name in NAMES if name != "now"])
    row = next(row for row in iter(lambda: pick(dice, fences=False), None) if not _forges(row))
    args: Args = arguments(dice, name)
    key = dice.choice([key for key, value in args.items() if isinstance(value, str) and key != "unit"] or ["path"])
    gap = dice.choice(GAPS).replace("KEY", key.upper()).replace("key", key)
    text = row.write(name, args | {key: gap})
    before = dice.choice((intro(dice, name) + "\n\n", intro(dice, name) + "\n", "Write ", ""))
    after = dice.choice(("\n\n" + outro(dice, name), "\nand wait for the result.", f", where {gap} is yours."))
    return Draft("docs/gaps", before + text + after, row.dialects)


def _forges(row: Rendering) -> bool:
    """Return whether the beginning of a result is part of the form: by rule, everything after it counts as invented."""
    return row.write("f", {}).endswith(("Observation:", "✿RESULT✿"))


def _bare(dice: Random) -> Draft:
    """Show a form without markers in the middle of prose: it would be a call only as the end of the message."""
    call = written(dice, dice.choice(BARE))
    text = f"{intro(dice, call.name)}\n\n{call.text}\n\n{outro(dice, call.name)}"
    return Draft("docs/bare", text, call.dialects)


def _cut(dice: Random) -> Draft:
    """Cut a call inside the value of an argument; that is a complaint at most."""
    call = shown(dice)
    values = [str(value) for value in call.args.values() if isinstance(value, str)]
    at = call.text.rfind(values[-1]) if values else -1
    if at < 0:
        return _reminder(dice)
    text = call.text[: at + max(1, len(values[-1]) // 2)]
    return Draft("docs/cut", f"{intro(dice, call.name)}\n\n{text}", call.dialects)


def correspondence(dice: Random) -> Draft:
    """Make a mail, an issue or a chat that quotes a call."""
    makers: tuple[Callable[[Random, Shown], tuple[str, str]], ...] = (_mail, _mail, _issue, _chat, _review)
    call = shown(dice)
    kind, text = dice.choice(makers)(dice, call)
    return Draft(f"mail/{kind}", text, call.dialects)


def _mail(dice: Random, call: Shown) -> tuple[str, str]:
    """Answer a mail, quoting it."""
    one, other = dice.sample(PEOPLE, 2)
    quoted = f"{sentence(dice, call.name)}\n\n{call.text}\n\n{sentence(dice, call.name)}"
    how: tuple[Quote, str] = dice.choice(
        ((block_quote, "quoted"), (_indented_mail, "indented"), (_barred_mail, "barred"))
    )
    body = f"Hi {one},\n\nOn {stamp(dice)}, {other} wrote:\n{how[0](dice, quoted)}\n\n{paragraph(dice, call.name)}"
    return how[1], f"{body}\n\n{dice.choice(('Best', 'Regards', 'Cheers'))},\n{one}"


def _indented_mail(dice: Random, text: str) -> str:
    return "\n" + prefixed(text, dice.choice(("    ", "\t")))


def _barred_mail(dice: Random, text: str) -> str:
    return prefixed(text, dice.choice(("| ", "|  ")))


def _issue(dice: Random, call: Shown) -> tuple[str, str]:
    """Report a bug in some parser."""
    quote = dice.choice(BLOCKS)
    steps = f"### Steps\n\n1. Offer `{call.name}`\n2. Ask about the {dice.choice(NAMES)} tool\n"
    shows = f"### Actual output\n\n{quote(dice, call.text)}\n\n### Expected\n\n{sentence(dice, call.name)}"
    return f"issue_{quote.__name__}", f"**Bug:** {sentence(dice, call.name)}\n\n{steps}\n{shows}"


def _chat(dice: Random, call: Shown) -> tuple[str, str]:
    """Show a chat log whose lines quote the call in backticks."""
    one = dice.choice(PEOPLE)
    ticks = "`" if "`" not in call.text else "````"
    lines = [
        f"{dice.choice(('user', one))}: {sentence(dice, call.name)}",
        f"{dice.choice(('assistant', 'bot', '<bot>'))}: {ticks} {flat(call.text)} {ticks}",
        f"{dice.choice(('tool', 'system'))}: {sentence(dice, call.name)}",
        f"{one}: {dice.choice(('thanks!', 'ok', '👍', 'hm, why?'))}",
    ]
    return "chat", "\n".join(lines)


def _review(dice: Random, call: Shown) -> tuple[str, str]:
    """Comment on a quoted line, as reviews do."""
    quoted = "\n\n".join(f"{block_quote(dice, part)}\n\n{sentence(dice, call.name)}" for part in (call.text, "LGTM"))
    return "review", f"{quoted}\n\n{outro(dice, call.name)}"
