"""The words that make a model work like an agent: the prompt of a run, and the check before it ends (RUN-15, RUN-16).

    agent_messages(messages, ending)    the conversation, with the agent prompt at the head of its system message
    unfinished(task, tools, rounds)     parts of the task that no call has worked on, in words for the model
    spoken(text, tools)                 the words of a text, without calls that are written in it

Small models stop after the first step, or end a run with "I can't assist with that" after a failed call. What they left
out can be seen without understanding the task: a file that it names and no call had, a tool that it asks for by its
verb, a call that failed and was not made again. The check only asks; the model may still end.

Everything here is a function of the task and of what was called, so that a replayed run decides the same.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import count
from typing import Final

from toolspeak.dialects import load
from toolspeak.dialects.core.grammar import RESULT_TAGS
from toolspeak.engine.loose_calls import loose_calls
from toolspeak.engine.plan import ANY_DIALECT
from toolspeak.ir.event import CallRejected
from toolspeak.ir.message import Call, Message, Result, Role, Text, result_text
from toolspeak.ir.round import Round
from toolspeak.ir.tool import Tool
from toolspeak.toolset.toolset import ToolSet

_PROMPT: Final = """\
You are an agent. You work on the user's task with tools until every part of it is done.

1. Plan: think of the steps that the task needs, in their order.
2. Do one step at a time: call one tool, and read its result before the next call. Do not describe a step: do it.
3. Look before you change anything: never guess what a file or a result contains.
4. If a tool returns an error, read it, and call again with other arguments.
5. Verify: after a change, look at what it came to.
6. Stop when all of it is done. {end}"""
_END_BY_CALL: Final = "Then call {name}, alone, with the answer to everything that the user asked."
_END_IN_WORDS: Final = "Then call no more tools, and write the answer to everything that the user asked."

_LONGEST_TASK: Final = 2000
_MOST_FILES: Final = 8
_FILE: Final = re.compile(
    r"(?<![\w@/.:-])(?:[\w-]++/)*(?:\w\.[A-Za-z]|[\w-]{2,}\.)[A-Za-z][A-Za-z0-9]{0,7}(?![\w/@-]|\.\w|\()"
)
"""A file name in a task. No URL, no mail address, no call of a method, no "e.g."."""
_CLAUSE: Final = r"(?:^|[.;:,!?\n]\s*|\b(?:and|then|first|next|please|again|finally|to)\s+){verb}\b"
_RESULT: Final = re.compile(rf"(?:{'|'.join(map(re.escape, RESULT_TAGS))})(?:[^<]|<(?!/\w+>\s*\S))*+", re.DOTALL)
"""A tool result that is a whole text: nothing follows the tag that closes it."""
_LONGEST_RESULT: Final = 64 * 1024
_DENIAL: Final = " was not run: "
_UNKNOWN: Final = (
    "The outcome of {name} is unknown: it was started, and then its run was interrupted. It may have done its work or "
    "not, and was not run again. Look before you repeat it."
)
_NEGATED: Final = re.compile(r"\b(?:don't|do not|never|without|not)\b", re.IGNORECASE)
_FILE_TOOLS: Final = re.compile(r"file|shell", re.IGNORECASE)
_ANY_VERB: Final = ("shell", "bash", "python", "code", "terminal", "exec", "command")
"""Tools that can do what another tool is named for."""


def agent_messages(messages: Sequence[Message], ending: Iterable[str] = ()) -> tuple[Message, ...]:
    """Return the conversation with the agent prompt, before the words of its own system message.

    It stays one system message, the first: many chat templates accept no other (INL-10).
    """
    name = next(iter(sorted(ending)), "")
    text = Text(_PROMPT.format(end=_END_BY_CALL.format(name=name) if name else _END_IN_WORDS))
    if messages and messages[0].role is Role.SYSTEM:
        first = messages[0]
        return replace(first, parts=(Text(f"{text.text}\n\n"), *first.parts)), *messages[1:]
    return Message(Role.SYSTEM, (text,)), *messages


def task_of(messages: Iterable[Message]) -> str:
    """Return the text of the last message of the user."""
    users = [message for message in messages if message.role is Role.USER]
    return "".join(part.text for part in users[-1].parts if isinstance(part, Text)) if users else ""


def unfinished(task: str, tools: Sequence[str], rounds: Sequence[Round]) -> tuple[str, ...]:
    """Return what is left of a task, a sentence each; empty if nothing is known to be left.

    A run without any call is finished: its task was a question. `tools` are the names of the tools that work on a task,
    without those that end it. The verbs are English; in other languages only files and failures are noticed.
    """
    made = [
        (number, call, result)
        for number, each in enumerate(rounds)
        for call, result in zip(each.calls, each.results, strict=True)
        if call.name in tools
    ]
    if not made or len(task) > _LONGEST_TASK or any(_may_not_repeat(result) for *_, result in made):
        return ()
    worked = [(number, call) for number, call, result in made if not result.is_error]
    succeeded = {call.name: number for number, call in worked}
    failed = {call.name: result for number, call, result in made if number > succeeded.get(call.name, -1)}
    return (
        *(f"No call has worked on {name}." for name in _untouched(task, [call.arguments for _, call in worked], tools)),
        *(f"{name} was not called." for name in _unused(task, tools, succeeded.keys() | failed.keys())),
        *(f"The last call of {name} failed: {result_text(result)}" for name, result in failed.items()),
    )


def denied(call: Call, why: str) -> Result:
    """Return the result of a call that may not run."""
    return Result(call.id, (Text(f"{call.name}{_DENIAL}{why}."),), call.name, is_error=True)


# A call with side effects is not repeated after a crash: running it twice could do its work twice. The model gets this
# error instead, and can look before it decides.
def unknown_outcome(call: Call) -> Result:
    """Return the result of a call that was started and whose outcome is lost (RUN-3)."""
    return Result(call.id, (Text(_UNKNOWN.format(name=call.name)),), call.name, is_error=True)


def _may_not_repeat(result: Result) -> bool:
    """Return whether a call was denied, or its outcome is lost: no failure, and nothing to ask for again."""
    text = result_text(result)
    begins = (f"{result.name}{_DENIAL}", _UNKNOWN.partition(":")[0].format(name=result.name))
    return result.is_error and text.startswith(begins)


def _untouched(task: str, arguments: Sequence[str], tools: Sequence[str]) -> Iterator[str]:
    if not any(map(_FILE_TOOLS.search, tools)):
        return
    names = list(dict.fromkeys(_FILE.findall(task)))[:_MOST_FILES]
    yield from (name for name in names if not any(name.rpartition("/")[2] in each for each in arguments))


def _unused(task: str, tools: Sequence[str], used: AbstractSet[str]) -> Iterator[str]:
    if any(name in each.lower() for each in used for name in _ANY_VERB):
        return
    for tool in tools:
        verb = tool.partition("_")[0].lower()
        asks = re.compile(_CLAUSE.format(verb=re.escape(verb)), re.IGNORECASE)
        if tool not in used and "_" in tool and any(_demands(task, found.end()) for found in asks.finditer(task)):
            yield tool


def _demands(task: str, end: int) -> bool:
    """Return whether no negation is in the clause up to here."""
    clause = re.split(r"[.;:!?\n]", task[:end])[-1]
    return _NEGATED.search(clause) is None


def spoken(text: str, tools: Sequence[str]) -> tuple[str, bool]:
    """Return the words of a text without the calls of these tools in it, and whether there were any.

    A text that is nothing but a tool result has no words either. Qwen2.5-Coder 1.5B ends runs so: it goes on with the
    conversation, in which a result came after each call.
    """
    if _RESULT.fullmatch(text[:_LONGEST_RESULT].strip()):
        return "", True
    read = load(ANY_DIALECT).read(text, ToolSet.of(tuple(map(Tool, tools))))
    if any(isinstance(part, Call | CallRejected) for part in read.parts):
        return read.text.strip(), True
    loose = loose_calls(text, tools, map(str, count()))
    return ("", True) if loose.calls and loose.alone else (text.strip(), False)
