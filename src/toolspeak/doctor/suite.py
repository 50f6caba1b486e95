"""The forty-eight tasks of the doctor: twenty-four of eight kinds, three of each, and as many plain requests.

They are short, for models that read fifty tokens a second, and none of them is from a benchmark: a profile that was
chosen by a benchmark's own tasks would say nothing about that benchmark. Three tasks need no call: two have nothing to
do with any tool; the third mentions the subject of a tool, and asks for something else.

The tasks that select a form are never the ones that confirm it: of fifteen equally good forms the best one is lucky,
and its luck must not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from toolspeak.doctor.plain_requests import PLAIN
from toolspeak.doctor.task import AnyOf, DoctorTask, ExpectedCall, TaskKind, TaskStep
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.tool import Tool

_TEXT: Final[JsonObject] = {"type": "string"}
_WHOLE: Final[JsonObject] = {"type": "integer"}
_NUMBER: Final[JsonObject] = {"type": "number"}
_TRUTH: Final[JsonObject] = {"type": "boolean"}
OPTIONAL: Final = frozenset(("author", "date", "due", "minutes", "phone"))
"""Arguments that no task mentions: a model that fills them in has invented the value."""


def _object(**properties: JsonObject) -> JsonObject:
    listed: dict[str, Json] = {**properties}
    required: list[Json] = [name for name in properties if name not in OPTIONAL]
    return {"type": "object", "properties": listed, "required": required}


FERRIES = Tool("ferry_times", "List the departures of ferries from a harbour.", _object(harbour=_TEXT, date=_TEXT))
SHELF = Tool("find_book", "Find the shelf of a book.", _object(title=_TEXT, author=_TEXT))
BELL = Tool("ring_bell", "Ring the bell of the house.", _object(times=_WHOLE))
LEND = Tool("lend_book", "Lend a book to a member.", _object(title=_TEXT, member=_TEXT, due=_TEXT))
WATER = Tool("water_bed", "Water one bed of the garden.", _object(bed=_TEXT, liters=_NUMBER, minutes=_WHOLE))
NOTE = Tool("post_note", "Post a note on the board.", _object(text=_TEXT))
TABLE = Tool(
    "book_table",
    "Book a table.",
    _object(people=_WHOLE, day={"type": "string", "enum": ["friday", "saturday", "sunday"]}, outside=_TRUTH),
)
PAINT = Tool("mix_paint", "Mix a paint from colors.", _object(colors={"type": "array", "items": _TEXT}, liters=_NUMBER))
PARCEL = Tool(
    "send_parcel",
    "Send a parcel.",
    _object(weight_kg=_NUMBER, fragile=_TRUTH, to=_object(street=_TEXT, city=_TEXT), phone=_TEXT),
)
GATE = Tool("open_gate", "Open the gate of a yard.", _object(yard=_TEXT))
MEMBER = Tool("find_member", "Find the number of a library member.", _object(name=_TEXT))
FILE = Tool("save_file", "Save a text file.", _object(path=_TEXT, content=_TEXT))
TOOLS: Final = (BELL, FERRIES, SHELF, LEND, WATER, NOTE, TABLE, PAINT, PARCEL, GATE, MEMBER, FILE)
"""All twelve, for tasks with many."""


def _asked(text: str) -> tuple[Message, ...]:
    return (Message(Role.USER, (Text(text),)),)


def _answered(question: str, call: Call, result: str, *, failed: bool = False) -> tuple[Message, ...]:
    """Return a conversation with a question, a call and its result."""
    back = Result(call.id, (Text(result),), call.name, is_error=failed)
    return (*_asked(question), Message(Role.ASSISTANT, (call,)), Message(Role.TOOL, (back,)))


def _calls(*wanted: ExpectedCall) -> tuple[TaskStep, ...]:
    return (TaskStep(wanted),)


def _words(*says: str) -> tuple[TaskStep, ...]:
    return (TaskStep(says=says),)


_FIRST: Final = (
    DoctorTask(
        "ferry",
        TaskKind.ONE,
        (FERRIES,),
        _asked("When do ferries leave from Moss?"),
        _calls(ExpectedCall("ferry_times", {"harbour": "Moss"})),
    ),
    DoctorTask(
        "shelf",
        TaskKind.PICK,
        (FERRIES, SHELF, BELL),
        _asked("On which shelf is the book Dune?"),
        _calls(ExpectedCall("find_book", {"title": "Dune"})),
    ),
    DoctorTask(
        "table",
        TaskKind.TYPES,
        (TABLE,),
        _asked("Book a table for 6 people on saturday, outside."),
        _calls(ExpectedCall("book_table", {"people": 6, "day": "saturday", "outside": True})),
    ),
    DoctorTask(
        "quotes",
        TaskKind.TEXT,
        (NOTE,),
        _asked('Post this note, word for word: The "old" boat is sold'),
        _calls(
            ExpectedCall(
                "post_note", {"text": AnyOf(('The "old" boat is sold', 'The "old" boat is sold.'))}, exact=True
            )
        ),
    ),
    DoctorTask("hello", TaskKind.NONE, (SHELF, BELL), _asked("Good morning! How are you today?"), _words()),
    DoctorTask(
        "departure",
        TaskKind.RESULT,
        (FERRIES,),
        _answered(
            "When does the next ferry leave from Moss?",
            Call("call_1", "ferry_times", '{"harbour": "Moss"}'),
            "next ferry: 14:35",
        ),
        _words("14:35"),
    ),
    DoctorTask(
        "harbours",
        TaskKind.TWO,
        (FERRIES,),
        _asked("When do ferries leave from Moss, and when from Horten? Look up both."),
        _calls(ExpectedCall("ferry_times", {"harbour": "Moss"}), ExpectedCall("ferry_times", {"harbour": "Horten"})),
    ),
    DoctorTask(
        "tell",
        TaskKind.STEPS,
        (SHELF, LEND),
        _asked("Find the shelf of the book Emma and tell me where it is."),
        (TaskStep((ExpectedCall("find_book", {"title": "Emma"}),), results=("shelf C4",)), TaskStep(says=("C4",))),
    ),
)
_SECOND: Final = (
    DoctorTask(
        "lend",
        TaskKind.ONE,
        (LEND,),
        _asked("Lend the book Heidi to Amara."),
        _calls(ExpectedCall("lend_book", {"title": "Heidi", "member": "Amara"})),
    ),
    DoctorTask(
        "garden",
        TaskKind.PICK,
        (BELL, LEND, WATER, NOTE, GATE),
        _asked("Water the roses with 3 liters."),
        _calls(ExpectedCall("water_bed", {"bed": AnyOf(("roses", "rose")), "liters": 3})),
    ),
    DoctorTask(
        "paint",
        TaskKind.TYPES,
        (PAINT,),
        _asked("Mix 2.5 liters of paint from red, white and blue."),
        _calls(ExpectedCall("mix_paint", {"colors": ["red", "white", "blue"], "liters": 2.5})),
    ),
    DoctorTask(
        "lines",
        TaskKind.TEXT,
        (NOTE,),
        _asked("Post a note that has these two lines:\nBread\nMilk"),
        _calls(ExpectedCall("post_note", {"text": AnyOf(("Bread\nMilk", "Bread\nMilk\n"))}, exact=True)),
    ),
    DoctorTask("sum", TaskKind.NONE, (FERRIES, LEND, PAINT), _asked("What is two plus three?"), _words()),
    DoctorTask(
        "copies",
        TaskKind.RESULT,
        (SHELF,),
        _answered(
            "How many copies of Emma are there?",
            Call("call_1", "find_book", '{"title": "Emma"}'),
            '{"shelf": "B7", "copies": 9}',
        ),
        _words("9", "nine"),
    ),
    DoctorTask(
        "bell_and_book",
        TaskKind.TWO,
        (BELL, SHELF),
        _asked("Do two things: ring the bell 2 times, and find the shelf of the book Emma."),
        _calls(ExpectedCall("ring_bell", {"times": 2}), ExpectedCall("find_book", {"title": "Emma"})),
    ),
    DoctorTask(
        "member",
        TaskKind.STEPS,
        (MEMBER, LEND),
        _asked("First find the number of the member Amara. Then lend the book Heidi to that number."),
        (
            TaskStep((ExpectedCall("find_member", {"name": "Amara"}),), results=("number M71",)),
            TaskStep((ExpectedCall("lend_book", {"title": "Heidi", "member": "M71"}),)),
        ),
    ),
)
_THIRD: Final = (
    DoctorTask(
        "bell",
        TaskKind.ONE,
        (BELL,),
        _asked("Ring the bell four times."),
        _calls(ExpectedCall("ring_bell", {"times": 4})),
    ),
    DoctorTask(
        "gate",
        TaskKind.PICK,
        TOOLS,
        _asked("Open the gate of the north yard."),
        _calls(ExpectedCall("open_gate", {"yard": AnyOf(("north", "north yard", "the north yard"))})),
    ),
    DoctorTask(
        "parcel",
        TaskKind.TYPES,
        (PARCEL, NOTE),
        _asked("Send a fragile parcel of 4 kg to the city Bergen, street Elm 9."),
        _calls(
            ExpectedCall("send_parcel", {"weight_kg": 4, "fragile": True, "to": {"street": "Elm 9", "city": "Bergen"}})
        ),
    ),
    DoctorTask(
        "code",
        TaskKind.TEXT,
        (FILE, NOTE),
        _asked('Save the file plan.txt with this content, word for word: if x < 3 and name == "Ada": stop'),
        _calls(
            ExpectedCall("save_file", {"path": "plan.txt", "content": 'if x < 3 and name == "Ada": stop'}, exact=True)
        ),
    ),
    DoctorTask("boat", TaskKind.NONE, TOOLS, _asked("Is a ferry a kind of boat?"), _words()),
    DoctorTask(
        "lent",
        TaskKind.RESULT,
        (LEND,),
        _answered(
            "Lend the book Dune to Amara.",
            Call("call_1", "lend_book", '{"title": "Dune", "member": "Amara"}'),
            "not possible: the book is lent until Friday",
            failed=True,
        ),
        _words("Friday"),
    ),
    DoctorTask(
        "beds",
        TaskKind.TWO,
        (WATER, GATE),
        _asked("Water the roses with 3 liters and the beans with 5 liters."),
        _calls(
            ExpectedCall("water_bed", {"bed": "roses", "liters": 3}),
            ExpectedCall("water_bed", {"bed": "beans", "liters": 5}),
        ),
    ),
    DoctorTask(
        "and_horten",
        TaskKind.STEPS,
        (FERRIES, BELL),
        (
            *_answered(
                "When does the next ferry leave from Moss?",
                Call("call_1", "ferry_times", '{"harbour": "Moss"}'),
                "next ferry: 14:35",
            ),
            Message(Role.ASSISTANT, (Text("The next ferry from Moss leaves at 14:35."),)),
            *_asked("And from Horten?"),
        ),
        _calls(ExpectedCall("ferry_times", {"harbour": "Horten"})),
    ),
)
MIXED: Final = (*_FIRST, *_SECOND, *_THIRD)
SUITE: Final = (*MIXED, *PLAIN)
SUITE_VERSION: Final = sha256(repr(SUITE).encode()).hexdigest()[:16]
"""Results of another version of the suite are not used."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The tasks that select the best form, and those that compare it with what the user has today."""

    selection: tuple[DoctorTask, ...]
    confirmation: tuple[DoctorTask, ...]


def _mixed(plain: Sequence[DoctorTask], others: Sequence[DoctorTask]) -> tuple[DoctorTask, ...]:
    """Return both in turn, so that an interrupted trial has asked some of each; the rest of the longer one follows."""
    pairs = [task for pair in zip(plain, others, strict=False) for task in pair]
    return (*pairs, *plain[len(others) :], *others[len(plain) :])


_PLAIN_TO_SELECT: Final = 7
"""With the other seventeen, 29 of the tasks that confirm a form need a call: enough to see harm (`ENOUGH_CALLS`)."""
FULL: Final = Trial(_mixed(PLAIN[:_PLAIN_TO_SELECT], _FIRST), _mixed(PLAIN[_PLAIN_TO_SELECT:], (*_SECOND, *_THIRD)))
QUICK: Final = Trial(FULL.selection[:4], FULL.confirmation[:12])
