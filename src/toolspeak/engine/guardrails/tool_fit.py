"""`confirm_tool_fit`: asks the model whether a tool can do the request before its call is delivered (CHK-14).

    Request: When was the Eiffel Tower built?
    Tool: tower_height(name): Look up how high a tower is.        no

Small models call whatever tool there is, and know better when they are asked. Before the first calls on a request are
delivered, the model is asked about each of their tools, in a short request that always begins with the same bytes, so
that prompt caches hit.

By default only a clear "no" drops the calls, and only a doubtful call is questioned: one with a required value that
nobody mentioned, or one of a tool whose definition the model has copied before it called. On irrelevant questions of
development tasks 8 of 13 calls had a value that nobody mentioned, of right calls 1 in 10. Calls after copies made 16 of
400 held-out tasks of Qwen2.5-Coder 0.5B right and 10 wrong, all of them irrelevant questions. When each first call was
questioned, the guardrail lost 4 to 7 points on each other set. When a request had to share two words with its tool, it
still questioned half of the everyday requests, and the 1.5B model said no to reading a room for "What is the
temperature in the bedroom?".

The word hides how sure the model is. Where the server tells probabilities, `unfit_probability` sets the one of "no"
from which a call is dropped, or half of it if the call is doubtful, and each first call is questioned. At 0.25
Qwen2.5-Coder 1.5B rejects 35 of 40 irrelevant tools of development tasks and one of 80 right ones, but also 6 of 38
right tools for requests as people word them (`just tool-fit`): for "What is the temperature in the bedroom?" it says no
with 0.82 to reading the temperature of a room. So no shipped profile sets it. The 0.5B is not sure of anything (right
tools 0.2 to 0.8, irrelevant ones 0.4 to 0.8), and gains nothing. All of this was measured on first messages in English,
so others keep the rule of the word.

This is for assistants with a few tools that answer questions. The tools of an agent are steps: reading a file is not an
answer to "fix the failing test", and the 1.5B model says no to five of twelve good steps. So the guardrail does not
apply with many tools or in long conversations.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Final

from toolspeak.dialects.core.json_form import FILLED_IN
from toolspeak.engine.guardrails.guardrail import (
    FEW_TOOLS,
    AskModel,
    GuardedConversation,
    Guardrail,
    Judgement,
    conversation_text,
    latest_words,
    user_words,
)
from toolspeak.engine.guardrails.language import LONGEST, foreign_languages
from toolspeak.engine.guardrails.values import has_made_up_arguments
from toolspeak.ir.complaint import Complaint, Problem
from toolspeak.ir.event import FirstToken
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, Tool

UNFIT: Final = "confirm_tool_fit: the model says that it cannot do the request"
_JUDGE: Final = "You judge whether a tool can do what a request asks for. Answer with one word, yes or no."
_EXAMPLES: Final = (
    ("Who wrote Hamlet?", "get_weather(city): Get the weather of a city.", "no"),
    ("How hot is it in Rome?", "get_weather(city): Get the weather of a city.", "yes"),
    (
        "Find me a flat in Berlin with two rooms.",
        "housing_search(city, rooms, max_rent): Search for flats to rent.",
        "yes",
    ),
    ("When was the Eiffel Tower built?", "tower_height(name): Look up how high a tower is.", "no"),
    ("Add 3 and 4.", "calculate_sum(a, b): Compute the sum of two numbers.", "yes"),
    (
        "I want to know how the shares of Apple did last week.",
        "stock_history(company, days): Retrieve the price history of a stock.",
        "yes",
    ),
)
"""Four of six say yes: with fewer, the smallest models say no to half of the requests that a tool could do."""
_ROOM: Final = Sampling(max_tokens=16, temperature=0.0)
_LONGEST_TOOL: Final = 400
TOP_TOKENS: Final = 10
"""Yes and no are written in several ways; 20 is the most that vendors allow."""
_LEAST_SURE: Final = 0.5
"""The least probability of yes and no together: a model that begins to explain has not answered by its first token."""
_NO = re.compile(r"(?i)\W*no\b(?! (?:doubt|problem))")


def may_confirm(request: Request) -> bool:
    """Return whether the last message is the user's, the tools are few, and the conversation is short."""
    if len(request.tools) > FEW_TOOLS or not latest_words(request):
        return False
    return len(conversation_text(request)) <= LONGEST


