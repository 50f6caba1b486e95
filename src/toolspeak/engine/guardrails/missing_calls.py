"""`request_missing_calls`: asks for the calls after the first, at which small models stop (CHK-12).

    Play Taylor Swift for 20 minutes and Maroon 5 for 15.
    play(artist="Taylor Swift", minutes=20)              left over: Maroon, 5, 15

While a request has numbers, names or list items that are in no call, the model is asked for more calls, with the
clauses that contain them. A further call counts only if it uses some of them: a model that is asked for more to do
invents it.

Ten languages besides English have their own words for "and" and "then" (`language.py`). There, names count only where a
capital marks them, which it does not in German, Chinese, Japanese, Korean and Arabic. In all other languages numbers,
quotations and punctuation count, and nothing else. The question is English, around the user's own clauses.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from toolspeak.engine.guardrails.foreign_mentions import (
    asks_for_several,
    clause_ends,
    foreign_mentions,
    foreign_neighbours,
    is_foreign_mention_used,
    is_similar,
)
from toolspeak.engine.guardrails.guardrail import FollowUp, GuardedConversation, Guardrail, latest_words
from toolspeak.engine.guardrails.language import LONGEST, Language, foreign_language
from toolspeak.engine.guardrails.mentions import beside, is_mentioned, mentions
from toolspeak.errors import BadJson
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import parse, parse_object

_SEVERAL = re.compile(r"(?is)\b(?:and|then|both|each|also|respectively|as well|another)\b|[;&]|\?[^?]*\?")
_STEPS = re.compile(r"(?is)(?:\A|[.!?]\s)first\b.*\bthen\b|\bafter that\b")
"""A request in steps. A call of another tool may need the first result; a second call of the same tool hardly does."""
_CHAINED = re.compile(r"(?i)\b(?:with|to|by|from|of|on|using) (?:that|the|this) (?:result|answer|output)\b")
"""A request in which one call needs the result of another, so that no call is missing yet."""
_BETWEEN = re.compile(r"[,;.?!]\s+(?:(?:and|then|also)\s)?|\s(?:and|then|also)\s")


def left_over(asked: str, calls: Sequence[Call], tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return the mentions in a request for several things that no call has used."""
    if len(asked) > LONGEST or not calls:
        return ()
    if foreign := foreign_language(asked):
        return _foreign_left_over(asked, calls, foreign)
    if not _SEVERAL.search(asked) or _CHAINED.search(asked):
        return ()
    values = [value for call in calls for value in _values(call)]
    used = "\n".join((*values, *(f"{tool.name} {tool.description}" for tool in tools)))
    neighbours = (word for value in values for word in beside(asked, value))
    return tuple(dict.fromkeys(word for word in (*mentions(asked), *neighbours) if not is_mentioned(word, used)))


def _foreign_left_over(asked: str, calls: Sequence[Call], language: Language) -> tuple[str, ...]:
    """Return the same for a request that is not in English; its words are not looked for in English descriptions."""
    if not asks_for_several(asked, language) or re.search(language.chained, asked.lower()):
        return ()
    values = [value for call in calls for value in _values(call)]
    neighbours = (word for value in values for word in foreign_neighbours(asked, value, language))
    found = dict.fromkeys((*foreign_mentions(asked, language), *neighbours))
    return tuple(word for word in found if not is_foreign_mention_used(word, "\n".join(values)))


def fitting_calls(asked: str, made: Sequence[Call], tools: Sequence[Tool], more: Iterable[Call]) -> list[Call]:
    """Return the calls of `more` that use mentions which the calls before them left over.

    In a request in steps, only calls of the tools that were called before count.
    """
    fresh: list[Call] = []
    known = {call.name for call in made} if _is_in_steps(asked) else {tool.name for tool in tools}
    for call in more:
        if call.name in known and uses(call, left_over(asked, (*made, *fresh), tools)):
            fresh.append(call)
    return fresh


def uses(call: Call, left: Iterable[str]) -> bool:
    """Return whether a call uses some of the mentions that were left over.

    Names in other letters than English has may have other endings in a call: a Russian request has them in any case.
    """
    text = _text_of(call)
    return any(_has(text, word) for word in left)


