"""Emulated requests, rendered with chat templates of real models as llama.cpp and transformers render them (INL-10).

Each piece of a conversation is one word that occurs nowhere else, so it can be counted in the rendered prompt.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testkit.golden import GOLDEN
from tests.unit.engine.scene import DECISION, FORCE, TOOLS, ask, run, written
from toolspeak.engine.prompt import OPENING
from toolspeak.engine.settings import Settings
from toolspeak.facts.families import family_facts
from toolspeak.ir.message import Call, Message, Part, Reasoning, Result, Role, Text
from toolspeak.ir.quirks import QUIRKS
from toolspeak.ir.request import Request
from toolspeak.ir.tool import AUTO, ChoiceMode, ToolChoice
from toolspeak.wires.openai_chat.wire import WIRE

Body = dict[str, Any]
FOLDER = GOLDEN / "templates"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jinja"))
KEPT = Settings(keep_system=True).over(DECISION)
SHOWN = Settings(few_shot=True).over(FORCE)
FORMS = {"inline": FORCE, "few-shot": SHOWN, "decision": KEPT}


class Refused(Exception):
    """The template called `raise_exception`."""


def refuse(message: str) -> None:
    raise Refused(message)


def to_json(value: object, ensure_ascii: bool = False, **how: Any) -> str:  # noqa: ANN401 -- as transformers has it
    return json.dumps(value, ensure_ascii=ensure_ascii, **how)


@cache
def template(name: str) -> Callable[[Sequence[Body]], str]:
    """Compile a template in the environment of transformers, whose settings llama.cpp has too."""
    # Imported here: only these tests need it, and collecting all tests should not.
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    functions = {"raise_exception": refuse, "strftime_now": datetime(2026, 11, 16, tzinfo=UTC).strftime}
    compiled = environment.from_string((FOLDER / f"{name}.jinja").read_text(encoding="utf-8"), globals=functions)
    return lambda messages: compiled.render(
        messages=messages, tools=None, add_generation_prompt=True, bos_token="<s>", eos_token="</s>"
    )


def rendered(name: str, request: Request) -> str:
    """Send a request on the wire that these models' servers have, and render what arrives."""
    body: Body = json.loads(WIRE.encode_request(request, QUIRKS).body)
    assert not body.get("tools")
    return template(name)(body["messages"])


# ---------------------------------------------------------------- conversations


def word(number: int) -> str:
    return f"zq{number}x"


class _Author:
    """Writes messages whose texts and arguments are words that occur once; results belong to the calls before them."""

    def __init__(self) -> None:
        self._numbers, self._waiting = count(), list[Call]()

    def text(self) -> Text:
        return Text(f"It is {word(next(self._numbers))} here.")

    def call(self) -> Call:
        number = next(self._numbers)
        self._waiting.append(Call(f"c{number}", "get_weather", json.dumps({"city": word(number)})))
        return self._waiting[-1]

    def result(self) -> Result:
        answered = self._waiting.pop(0) if self._waiting else Call("c", "now", "{}")
        return Result(answered.id, (self.text(),), answered.name)

    def results(self) -> tuple[Result, ...]:
        return tuple(self.result() for _ in range(max(1, len(self._waiting))))


KINDS: dict[str, tuple[Role, Callable[[_Author], tuple[Part, ...]]]] = {
    "s": (Role.SYSTEM, lambda author: (author.text(),)),
    "u": (Role.USER, lambda author: (author.text(),)),
    "U": (Role.USER, lambda author: (author.text(), author.text())),
    "a": (Role.ASSISTANT, lambda author: (author.text(),)),
    "r": (Role.ASSISTANT, lambda author: (Reasoning("Hm."), author.text())),
    "c": (Role.ASSISTANT, lambda author: (author.text(), author.call())),
    "C": (Role.ASSISTANT, lambda author: (author.call(), author.call())),
    "t": (Role.TOOL, lambda author: (author.result(),)),
    "T": (Role.TOOL, lambda author: author.results()),  # in one message, as Anthropic's clients send them
}


def conversation(kinds: str) -> tuple[Message, ...]:
    """Return a message for each letter."""
    author = _Author()
    return tuple(Message(role, parts(author)) for role, parts in map(KINDS.__getitem__, kinds))


