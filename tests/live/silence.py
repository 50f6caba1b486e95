"""`just silence-live`: a real model that would leave its user without a call, bare and behind the gateway.

Three situations, the same questions in all of them, whole and streamed in turn:

    dropped     the server drops `tools` in silence, as servers do that know none; the gateway may only look (`--probe
                look`), and has to notice by the answer or by the number of prompt tokens
    leaked      the server has the tools, and returns the model's call as text
    narrated    a system prompt asks the model to be friendly, and it only says what it will look up, or what the user
                can call

It counts how often the client gets the right call, and how many requests that took. The bar is: more calls than bare
where tools were dropped or calls leaked, no fewer where the model narrates, no error, and once tools were dropped the
gateway knows it: the last questions are asked once each, with the tools as text. A model of 1.5 GB that was told to
announce its work goes on to announce it when it is asked for the call, native and emulated; only a grammar would stop
it.

    python -m tests.live.silence [--model NAME] [--no-keep]
"""

import argparse
import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from testkit.llama_models import MODELS
from testkit.llama_server import PIN, LlamaServer
from testkit.report import close
from tests.live.gateway import gateway
from tests.live.recorder import Exchange, Recorder

RESULT: Final = Path(__file__).resolve().parents[2] / "bench/results/silence-live.json"
MODEL: Final = "qwen2.5-coder-1.5b"
PATIENCE_S: Final = 600.0
MAX_TOKENS: Final = 200
LAST: Final = 4
"""Questions at the end that must need one request each."""
FRIENDLY: Final = (
    "You are a friendly assistant. Begin every reply by telling the user, in one short sentence, what you are going to "
    "look up for them."
)
SITUATIONS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "dropped": (("tools", "tool_choice"), ""),
    "leaked": ((), ""),
    "narrated": ((), FRIENDLY),
}
"""Fields that the server drops, and the system prompt."""
QUESTIONS: Final = (
    ("What is the weather in Oslo right now?", "get_weather", "city", "oslo"),
    ("Which meetings do I have on 2026-12-01?", "list_meetings", "date", "2026-12-01"),
    ("What does the share of ASML cost at the moment?", "get_share_price", "symbol", "asml"),
    ("Show me the content of the file notes.txt.", "read_file", "path", "notes.txt"),
    ("Is order 81723 on its way?", "get_order", "number", "81723"),
    ("How many people live in our house with the id h-12?", "get_house", "id", "h-12"),
    ("When does the next bus leave from Main Street?", "next_bus", "stop", "main street"),
    ("Turn on the lamp in the kitchen.", "turn_on_lamp", "room", "kitchen"),
)
ABOUT: Final = {
    "get_weather": ("Return the present weather in a city: temperature, wind and rain.", "The city, in English."),
    "list_meetings": ("List the meetings in the user's calendar on one day.", "The day, as YYYY-MM-DD."),
    "get_share_price": ("Return the latest price of a share on its home exchange.", "The ticker symbol."),
    "read_file": ("Read a text file in the user's working folder.", "The path, relative to the folder."),
    "get_order": ("Return the state of an order: paid, packed, sent or delivered.", "The number of the order."),
    "get_house": ("Return what is known about a house and the people in it.", "The id of the house."),
    "next_bus": ("Return the next departures of buses from a stop.", "The name of the stop."),
    "turn_on_lamp": ("Turn on the lamp in one room of the user's home.", "The room."),
}
"""Descriptions of each tool and of its parameter, as long as those of real tools."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question, and what came of it."""

    situation: str
    question: str
    streamed: bool
    bare: str
    """The text of the bare server's answer."""
    bare_called: bool
    called: bool
    status: int
    text: str
    requests: int
    """Requests that the gateway sent to the model for it."""
    as_text: bool
    """Whether the gateway's last request had the tools as text, in the prompt."""