def _has(text: str, word: str) -> bool:
    return is_mentioned(word, text) or (not word.isascii() and is_similar(word, text))


def _text_of(call: Call) -> str:
    return "\n".join(_values(call))


def _is_in_steps(asked: str) -> bool:
    foreign = foreign_language(asked)
    return re.search(foreign.steps, asked.lower()) is not None if foreign else _STEPS.search(asked) is not None


def question(asked: str, left: Sequence[str]) -> str:
    """Return the question for more calls, in the request's own words.

    Bare values are not enough: a small model that is asked for "5; 12" does not find what they belong to.
    """
    rest = list(_clauses(asked, left)) or left
    return f"Noted. Write the further calls that the request needs, for: {'; '.join(rest)}. If none, write: done"


def _follow_up(calls: Sequence[Call], conversation: GuardedConversation) -> FollowUp | None:
    """Return a question for the clauses of the user's latest message that no call has used; None if there are none."""
    asked, tools = latest_words(conversation.request), conversation.offered
    left = left_over(asked, calls, tools)
    return FollowUp(question(asked, left), partial(fitting_calls, asked, calls, tools)) if left else None


def without_slips(asked: str, first: Sequence[Call], added: Sequence[Call], tools: Sequence[Tool]) -> list[Call]:
    """Return the added calls without those that a later one corrects.

        Compute the hypotenuse for 3 and 4, 5 and 12.     first (3, 4), then (3, 5), then (5, 12)

    The small model that is asked for "5 and 12" often pairs the 5 with a value of its first call, and then comes to the
    right pair. A slip adds nothing that the later call does not have, from a place where the request says it once, and
    differs from that call in two arguments at least: calls for each of two cities in each of two years differ in one.
    """
    made, kept = list(first), list[Call]()
    texts, arguments = [_text_of(call) for call in added], [parse_object(call.arguments) for call in added]
    for at, call in enumerate(added):
        new = [word for word in left_over(asked, made, tools) if _has(texts[at], word)]
        made.append(call)
        is_slip = bool(new) and all(_is_said_once(asked, word) for word in new)
        is_slip = is_slip and any(
            added[later].name == call.name
            and _differences(arguments[at], arguments[later]) > 1
            and all(_has(texts[later], word) for word in new)
            for later in range(at + 1, len(added))
        )
        if not is_slip:
            kept.append(call)
    return kept


def _settle(first: Sequence[Call], added: Sequence[Call], conversation: GuardedConversation) -> Sequence[Call]:
    return without_slips(latest_words(conversation.request), first, added, conversation.offered)


REQUEST_MISSING_CALLS: Final = Guardrail("request_missing_calls", follow_up=_follow_up, settle=_settle)


def _is_said_once(asked: str, word: str) -> bool:
    return len(re.findall(rf"(?<![\w.]){re.escape(word)}(?!\w|[.,]\d)", asked)) == 1


def _differences(one: JsonObject, other: JsonObject) -> int:
    """Return how many arguments differ."""
    return sum(one.get(key) != other.get(key) for key in one.keys() | other.keys())


def _clauses(asked: str, left: Sequence[str]) -> Iterator[str]:
    """Yield the clauses of a request that have mentions left over; adjacent clauses stay together as written."""
    start = end = 0
    for begin, stop in _spans(asked):
        if any(word in asked[begin:stop] for word in left):
            start, end = (start if end else begin), stop
        elif end:
            yield asked[start:end].strip(" .?!")
            end = 0
    if end:
        yield asked[start:end].strip(" .?!")


def _spans(asked: str) -> Iterator[tuple[int, int]]:
    begin = 0
    foreign = foreign_language(asked)
    for between in (clause_ends(foreign) if foreign else _BETWEEN).finditer(asked):
        yield begin, between.start()
        begin = between.end()
    yield begin, len(asked)


def _values(call: Call) -> list[str]:
    try:
        return list(_leaves(parse(call.arguments)))
    except BadJson:
        return [call.arguments]


def _leaves(value: Json) -> Iterator[str]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