CONVERSATIONS = (
    *("u", "U", "su", "ssu", "s", "uu", "suU", "uau", "uaau", "suauu", "au", "sau", "aau"),
    *("ucT", "ucTu", "uCtt", "uCTcTau", "suCttu", "suacTu", "ucTaau", "asuCtu"),
    *("usu", "suasu", "uas", "ucTs", "suasau", "r", "urucT", "suCTCTCTu", "uctuctu", "uct" * 6, "t", "uctt"),
)
"""As agents send them, and as they should not: any message may be the last one."""
LETTERS = st.text("".join(KINDS), min_size=1, max_size=12)


def pieces(request: Request) -> Iterator[str]:
    """Yield every word of the conversation."""
    for message in request.messages:
        for part in message.parts:
            texts = part.content if isinstance(part, Result) else (part,)
            for text in texts:
                source = text.text if isinstance(text, Text) else text.arguments if isinstance(text, Call) else ""
                yield from (found for found in source.replace('"', " ").split() if found.startswith("zq"))


def check(name: str, sent: Iterable[Request], words: Sequence[str]) -> None:
    """Each request is accepted, in turns, and has every word once."""
    for request in sent:
        roles = [message.role for message in request.messages if message.role is not Role.SYSTEM]
        assert (roles[0], roles[-1]) == (Role.USER, Role.USER)
        assert all(before is not after for before, after in pairwise(roles))
        prompt = rendered(name, request)
        assert {one: prompt.count(one) for one in words} == dict.fromkeys(words, 1)


def sent_for(name: str, kinds: str, settings: Settings, *answers: str, choice: ToolChoice = AUTO) -> list[Request]:
    request = ask(*conversation(kinds), tools=TOOLS, choice=choice)
    return run(settings, *answers, request=request, facts=family_facts(name)).sent


# ---------------------------------------------------------------- the proof


def test_there_are_ten_families_inl10() -> None:
    assert len({name.partition("-")[0] for name in NAMES}) >= 10
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in listed] == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NAMES)
def test_every_template_takes_every_conversation_once_inl10(name: str, form: str) -> None:
    for kinds in CONVERSATIONS:
        request = ask(*conversation(kinds))
        check(name, sent_for(name, kinds, FORMS[form], "It is cold.", "It is cold."), list(pieces(request)))


@pytest.mark.parametrize("name", NAMES)
@given(kinds=LETTERS, form=st.sampled_from(sorted(FORMS)))
def test_every_template_takes_what_no_client_should_send_inl10(name: str, kinds: str, form: str) -> None:
    request = ask(*conversation(kinds))
    check(name, sent_for(name, kinds, FORMS[form], "It is cold.", "It is cold."), list(pieces(request)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("answer", ["", "Well, zq999x.", written(Call("c", "nowhere", '{"city": "zq999x"}'))])
def test_a_model_that_is_asked_again_gets_an_acceptable_prompt_inl10(name: str, answer: str) -> None:
    required = ToolChoice(ChoiceMode.REQUIRED)
    for kinds in ("u", "suCTu", "uCT", "au"):
        sent = sent_for(name, kinds, FORCE, answer, answer, answer, choice=required)
        assert len(sent) == 3
        check(name, sent, list(pieces(ask(*conversation(kinds)))))
        assert [rendered(name, request).count("zq999x") > 0 for request in sent] == [False, bool(answer), bool(answer)]


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("gemma-2", ("system", "user")),
        ("gemma-3", ("user", "user")),
        ("gemma-3", ("assistant", "user")),
        ("mistral-nemo", ("user", "assistant", "assistant")),
        ("mistral-small-3.2", ("user", "user")),
        ("ministral-3", ("system", "user", "system")),
        ("qwen-3.5", ("user", "system", "user")),
        ("qwen-3.5", ("system",)),
    ],
)
def test_the_templates_refuse_what_a_client_may_send_inl10(name: str, messages: tuple[str, ...]) -> None:
    """Without this the proof above could not fail."""
    with pytest.raises(Refused):
        template(name)([{"role": role, "content": "Hello."} for role in messages])


def test_a_conversation_that_the_assistant_begins_gets_an_opening_inl10() -> None:
    first = sent_for("gemma-3", "s", FORCE, "It is cold.")[0]
    later = sent_for("gemma-3", "sau", FORCE, "It is cold.")[0]
    assert [part.text for part in first.messages[1].parts if isinstance(part, Text)] == [OPENING]
    assert later.messages[:2] == first.messages