def main() -> None:
    """Ask, and say what came of it."""
    options = argparse.ArgumentParser(prog="tests.live.silence")
    options.add_argument("--model", default=MODEL, choices=MODELS)
    options.add_argument("--no-keep", action="store_true")
    chosen = options.parse_args()
    with LlamaServer(chosen.model) as server:
        rows = [row for situation in SITUATIONS for row in asked(server, situation)]
    counts = {situation: count([row for row in rows if row.situation == situation]) for situation in SITUATIONS}
    knows = all(row.as_text and row.requests == 1 for row in rows if row.situation == "dropped" and is_last(row))
    least = {name: each["bare_called"] + (name != "narrated") for name, each in counts.items()}
    ok = knows and all(each["called"] >= least[name] and not each["errors"] for name, each in counts.items())
    if not chosen.no_keep:
        kept = {"server": PIN, "model": chosen.model, "summary": counts, "rows": list(map(asdict, rows))}
        RESULT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    close("silence-live", ok=ok, model=chosen.model, knows_dropped_tools=knows, **counts)


def asked(server: LlamaServer, situation: str) -> Iterator[Row]:
    """Ask all questions of one situation, bare first."""
    with (
        Recorder(server.url, SITUATIONS[situation][0]) as behind,
        gateway(f"{behind.url}/v1", "--probe", "look") as url,
        Recorder(url) as front,
    ):
        for number, (question, name, key, value) in enumerate(QUESTIONS):
            body = request(server.model, question, situation, streamed=bool(number % 2))
            bare = answer(behind, body)
            seen = len(behind.exchanges)
            through = answer(front, body)
            rest = behind.exchanges[seen:]
            row = Row(
                situation,
                question,
                body["stream"],
                bare.wrote,
                has_call(bare, name, key, value),
                has_call(through, name, key, value),
                through.status,
                through.wrote,
                len(rest),
                bool(rest) and "tools" not in rest[-1].asked,
            )
            print(f"{situation} {question}\n  bare  {shown(bare)}\n  here  {shown(through)}  ({len(rest)})", flush=True)
            yield row


def request(model: str, question: str, situation: str, *, streamed: bool) -> dict[str, Any]:
    """Return the request of a client, with all tools."""
    said = {"system": SITUATIONS[situation][1], "user": question}
    return {
        "model": model,
        "messages": [{"role": role, "content": text} for role, text in said.items() if text],
        "tools": [_tool(name, key) for _, name, key, _ in QUESTIONS],
        "stream": streamed,
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
    }


def _tool(name: str, key: str) -> dict[str, Any]:
    description, about = ABOUT[name]
    fields = {key: {"type": "string", "description": about}}
    parameters = {"type": "object", "properties": fields, "required": [key]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def answer(recorder: Recorder, body: dict[str, Any]) -> Exchange:
    """Send a request through a recorder, and return what it has kept of it."""
    split = urlsplit(recorder.url)
    connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=PATIENCE_S)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        connection.getresponse().read()
    finally:
        connection.close()
    while not (kept := [each for each in recorder.exchanges if each.asked == body]):
        time.sleep(0.01)  # it is kept after the last byte was sent
    return kept[-1]


def has_call(exchange: Exchange, name: str, key: str, value: str) -> bool:
    """Return whether the answer is the right call, as a client sees it."""
    calls: list[dict[str, Any]] = [
        piece for pieces in exchange.called.replace("][", "]\n[").splitlines() for piece in json.loads(pieces)
    ]
    names = [piece["function"]["name"] for piece in calls if piece["function"].get("name")]
    arguments = "".join(piece["function"].get("arguments") or "" for piece in calls)
    return names == [name] and value in str(json.loads(arguments).get(key)).lower()


def shown(exchange: Exchange) -> str:
    """Write an answer on one line."""
    return " ".join((exchange.called or exchange.wrote).split())[:110]


def is_last(row: Row) -> bool:
    """Return whether this is one of the last questions."""
    return row.question in [question for question, *_ in QUESTIONS[-LAST:]]


def count(rows: list[Row]) -> dict[str, int]:
    """Count the calls of both, the errors, and the requests of the gateway."""
    return {
        "questions": len(rows),
        "bare_called": sum(row.bare_called for row in rows),
        "called": sum(row.called for row in rows),
        "errors": sum(row.status != http.client.OK for row in rows),
        "requests": sum(row.requests for row in rows),
    }


if __name__ == "__main__":
    main()
