"""One conversation about the weather, by a vendor's SDK in a process of its own, and how it is shown."""

import json
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tests.judges.clients import command_of

HERE = Path(__file__).parent
LIMIT_S = 1800
WIDTH = 56
MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class Talk:
    """What the answers came to."""

    answers: tuple[dict[str, Any], ...]
    fault: str = ""
    """What the SDK said when it broke off."""

    @property
    def called(self) -> bool:
        """The first answer is the call, and nothing else is."""
        calls: list[tuple[str, str, str]] = self.answers[0]["calls"] if self.answers else []
        return [(name, json.loads(arguments)) for _, name, arguments in calls] == [("get_weather", {"city": "Paris"})]

    @property
    def answered(self) -> bool:
        """The last answer says in words what the tool told, and is no call."""
        last: dict[str, Any] = self.answers[-1] if self.answers else {"calls": [], "text": ""}
        return not last["calls"] and "18" in last["text"] and "{" not in last["text"]

    @property
    def ok(self) -> bool:
        return self.called and self.answered and not self.fault

    def figures(self) -> dict[str, Any]:
        """Say it in a row."""
        return {
            "called": self.called,
            "answered": self.answered,
            "answers": len(self.answers),
            "tokens": [sum(answer[key] for answer in self.answers) for key in ("sent", "written")],
            "seconds": round(sum(answer["seconds"] for answer in self.answers), 1),
            "text": self.answers[-1]["text"][:200] if self.answers else "",
            **({"fault": self.fault} if self.fault else {}),
        }


def talk(sdk: str, url: str, model: str, how: str) -> Talk:
    """Let an SDK ask; `how` is `whole` or `stream`."""
    command = [*command_of(HERE / "python" / f"weather_{sdk}.py"), f"{url}/v1", model, how]
    told = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LIMIT_S)
    answers = tuple(json.loads(line) for line in told.stdout.splitlines())
    return Talk(answers, told.stderr.strip().splitlines()[-1] if told.returncode else "")


def side_by_side(bare: Talk, through: Talk) -> str:
    """Show both, in two columns."""
    heads = (("the bare server", "-" * WIDTH), ("through toolspeak", "-" * WIDTH))
    left, right = ([*head, *_lines(one)] for head, one in zip(heads, (bare, through), strict=True))
    rows = zip_longest(left, right, fillvalue="")
    return "\n".join(f"  {one:{WIDTH}}  {other}".rstrip() for one, other in rows)


def _lines(talk: Talk) -> Iterator[str]:
    for answer in talk.answers:
        yield f"{answer['end']}, {answer['sent']}+{answer['written']} tokens, {answer['seconds']} s"
        for _, name, arguments in answer["calls"]:
            yield from _wrapped("call", f"{name} {' '.join(arguments.split())}")
        if answer["text"]:
            yield from _wrapped("text", " ".join(answer["text"].split()))
    if talk.fault:
        yield from _wrapped("fault", talk.fault)
    yield f"call: {'yes' if talk.called else 'no'}   answer with the result: {'yes' if talk.answered else 'no'}"


def _wrapped(label: str, text: str) -> list[str]:
    indent = " " * 8
    return textwrap.wrap(
        text, WIDTH, initial_indent=f"  {label:5} ", subsequent_indent=indent, max_lines=MOST_LINES, placeholder=" …"
    )
