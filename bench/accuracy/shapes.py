"""Tasks in shapes that BFCL has few of: many tools, nested schemas, the tool sets of real agents.

forty_tools    a task of BFCL's set `multiple`, and tools of other tasks around its own, 40 in all
nested         tasks of our own whose arguments are objects and lists of objects
agents         small tasks with files, for the tools that five coding agents send (testkit/golden/requests.jsonl)

Rows and right answers have the format of BFCL, which data.py reads.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from bench.accuracy.languages import GROUP, Answers, Row
from testkit.wire_requests import REQUESTS
from toolspeak.ir.json import Json, JsonObject

FORTY_TOOLS, NESTED, AGENTS = "forty_tools", "nested", "agents"
SETS = (FORTY_TOOLS, NESTED, AGENTS)
TOOL_COUNT = 40
FORTY_FROM = ("multiple", "simple_python")
"""The set of the tasks, and another one that tools are taken from."""
_WORD = re.compile(r"[a-z]{4,}")
_SCRUBBED = re.compile(r'"\[scrubbed:\d+\]"')


# ---------------------------------------------------------------- many tools


def forty_tools(rows: Sequence[Row], answers: dict[str, Answers], others: Sequence[Row]) -> list[tuple[Row, Answers]]:
    """Return the tasks with 40 tools each; a task belongs to the split of the task that it is made of."""
    pool = {function["name"]: function for row in (*rows, *others) for function in row["function"]}
    return [(_among_forty(row, list(pool.values())), answers[row["id"]]) for row in rows]


def _among_forty(row: Row, pool: Sequence[Row]) -> Row:
    """Put a task's tools among others, always the same ones; tools that could also do the task are left out."""
    draw = random.Random(row["id"])
    asked = " ".join(message["content"] for message in row["question"][0])
    about = _words(" ".join((asked, *(function["name"] for function in row["function"]))))
    strangers = [function for function in pool if about.isdisjoint(_words(function["name"]))]
    tools = [*row["function"], *draw.sample(strangers, TOOL_COUNT - len(row["function"]))]
    draw.shuffle(tools)
    return {**row, "id": f"{row['id']}{GROUP}{FORTY_TOOLS}", "function": tools}


def _words(text: str) -> set[str]:
    return {word.rstrip("s") for word in _WORD.findall(text.lower())}


# ---------------------------------------------------------------- nested schemas


def nested() -> list[tuple[Row, Answers]]:
    """Return the tasks with nested arguments; the last two need no call."""
    return [
        _task(f"{NESTED}_{number}", sentence, [_tool(*tool)], [{tool[0]: right}] if right else [])
        for number, (sentence, tool, right) in enumerate(_nested())
    ]


def _task(id: str, sentence: str, tools: list[Row], answers: Answers) -> tuple[Row, Answers]:
    return {"id": id, "question": [[{"role": "user", "content": sentence}]], "function": tools}, answers


def _tool(name: str, description: str, properties: JsonObject) -> Row:
    return {"name": name, "description": description, "parameters": _object(**properties)}


def _object(**properties: Json) -> JsonObject:
    return {"type": "dict", "properties": properties, "required": list(properties)}


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def _is(kind: str, description: str = "") -> JsonObject:
    return {"type": kind, **({"description": description} if description else {})}


_Nested = tuple[str, tuple[str, str, JsonObject], dict[str, list[Json]]]


