"""Twenty tasks of our own in ten languages and in English, to see what the language of a request costs.

    just accuracy --set language_de language_ja --form hermes 'hermes guardrails'

Twelve of the tasks need calls (one tool, the right one of several, two calls at once) and eight need none (small talk,
a question that no tool can answer). Each set asks the same tasks, so that only the language differs. Half of the tasks
describe their tools in English, as most programs do, and half in the language of the request; names are English in
both. The texts are in translations/. A city or person may be written as in the request or as in English.

Rows and right answers have the format of BFCL, which data.py reads.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from toolspeak.ir.json import Json, JsonObject

TRANSLATIONS = Path(__file__).with_name("translations")
ENGLISH = "en"
LANGUAGES = (ENGLISH, "de", "fr", "es", "pt", "it", "ru", "zh", "ja", "ko", "ar")
PREFIX = "language_"
SETS = tuple(PREFIX + language for language in LANGUAGES)
GROUP = "@"
"""Separates the task from the language in an id. The part before it decides the split (split.py): a task that was
looked at in one language counts as looked at in all languages."""
OPTIONAL = ""

Row = dict[str, Any]
Answers = list[dict[str, dict[str, list[Json]]]]


@dataclass(frozen=True, slots=True)
class Translation:
    """The texts of one language."""

    sentences: dict[str, str]
    """The user's message, by task."""
    values: dict[str, list[Json]]
    """The right spellings of a value, by the name that a task gives it."""
    tools: dict[str, str]
    """The descriptions of tools."""
    parameters: dict[str, str]
    """The descriptions of parameters."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A task without its words."""

    tools: tuple[str, ...]
    calls: tuple[tuple[str, JsonObject], ...] = ()
    """The right calls. A value such as `$lisbon` is replaced by its spellings; a list holds all accepted values."""


_ROOM: JsonObject = {"type": "string", "enum": ["kitchen", "bedroom", "living_room"]}
_TEXT: JsonObject = {"type": "string"}
_COUNT: JsonObject = {"type": "integer"}
TOOLS: dict[str, tuple[dict[str, JsonObject], tuple[str, ...]]] = {
    "track_parcel": ({"tracking_number": _TEXT}, ()),
    "get_weather": ({"city": _TEXT, "days": _COUNT}, ("days",)),
    "set_light": ({"room": _ROOM, "percent": _COUNT}, ()),
    "set_heating": ({"room": _ROOM, "degrees": _COUNT}, ()),
    "play_music": ({"artist": _TEXT}, ()),
    "find_train": ({"origin": _TEXT, "destination": _TEXT, "date": _TEXT}, ()),
    "find_flight": ({"origin": _TEXT, "destination": _TEXT, "date": _TEXT}, ()),
    "find_hotel": ({"city": _TEXT, "date": _TEXT, "nights": _COUNT}, ()),
    "set_timer": ({"minutes": _COUNT, "repeat": _COUNT}, ("repeat",)),
    "set_alarm": ({"time": _TEXT}, ()),
}
"""The parameters of the tools that are described in every language, and which of them may be left out."""
ENGLISH_TOOLS: tuple[Row, ...] = (
    {
        "name": "convert_currency",
        "description": "Convert an amount of money into another currency.",
        "parameters": {
            "type": "dict",
            "properties": {
                "amount": {"type": "float", "description": "The amount to convert"},
                "source": {"type": "string", "description": "Currency of the amount, as an ISO 4217 code such as USD"},
                "target": {"type": "string", "description": "Currency to convert to, as an ISO 4217 code such as USD"},
            },
            "required": ["amount", "source", "target"],
        },
    },
    {
        "name": "book_table",
        "description": "Reserve a table in a restaurant.",
        "parameters": {
            "type": "dict",
            "properties": {
                "restaurant": {"type": "string", "description": "Name of the restaurant"},
                "guests": {"type": "integer", "description": "Number of people"},
                "date": {"type": "string", "description": "Date in the format YYYY-MM-DD"},
                "time": {"type": "string", "description": "Time in the format HH:MM"},
            },
            "required": ["restaurant", "guests", "date", "time"],
        },
    },
    {
        "name": "transfer_money",
        "description": "Send money from the bank account to a person.",
        "parameters": {
            "type": "dict",
            "properties": {
                "recipient": {"type": "string", "description": "Name of the person"},
                "euros": {"type": "float", "description": "Amount in euros"},
            },
            "required": ["recipient", "euros"],
        },
    },
    {
        "name": "add_expense",
        "description": "Write an expense into the household budget.",
        "parameters": {
            "type": "dict",
            "properties": {
                "category": {"type": "string", "enum": ["food", "travel", "rent", "other"]},
                "euros": {"type": "float", "description": "Amount in euros"},
            },
            "required": ["category", "euros"],
        },
    },
    {
        "name": "get_balance",
        "description": "Get the balance of the bank account.",
        "parameters": {"type": "dict", "properties": {}, "required": []},
    },
    {
        "name": "write_email",
        "description": "Begin a new e-mail.",
        "parameters": {
            "type": "dict",
            "properties": {
                "to": {"type": "string", "description": "Address of the recipient"},
                "subject": {"type": "string", "description": "Subject, exactly as the user says it"},
            },
            "required": ["to", "subject"],
        },
    },
    {
        "name": "call_phone",
        "description": "Call a phone number.",
        "parameters": {
            "type": "dict",
            "properties": {"number": {"type": "string", "description": "Phone number"}},
            "required": ["number"],
        },
    },
    {
        "name": "get_temperature",
        "description": "Get the present temperature in a city.",
        "parameters": {
            "type": "dict",
            "properties": {"city": {"type": "string", "description": "Name of the city"}},
            "required": ["city"],
        },
    },
)
IN_ENGLISH: dict[str, Sketch] = {
    "timer": Sketch(("set_timer",), (("set_timer", {"minutes": 12, "repeat": [OPTIONAL, 0, 1]}),)),
    "currency": Sketch(
        ("convert_currency",), (("convert_currency", {"amount": 250.0, "source": "CHF", "target": "JPY"}),)
    ),
    "table": Sketch(
        ("book_table",),
        (("book_table", {"restaurant": "Casa Verde", "guests": 4, "date": "2027-03-14", "time": "19:30"}),),
    ),
    "transfer": Sketch(
        ("add_expense", "transfer_money", "get_balance"),
        (("transfer_money", {"recipient": "$anna", "euros": 75.0}),),
    ),
    "email": Sketch(
        ("call_phone", "write_email", "set_alarm"),
        (("write_email", {"to": "info@nordlicht.example", "subject": "$subject"}),),
    ),
    "two_cities": Sketch(
        ("get_temperature",), (("get_temperature", {"city": "$oslo"}), ("get_temperature", {"city": "$madrid"}))
    ),
    "hello": Sketch(("get_weather",)),
    "joke": Sketch(("set_timer",)),
    "painter": Sketch(("get_weather", "convert_currency")),
    "product": Sketch(("book_table",)),
}
"""Tasks whose tools are described in English."""
IN_LANGUAGE: dict[str, Sketch] = {
    "parcel": Sketch(("track_parcel",), (("track_parcel", {"tracking_number": "RX48213977DE"}),)),
    "weather": Sketch(("get_weather",), (("get_weather", {"city": "$lisbon", "days": [OPTIONAL, 1]}),)),
    "heating": Sketch(
        ("set_light", "set_heating", "play_music"), (("set_heating", {"room": "bedroom", "degrees": 21}),)
    ),
    "train": Sketch(
        ("find_flight", "find_hotel", "find_train"),
        (("find_train", {"origin": "$berlin", "destination": "$prague", "date": "2027-06-02"}),),
    ),
    "two_timers": Sketch(
        ("set_timer",),
        (
            ("set_timer", {"minutes": 5, "repeat": [OPTIONAL, 0, 1]}),
            ("set_timer", {"minutes": 20, "repeat": [OPTIONAL, 0, 1]}),
        ),
    ),
    "light_and_alarm": Sketch(
        ("set_light", "set_alarm", "play_music"),
        (("set_light", {"room": "kitchen", "percent": 40}), ("set_alarm", {"time": ["06:45", "6:45"]})),
    ),
    "thanks": Sketch(("find_train",)),
    "cheer_up": Sketch(("find_hotel",)),
    "spider": Sketch(("track_parcel",)),
    "poem": Sketch(("set_heating",)),
}
"""Tasks whose tools are described in the language of the request."""


