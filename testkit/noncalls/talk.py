"""Families 3 and 7: logs and transcripts; reasoning that drafts calls and then answers in plain text."""

import json
from random import Random
from typing import Final

from testkit.noncalls.draft import Draft, Shown, shown
from testkit.noncalls.quotes import echoed, fence, flat, literal
from testkit.noncalls.renderings import dumps
from testkit.noncalls.tools import NAMES, arguments
from testkit.noncalls.words import PEOPLE, intro, outro, paragraph, sentence, stamp

LEVELS: Final = ("INFO", "DEBUG", "WARN", "ERROR", "TRACE")
REACT: Final = (
    "Action: we should ask the {word} team before Friday.",
    "Action: none needed.",
    "Action: {name} is too slow, replace it.",
    "Action Input: to be decided.",
    "Observation: the sample lost {count} % of its mass.",
    "Observation {count}: no change was seen.",
    "Thought: maybe the {word} is the cause.",
    "Final Answer: it is the {word}.",
    "Our first action: look at {name}.",
    "The observation was repeated {count} times.",
)
THOUGHTS: Final = (
    "The user wants to know about {name}.",
    "I could call it, but the answer is known already.",
    "Wait, maybe a different format is needed.",
    "Some servers expect tags, others plain JSON.",
    "I should not call anything without asking first.",
    "So the draft would be:",
)
ANSWERS: Final = (
    "Which city do you mean?",
    "It depends on the server.",
    "I did not call anything, since you only asked how it works.",
    "The answer is 42.",
    "You do not need a tool for that.",
    "Nein, das geht nicht.",
    "可以",
)
THINK: Final = (("<think>", "</think>"), ("<think>\n", "\n</think>\n\n"), ("<thinking>\n", "\n</thinking>\n"))
OWN_THINK: Final = (
    ("seed", "<seed:think>", "</seed:think>", "<seed:tool_call>"),
    ("minimax", "<mm:think>", "</mm:think>", "\0"),
    ("mistral", "[THINK]", "[/THINK]", "[TOOL_CALLS]"),
    ("cohere", "<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>"),
    ("apertus", "<|inner_prefix|>", "<|inner_suffix|>", "\0"),
    ("longcat", "<longcat_think>", "</longcat_think>", "\0"),
    ("solar", "<|think|>", "<|end|>", "\0"),
)
"""Tags of one family, and the token of the same family that also ends its reasoning, if there is one."""


def transcript(dice: Random) -> Draft:
    """Make a log, a transcript or minutes."""
    make = dice.choice((_log, _log, _json_log, _fenced_log, _minutes, _conversation, _narrated, _echo, _result))
    return make(dice)


def _line(dice: Random, text: str) -> str:
    return f"{stamp(dice)} {dice.choice(LEVELS)} {text}"


def _log(dice: Random) -> Draft:
    """Write log lines with the markup in quotation marks."""
    call = shown(dice)
    lines = [_line(dice, sentence(dice, call.name)) for _ in range(dice.randint(1, 4))]
    lines.insert(dice.randint(0, len(lines)), _line(dice, literal(dice, call.text)))
    return Draft("logs/quoted", "\n".join(lines), call.dialects)


def _json_log(dice: Random) -> Draft:
    """Write a log whose lines are JSON, the markup in a string."""
    call = shown(dice)
    rows = [
        {"ts": stamp(dice), "level": dice.choice(LEVELS), "msg": sentence(dice, call.name)},
        {"ts": stamp(dice), "level": "DEBUG", "completion": call.text, "tool": call.name},
        {"ts": stamp(dice), "level": "INFO", "msg": "done"},
    ]
    return Draft("logs/json", "\n".join(dumps(row) for row in rows), call.dialects)


def _fenced_log(dice: Random) -> Draft:
    """Put a log in a fence."""
    call = shown(dice)
    lines = [_line(dice, sentence(dice, call.name)), _line(dice, call.text), _line(dice, "done")]
    block = fence(dice, "\n".join(lines))
    return Draft("logs/fenced", f"{intro(dice, call.name)}\n{block}\n{outro(dice, call.name)}", call.dialects)


def _minutes(dice: Random) -> Draft:
    """Use the words of ReAct for something else."""
    chosen = dice.sample(REACT, dice.randint(2, 4))
    lines = [
        line.format(word=dice.choice(("data", "paint", "budget")), name="this", count=dice.randint(2, 40))
        for line in chosen
    ]
    text = "\n".join(f"{dice.choice(('', '', '- ', '* ', '**Minutes** '))}{line}" for line in lines)
    return Draft("logs/minutes", f"{paragraph(dice, 'the plan')}\n\n{text}", ("react", "langchain", "cohere"))


