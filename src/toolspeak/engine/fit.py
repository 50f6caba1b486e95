"""Whether a tool can do what was asked: small models call whatever tool there is, and know better when they are asked.

    Request: When was the Eiffel Tower built?
    Tool: tower_height(name): Look up how high a tower is.        no

Before the first calls on a request go out, the model is asked about each of their tools, in a short request of its own
whose beginning is always the same. Only a clear "no" sets a call aside (CHK-14).

That is for assistants with a few tools that answer questions. An agent's tools are steps on a way: to read a file is no
answer to "fix the test", and the model says no to it. So nobody is asked where there are many tools or long words.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from toolspeak.engine.further import asked_last
from toolspeak.engine.told import said_in
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.request import Request, Sampling
from toolspeak.ir.tool import AUTO, Tool
from toolspeak.text.mentions import LONGEST

MOST: Final = 4
"""Tools that are offered; among more the model has a choice, and seldom takes one for want of a better."""
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
"""More of them say yes: without that the smallest models say no to half of what they could do."""
_ROOM: Final = Sampling(max_tokens=16, temperature=0.0)
_LONGEST_TOOL: Final = 400
_NO = re.compile(r"(?i)\W*no\b(?! (?:doubt|problem))")


def may_doubt(request: Request) -> bool:
    """Return whether calls are to be asked about: the first ones on something that the user has just said."""
    return len(request.tools) <= MOST and bool(asked_last(request)) and len(said_in(request)) <= LONGEST


def doubted(calls: Iterable[Call], tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return the tools to ask about, each once."""
    called = {call.name for call in calls}
    return tuple(tool for tool in tools if tool.name in called)


def judging(request: Request, tool: Tool) -> Request:
    """Ask whether a tool can do what the user wants."""
    asked = (Message(Role.USER, (Text(_case(_said(request), _line(tool))),)),)
    plain = replace(request, tools=(), choice=AUTO, output_schema=None, constraint=None, extra={})
    return replace(plain, messages=(*_taught(), *asked), sampling=replace(_ROOM, seed=request.sampling.seed))


def says_no(answer: str) -> bool:
    """Return whether an answer is a clear no."""
    return _NO.match(answer) is not None


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


def _said(request: Request) -> str:
    """Return all that the user has said: "and in Bergen?" means nothing alone."""
    own = (part for message in request.messages if message.role is Role.USER for part in message.parts)
    return "\n".join(part.text for part in own if isinstance(part, Text))
