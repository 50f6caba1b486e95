"""What the judges share: the tool that really runs, the checks, and one line of JSON for each of them."""

import json
import re
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

Theirs: TypeAlias = Any
"""A value of the vendor's own types."""
Ask: TypeAlias = Callable[..., Any]

URL = sys.argv[1]
PROMPT = "What is the weather? Say it in one sentence."
WANTED = {
    "one": [{"city": "Oslo"}],
    "parallel": [{"city": "Oslo"}, {"city": "Bergen"}],
    "interleaved": [{"city": "Oslo"}, {"city": "Bergen"}],
    "unicode": [{"city": "Tromsø", "note": 'say "hei" 🌦 ☃\nto all 🌦\u2028'}],
}
OPENING = "Let me look. "
THOUGHT = "I have to look that up."
REFUSED = "the scripted model refuses"
BROKEN = "the scripted model broke down"
DESCRIPTION = "Tell the weather of a city."
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "note": {"type": "string", "description": "what else to say"}},
    "required": ["city"],
}


@dataclass
class Weather:
    """The tool. Nobody can guess what it says: it has to run."""

    asked: list[dict[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def get_weather(self, city: str, note: str | None = None) -> str:  # ollama-python requires what cannot be None
        """Tell the weather of a city."""
        self.asked.append({"city": city, "note": note} if note else {"city": city})
        self.said.append(f"{city} has {time.perf_counter_ns()} drops {note or ''}")
        return self.said[-1]

    def run(self, name: str, arguments: dict[str, str], id: str | None = None) -> str:
        """Run a call as a client does, and look at its id."""
        assert name == "get_weather", name
        if id is not None:
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", id), id
            assert id not in self.ids, id
            self.ids.append(id)
        return self.get_weather(**arguments)


@dataclass
class Heard:
    """What the client heard in the two rounds; None for what it does not show."""

    opening: str | None = None
    thought: str | None = None
    final: str = ""


@dataclass
class Judge:
    """Checks one client on one wire."""

    client: str
    wire: str
    failures: int = 0

    def converse(self, mode: str, talk: Callable[[str, Weather], Heard]) -> None:
        """Let the client talk through every scenario that ends well."""
        for scenario in WANTED:
            self.check(mode, scenario, partial(converse, talk, scenario))

    def refuse(
        self,
        mode: str,
        scenario: str,
        ask: Ask,
        error: type[Exception],
        message: str = "",
    ) -> None:
        """Let the client meet a failure: it must raise its own error, with our message."""
        self.check(mode, scenario, partial(refuse, ask, scenario, error, message))

    def check(self, mode: str, scenario: str, run: Callable[[], None]) -> None:
        """Run one check and print how it went."""
        line = {"judge": self.client, "wire": self.wire, "mode": mode, "scenario": scenario, "ok": True}
        started = time.perf_counter()
        try:
            run()
        except Exception as error:  # noqa: BLE001  whatever a client raises is its verdict
            traceback.print_exc()
            self.failures += 1
            line |= {"ok": False, "error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(line | {"seconds": round(time.perf_counter() - started, 3)}), flush=True)

    def close(self) -> None:
        """End with what it came to."""
        sys.exit(1 if self.failures else 0)


def converse(talk: Callable[[str, Weather], Heard], scenario: str) -> None:
    """Check what was called, what was heard, and that the results came through."""
    weather = Weather()
    heard = talk(scenario, weather)
    assert weather.asked == WANTED[scenario], weather.asked
    assert heard.opening in {None, OPENING}, heard.opening
    assert heard.thought in {None, THOUGHT}, heard.thought
    for asked, said in zip(weather.asked, weather.said, strict=True):
        plain, escaped = (f"get_weather({asked['city']}) said <{said}>.", json.dumps(said, ensure_ascii=False))
        assert plain in heard.final or escaped in heard.final, (plain, heard.final)


def refuse(ask: Ask, scenario: str, error: type[Exception], message: str) -> None:
    """Check that the client raises what its users catch."""
    wanted = message or {"error": REFUSED, "midstream": BROKEN}[scenario]
    raised = None
    try:
        ask(scenario)
    except error as caught:
        raised = caught
    assert raised is not None, f"nothing was raised; wanted {error.__name__}"
    assert wanted in str(raised), raised