def _judge(call: Call, conversation: GuardedConversation) -> Judgement:
    tool = next((tool for tool in conversation.offered if tool.name == call.name), None)
    if tool is None or conversation.must_call:
        return None
    is_doubtful, limit = _is_doubtful(call, conversation), _probability_limit(conversation)
    if not is_doubtful and not limit:
        return None
    asked = replace(fit_question(conversation.request, tool), top_tokens=TOP_TOKENS if limit else 0)
    # A made-up value is a doubt of its own: calls of irrelevant tools have one six times as often as right calls.
    rejects = partial(_rejects, limit=limit / 2 if is_doubtful else limit, is_doubtful=is_doubtful)
    return AskModel(asked, rejects, Complaint(Problem.UNRELATED, tool.name, UNFIT))


def _is_doubtful(call: Call, conversation: GuardedConversation) -> bool:
    """Return whether a required value is made up, or the model has copied the tool's definition before it called."""
    is_copied = FILLED_IN in call.fixes or call.name == conversation.copied
    return is_copied or has_made_up_arguments(call, conversation)


def _probability_limit(conversation: GuardedConversation) -> float:
    """Return the probability of "no" that drops a call; 0 if the word decides."""
    users = sum(message.role is Role.USER for message in conversation.request.messages)
    return conversation.unfit_probability if users == 1 and conversation.is_comparable else 0.0


def _rejects(answer: str, first_token: FirstToken, *, limit: float, is_doubtful: bool) -> bool:
    unfit = no_probability(first_token) if limit else None
    return unfit >= limit if unfit is not None else is_doubtful and says_no(answer)


def no_probability(first_token: FirstToken) -> float | None:
    """Return how likely the answer was no rather than yes; None if it was something else, or nobody can tell."""
    chances = {"yes": 0.0, "no": 0.0}
    for token, chance in first_token:
        if (word := token.strip().lower()) in chances:
            chances[word] += chance
    both = sum(chances.values())
    return chances["no"] / both if both >= _LEAST_SURE else None


CONFIRM_TOOL_FIT: Final = Guardrail("confirm_tool_fit", applies=may_confirm, judge=_judge, buffers=True)


def fit_question(request: Request, tool: Tool) -> Request:
    """Return the request that asks the model whether a tool can do what the user wants."""
    asked = (Message(Role.USER, (Text(_case(user_words(request), _line(tool))),)),)
    plain = replace(request, tools=(), choice=AUTO, output_schema=None, constraint=None, extra={})
    return replace(plain, messages=(*_taught(), *asked), sampling=replace(_ROOM, seed=request.sampling.seed))


def says_no(answer: str) -> bool:
    """Return whether an answer is a clear no, in English or in a language that guardrails read."""
    return _NO.match(answer) is not None or _foreign_no().match(answer.lower()) is not None


@cache
def _foreign_no() -> re.Pattern[str]:
    """Return the word for no in every language; where words have no spaces, whatever follows it."""
    read = [language for language in foreign_languages() if language.is_read]
    spaced = "|".join(language.no for language in read if language.is_spaced)
    unspaced = "|".join(language.no for language in read if not language.is_spaced)
    return re.compile(rf"\W*(?:(?:{spaced})(?![\w'-])|(?:{unspaced}))")


def _taught() -> Iterator[Message]:
    yield Message(Role.SYSTEM, (Text(_JUDGE),))
    for request, tool, verdict in _EXAMPLES:
        yield Message(Role.USER, (Text(_case(request, tool)),))
        yield Message(Role.ASSISTANT, (Text(verdict),))


def _case(request: str, tool: str) -> str:
    return f"Request: {request}\nTool: {tool}"


def _line(tool: Tool) -> str:
    parameters = tool.parameters.get("properties")
    named = ", ".join(parameters) if isinstance(parameters, dict) else ""
    return f"{tool.name}({named}): {tool.description}"[:_LONGEST_TOOL]