def _nested() -> Iterator[_Nested]:
    """Yield a sentence, its tool, and the right arguments; in an object that is right, a list has what is accepted."""
    text, whole, number, truth = _is("string"), _is("integer"), _is("float"), _is("boolean")
    date, clock = _is("string", "Date in the format YYYY-MM-DD"), _is("string", "Time in the format HH:MM")
    order: JsonObject = {
        "customer": _object(name=text, email=text),
        "items": _list(_object(article=_is("string", "Number of the article"), quantity=whole)),
    }
    yield (
        "Order 3 pieces of article A-100 and 1 piece of article B-205 for Jane Miller, jane@shop.example.",
        ("create_order", "Create an order in the shop.", order),
        {
            "customer": [{"name": "Jane Miller", "email": "jane@shop.example"}],
            "items": [[{"article": "A-100", "quantity": 3}, {"article": "B-205", "quantity": 1}]],
        },
    )
    yield (
        'Put the meeting "Budget" into the calendar for 2027-04-09, from 10:00 to 11:30.',
        (
            "add_meeting",
            "Put a meeting into the calendar.",
            {"title": text, "when": _object(date=date, start=clock, end=clock)},
        ),
        {"title": ["Budget"], "when": [{"date": "2027-04-09", "start": "10:00", "end": "11:30"}]},
    )
    address = _object(street=_is("string", "Name of the street"), number=whole, city=text, postcode=text)
    yield (
        "Save the contact Omar Haddad, who lives at Lindenstrasse 14, 50674 Cologne.",
        (
            "save_contact",
            "Save a contact with its address.",
            {"person": _object(first=text, last=text), "address": address},
        ),
        {
            "person": [{"first": "Omar", "last": "Haddad"}],
            "address": [{"street": "Lindenstrasse", "number": 14, "city": "Cologne", "postcode": "50674"}],
        },
    )
    flight: JsonObject = {
        "traveller": _object(name=text, age=whole),
        "flight": _object(origin=text, destination=text, date=date),
    }
    yield (
        "Book a flight from Vienna to Dublin on 2027-08-21 for Paul Novak, who is 34 years old.",
        ("book_flight", "Book a flight for a traveller.", flight),
        {
            "traveller": [{"name": "Paul Novak", "age": 34}],
            "flight": [{"origin": "Vienna", "destination": "Dublin", "date": "2027-08-21"}],
        },
    )
    yield (
        "Write an invoice for the client Acme: a chair for 49.5 dollars and a desk for 180 dollars.",
        (
            "create_invoice",
            "Write an invoice for a client.",
            {"client": text, "lines": _list(_object(article=text, dollars=number))},
        ),
        {
            "client": ["Acme"],
            "lines": [
                [{"article": ["chair", "a chair"], "dollars": 49.5}, {"article": ["desk", "a desk"], "dollars": 180.0}]
            ],
        },
    )
    every = _object(count=whole, unit={"type": "string", "enum": ["day", "week", "month"]})
    yield (
        'Remind me to "water the plants" at 08:15, every 3 days.',
        ("set_reminder", "Set a reminder that repeats.", {"text": text, "time": clock, "every": every}),
        {"text": ["water the plants"], "time": ["08:15", "8:15"], "every": [{"count": 3, "unit": "day"}]},
    )
    point = _object(latitude=number, longitude=number)
    yield (
        "Plan a route from latitude 48.2, longitude 16.4 to latitude 47.1, longitude 15.4.",
        ("plan_route", "Plan a route between two points.", {"start": point, "end": point}),
        {"start": [{"latitude": 48.2, "longitude": 16.4}], "end": [{"latitude": 47.1, "longitude": 15.4}]},
    )
    server: JsonObject = {
        "host": text,
        "network": _object(port=whole, tls=_is("boolean", "Whether connections are encrypted")),
        "limits": _object(cpus=whole, memory_gigabytes=whole),
    }
    yield (
        "Configure the server db1 to listen on port 5433 with TLS, with 4 CPUs and 16 gigabytes of memory.",
        ("configure_server", "Configure the network and the limits of a server.", server),
        {
            "host": ["db1"],
            "network": [{"port": 5433, "tls": True}],
            "limits": [{"cpus": 4, "memory_gigabytes": 16}],
        },
    )
    style = _object(fill=_is("string", "Color"), border=_object(color=text, width=_is("integer", "In pixels")))
    yield (
        "Draw a circle at x 120 and y 80, filled with yellow, with a black border of 2 pixels.",
        (
            "draw_shape",
            "Draw a shape on the canvas.",
            {
                "shape": {"type": "string", "enum": ["circle", "square"]},
                "position": _object(x=whole, y=whole),
                "style": style,
            },
        ),
        {
            "shape": ["circle"],
            "position": [{"x": 120, "y": 80}],
            "style": [{"fill": "yellow", "border": {"color": "black", "width": 2}}],
        },
    )
    ingredients = _list(_object(name=text, grams=whole))
    yield (
        "Save the recipe Pancakes with 250 grams of flour, 50 grams of butter and 20 grams of sugar.",
        ("save_recipe", "Save a recipe with its ingredients.", {"name": text, "ingredients": ingredients}),
        {
            "name": ["Pancakes"],
            "ingredients": [
                [{"name": "flour", "grams": 250}, {"name": "butter", "grams": 50}, {"name": "sugar", "grams": 20}]
            ],
        },
    )
    filters = _object(rooms=_object(least=whole, most=whole), rent=_object(most=_is("integer", "In euros a month")))
    yield (
        "Search for flats in Graz with 2 to 3 rooms and a rent of at most 900 euros.",
        ("search_flats", "Search for flats to rent in a city.", {"city": text, "filters": filters}),
        {"city": ["Graz"], "filters": [{"rooms": {"least": 2, "most": 3}, "rent": {"most": 900}}]},
    )
    yield (
        "Create the user mlind, who may read and write but is not an administrator.",
        (
            "create_user",
            "Create a user with permissions.",
            {"name": text, "permissions": _object(read=truth, write=truth, administrator=truth)},
        ),
        {"name": ["mlind"], "permissions": [{"read": True, "write": True, "administrator": False}]},
    )
    yield "Why is the sky blue?", ("create_order", "Create an order in the shop.", order), {}
    yield "Good morning! Did you sleep well?", ("book_flight", "Book a flight for a traveller.", flight), {}