def _conversation(dice: Random) -> Draft:
    """Retell a conversation, calls and results included, in the words of a transcript."""
    name = dice.choice(NAMES)
    args = json.dumps(arguments(dice, name), ensure_ascii=False)
    said = dice.choice(
        (f"[Tool call: {name} {args}]", f"[Calling tool: {name}({args})]", f"(called {name} with {args})")
    )
    lines = [f"User: {sentence(dice, name)}", f"Assistant: {said}", "Tool: ok", f"Assistant: {sentence(dice, name)}"]
    return Draft("logs/conversation", f"Summary so far:\n\n{chr(10).join(lines)}", ("hermes",))


def _narrated(dice: Random) -> Draft:
    """Mention a call that was made before."""
    name = dice.choice(NAMES)
    args = json.dumps(arguments(dice, name), ensure_ascii=False)
    said = dice.choice(
        (f"[Tool call: {name} {args}]", f"{name}({args})", f"{name} {args}", f"[Calling tool: {name} {args}]")
    )
    text = f"{dice.choice(('Earlier I did', 'Before that,', 'We ran'))} {said} and got 12. {sentence(dice, name)}"
    return Draft("logs/narrated", text, ("hermes", "fenced"))


def _echo(dice: Random) -> Draft:
    """Echo a tool's result that contains a call."""
    call = shown(dice)
    text = f"The tool said:\n{echoed(dice, call.text)}\n{outro(dice, call.name)}"
    return Draft("logs/echo", text, call.dialects)


def _result(dice: Random) -> Draft:
    """Echo a tool's result that is only data."""
    name = dice.choice(NAMES)
    data = dumps({"name": name, "content": {"temp": dice.randint(-9, 30), "ok": True}})
    text = f"{intro(dice, name)}\n{echoed(dice, data)}\n{outro(dice, name)}"
    return Draft("logs/result", text, ("hermes", "invoke_xml", "decision_json"))


def reasoning(dice: Random) -> Draft:
    """Draft a call in closed reasoning, then answer in plain text."""
    make = dice.choice((_tags, _tags, _tags, _own_tags, _discussed, _channel, _thought))
    return make(dice)


def _pondered(dice: Random, call: Shown) -> str:
    parts = [thought.replace("{name}", call.name) for thought in dice.sample(THOUGHTS, dice.randint(1, 3))]
    draft = dice.choice((call.text, call.text, fence(dice, call.text), f"`{flat(call.text)}`"))
    parts.insert(dice.randint(0, len(parts)), draft)
    return dice.choice(("\n", "\n\n")).join(parts)


def _answer(dice: Random, name: str) -> str:
    return f"{dice.choice(ANSWERS)} {paragraph(dice, name, 2)}"


def _tags(dice: Random) -> Draft:
    """Use the tags that all models share; sometimes nothing follows."""
    call = shown(dice)
    before, after = dice.choice(THINK)
    answer = "" if dice.random() < 0.05 else _answer(dice, call.name)
    return Draft("think/tags", f"{before}{_pondered(dice, call)}{after}{answer}", call.dialects)


def _own_tags(dice: Random) -> Draft:
    """Use the tags of one family."""
    call = shown(dice)
    dialect, before, after, ends = dice.choice(OWN_THINK)
    if ends in call.text:
        return _tags(dice)
    text = f"{before}{_pondered(dice, call)}{after}{_answer(dice, call.name)}"
    return Draft("think/own_tags", text, (dialect, *call.dialects))


def _discussed(dice: Random) -> Draft:
    """Only discuss the syntax."""
    call, other = shown(dice, fences=False), shown(dice, fences=False)
    thought = f"Some servers expect {call.opener} while others want {other.opener} here; the user asks which."
    text = f"<think>{thought}</think>{_answer(dice, call.name)}"
    return Draft("think/discussed", text, tuple(dict.fromkeys((*call.dialects, *other.dialects))))


def _channel(dice: Random) -> Draft:
    """Think in harmony's channel."""
    name = dice.choice(NAMES)
    args = dumps(arguments(dice, name))
    draft = dice.choice(
        (f"to=functions.{name} {args}?", f"We could send {args} to functions.{name}.", f"{name}({args})")
    )
    thought = f"<|channel|>analysis<|message|>{sentence(dice, name)} {draft}<|end|>"
    final = f"<|start|>assistant<|channel|>final<|message|>{_answer(dice, name)}<|return|>"
    return Draft("think/channel", thought + final, ("harmony",), strangers=False)


def _thought(dice: Random) -> Draft:
    """Think as ReAct does."""
    name = dice.choice(NAMES)
    args = dumps(arguments(dice, name))
    draft = dice.choice((f"Action: {name} with {args} would do.", f"{name}: {args}", f"I could use {name} ({args})."))
    text = f"Thought: {sentence(dice, name)} {draft}\nFinal Answer: {_answer(dice, dice.choice(PEOPLE))}"
    return Draft("think/thought", text, ("react", "langchain"), strangers=False)
