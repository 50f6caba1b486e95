"""Twenty-four plain requests: what people ask an assistant every day, with one to three tools, answered by one call.

Most models get most of them right without any help, so these are the tasks on which a form can do harm. Some are worded
otherwise than their tool is described ("Will it rain?" and "Look up the weather"): a guardrail that compares words
drops the right call there.
"""

from typing import Final

from toolspeak.doctor.task import Accepted, AnyOf, DoctorTask, ExpectedCall, TaskKind, TaskStep
from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.message import Message, Role, Text
from toolspeak.ir.tool import Tool


def _tool(name: str, description: str, **types: str) -> Tool:
    properties: dict[str, Json] = {key: {"type": kind} for key, kind in types.items()}
    required: list[Json] = list(types)
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    return Tool(name, description, schema)


TIMER = _tool("set_timer", "Start a timer.", minutes="integer")
CLOCK = _tool("local_time", "Tell the time of day in a city.", city="string")
FORECAST = _tool("forecast", "Look up the weather of a place.", place="string")
MONEY = _tool(
    "convert_money", "Convert money between currencies.", amount="number", from_currency="string", to_currency="string"
)
ITEM = _tool("add_item", "Add an item to the shopping list.", item="string")
LAMP = _tool("switch_lamp", "Switch the lamp of a room on or off.", room="string", on="boolean")
SONG = _tool("play_song", "Play a song.", title="string", artist="string")
SHARE = _tool("share_price", "Get the price of a company's share.", company="string")
TRANSLATE = _tool("translate", "Translate a text into a language.", text="string", language="string")
SUM = _tool("calculate", "Calculate the value of an expression.", expression="string")
READ = _tool("read_file", "Read a text file.", path="string")
FILES = _tool("list_files", "List the files of a folder.", folder="string")
MESSAGE = _tool("send_message", "Send a text message to a contact.", to="string", text="string")
TRACK = _tool("track_parcel", "Find out where a shipment is.", number="string")
ALARM = _tool("set_alarm", "Set the alarm clock.", time="string")
HEATING = _tool("set_heating", "Set the temperature of a room.", room="string", degrees="number")
WORD = _tool("define_word", "Look up a word in the dictionary.", word="string")
COUNTRY = _tool("country_facts", "Get facts about a country, such as its population.", country="string")
BUS = _tool("next_bus", "Get the next departures from a bus stop.", stop="string")
TAXI = _tool("order_ride", "Order a car that drives the user to a destination.", destination="string")
EVENTS = _tool("list_events", "List the appointments of a day.", date="string")
REMINDER = _tool("add_reminder", "Add a reminder.", text="string")
RECIPE = _tool("find_recipe", "Find a recipe for a dish.", dish="string")
VOLUME = _tool("set_volume", "Set how loud the speaker is.", level="integer")


def _plain(name: str, asked: str, tools: tuple[Tool, ...], **arguments: Accepted) -> DoctorTask:
    """Return a task whose answer is one call of the first tool; the tools are offered in the order of their names."""
    messages = (Message(Role.USER, (Text(asked),)),)
    step = TaskStep((ExpectedCall(tools[0].name, arguments),))
    return DoctorTask(name, TaskKind.PLAIN, tuple(sorted(tools, key=lambda tool: tool.name)), messages, (step,))


PLAIN: Final = (
    _plain("timer", "Set a timer for 10 minutes.", (TIMER,), minutes=10),
    _plain("rain", "Will it rain in Bergen?", (FORECAST,), place="Bergen"),
    _plain("clock", "What time is it in Tokyo?", (CLOCK, TIMER), city="Tokyo"),
    _plain("lamp", "Turn off the lamp in the kitchen.", (LAMP, SONG, VOLUME), room="kitchen", on=False),
    _plain("milk", "Put milk on my shopping list.", (ITEM,), item="milk"),
    _plain("share", "What does a share of Nokia cost?", (SHARE, MONEY), company="Nokia"),
    _plain("notes", "Show me the file notes.txt.", (READ, FILES), path=AnyOf(("notes.txt", "./notes.txt"))),
    _plain(
        "euros",
        "How much is 50 dollars in euros?",
        (MONEY,),
        amount=50,
        from_currency=AnyOf(("USD", "dollars", "dollar", "US dollars")),
        to_currency=AnyOf(("EUR", "euros", "euro")),
    ),
    _plain("bus", "When is the next bus from Park Road?", (BUS, TAXI), stop="Park Road"),
    _plain("airport", "I need a taxi to the airport.", (TAXI,), destination=AnyOf(("airport", "the airport"))),
    _plain("volume", "Set the volume to 30.", (VOLUME, SONG), level=30),
    _plain("ephemeral", "What does the word ephemeral mean?", (WORD,), word="ephemeral"),
    _plain(
        "song",
        "Play Yesterday by the Beatles.",
        (SONG, VOLUME, TIMER),
        title="Yesterday",
        artist=AnyOf(("The Beatles", "Beatles")),
    ),
    _plain("tracking", "Where is my parcel 7731?", (TRACK,), number="7731"),
    _plain(
        "times",
        "What is 17 times 23?",
        (SUM,),
        expression=AnyOf(("17 * 23", "17*23", "17 times 23", "17 x 23", "17x23", "17 × 23")),
    ),
    _plain("bedroom", "Make it 21 degrees in the bedroom.", (HEATING, LAMP), room="bedroom", degrees=21),
    _plain("portugal", "How many people live in Portugal?", (COUNTRY,), country="Portugal"),
    _plain(
        "folder",
        "Which files are in the folder src?",
        (FILES, READ),
        folder=AnyOf(("src", "src/", "./src", "/src")),
    ),
    _plain("calendar", "What is in my calendar on 2026-12-03?", (EVENTS, REMINDER), date="2026-12-03"),
    _plain("pancakes", "Find me a recipe for pancakes.", (RECIPE,), dish=AnyOf(("pancakes", "pancake"))),
    _plain("late", "Write Anna a message: I am late", (MESSAGE, REMINDER), to="Anna", text="I am late"),
    _plain(
        "french",
        "Translate good night into French.",
        (TRANSLATE,),
        text="good night",
        language=AnyOf(("French", "fr")),
    ),
    _plain("tom", "Remind me to call Tom.", (REMINDER, MESSAGE), text=AnyOf(("call Tom", "to call Tom"))),
    _plain(
        "alarm",
        "Wake me at 6:30.",
        (ALARM, TIMER),
        time=AnyOf(("6:30", "06:30", "6:30 am", "06:30 am", "6:30am", "6:30 a.m", "06:30:00")),
    ),
)