# ---------------------------------------------------------------- agents

AGENT_REQUESTS = {
    "claude_code": "claude-code/001",
    "opencode": "err/opencode-mid/002",
    "qwen_code": "err/qwen-mid/001",
    "continue": "continue-cli/001",
    "pi": "err/pi-anthropic-messages-mid/001",
}
"""A request of each agent, by its id among the golden requests."""
_READ, _WRITE, _SHELL, _HELLO = (
    "Read the file /home/ada/notes/todo.md.",
    'Write the text "Buy milk" into the new file /home/ada/notes/shopping.txt.',
    "Run the command `git log --oneline` in the shell.",
    "Hello! How are you?",
)
_FILE, _NEW, _TEXT, _COMMAND = (
    "/home/ada/notes/todo.md",
    "/home/ada/notes/shopping.txt",
    "Buy milk",
    "git log --oneline",
)
_AGENT_CALLS: dict[str, tuple[tuple[str, str, dict[str, Json]], ...]] = {
    "claude_code": (
        (_READ, "Read", {"file_path": _FILE}),
        (_WRITE, "Write", {"file_path": _NEW, "content": _TEXT}),
    ),
    "opencode": (
        (_READ, "read", {"filePath": _FILE}),
        (_WRITE, "write", {"filePath": _NEW, "content": _TEXT}),
        (_SHELL, "bash", {"command": _COMMAND}),
        ("Find all files that match **/*.toml.", "glob", {"pattern": "**/*.toml"}),
    ),
    "qwen_code": (
        (_READ, "read_file", {"file_path": _FILE}),
        (_WRITE, "write_file", {"file_path": _NEW, "content": _TEXT}),
        ("Find all files that match **/*.toml.", "glob", {"pattern": "**/*.toml"}),
    ),
    "continue": (
        (_READ, "Read", {"filepath": _FILE}),
        (_WRITE, "Write", {"filepath": _NEW, "content": _TEXT}),
        (_SHELL, "Bash", {"command": _COMMAND}),
        ("Which files are in the directory /home/ada/notes?", "List", {"dirpath": "/home/ada/notes"}),
    ),
    "pi": (
        (_READ, "read", {"path": _FILE}),
        (_WRITE, "write", {"path": _NEW, "content": _TEXT}),
        (_SHELL, "bash", {"command": _COMMAND}),
    ),
}
"""The request for each agent's tools, and the right call. Claude Code's shell is left out: it takes a free-text
description, which no list of right values can hold."""


def agents() -> list[tuple[Row, Answers]]:
    """Return the tasks with agents' tools, without the long descriptions, which are not in the golden requests."""
    sent = _agent_tools()
    tasks: list[tuple[Row, Answers]] = []
    for agent, calls in _AGENT_CALLS.items():
        for sentence, name, right in calls:
            answer: Answers = [{name: {key: [value] for key, value in right.items()}}]
            tasks.append(_task(f"{AGENTS}_{agent}_{len(tasks)}", sentence, sent[agent], answer))
        tasks.append(_task(f"{AGENTS}_{agent}_{len(tasks)}", _HELLO, sent[agent], []))
    return tasks


def _agent_tools() -> dict[str, list[Row]]:
    bodies = {row["id"]: row["body"] for row in map(json.loads, REQUESTS.read_text().splitlines())}
    return {agent: [_function(tool) for tool in bodies[id]["tools"]] for agent, id in AGENT_REQUESTS.items()}


def _function(tool: dict[str, Any]) -> Row:
    """Return a tool of a golden request in BFCL's format."""
    inner = tool.get("function", tool)
    parameters: JsonObject = (
        inner.get("parameters") or inner.get("input_schema") or {"type": "object", "properties": {}}
    )
    function: Row = {"name": inner["name"], "description": inner.get("description", ""), "parameters": parameters}
    return json.loads(_SCRUBBED.sub('""', json.dumps(function)))