def rows(name: str) -> list[tuple[Row, Answers]]:
    """Return the tasks of a set such as `language_de`, each with its right calls."""
    language = name.removeprefix(PREFIX)
    own, english = translation(language), translation(ENGLISH)
    half = [_row(slug, sketch, language, english) for slug, sketch in IN_ENGLISH.items()]
    return half + [_row(slug, sketch, language, own) for slug, sketch in IN_LANGUAGE.items()]


@cache
def translation(language: str) -> Translation:
    """Return the texts of a language."""
    return Translation(**json.loads((TRANSLATIONS / f"{language}.json").read_text()))


def _row(slug: str, sketch: Sketch, language: str, described: Translation) -> tuple[Row, Answers]:
    words = translation(language)
    row = {
        "id": f"{PREFIX}{slug}{GROUP}{language}",
        "question": [[{"role": "user", "content": words.sentences[slug]}]],
        "function": [_function(tool, described) for tool in sketch.tools],
    }
    return row, [{tool: {key: _accepted(one, words) for key, one in wanted.items()}} for tool, wanted in sketch.calls]


def _function(name: str, words: Translation) -> Row:
    """Return a tool with the descriptions of a language."""
    if name not in TOOLS:
        return next(tool for tool in ENGLISH_TOOLS if tool["name"] == name)
    parameters, optional = TOOLS[name]
    properties = {key: {**schema, "description": words.parameters[key]} for key, schema in parameters.items()}
    required = [key for key in parameters if key not in optional]
    schema = {"type": "dict", "properties": properties, "required": required}
    return {"name": name, "description": words.tools[name], "parameters": schema}


def _accepted(value: Json, words: Translation) -> list[Json]:
    """Return all values that are right where a sketch has this one."""
    if isinstance(value, str) and value.startswith("$"):
        return words.values[value[1:]]
    return value if isinstance(value, list) else [value]
