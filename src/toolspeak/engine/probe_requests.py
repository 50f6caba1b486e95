"""What a probe asks: a question that nobody can answer without the tool, and that names it."""

from typing import Final

from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Result, Role, Text
from toolspeak.ir.tool import Tool


def _tool(name: str, description: str, argument: str, kind: str = "string") -> Tool:
    parameters: JsonObject = {"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]}
    return Tool(name, description, parameters)


def _user(text: str) -> Message:
    return Message(Role.USER, (Text(text),))


DICE: Final = _tool("roll_dice", "Roll one die.", "sides", "integer")
FEW: Final = (DICE,)
MANY: Final = (
    _tool("add_note", "Keep a note.", "text"),
    _tool("find_bus", "Tell when the next bus leaves.", "stop"),
    _tool("read_thermometer", "Measure the temperature of a room.", "room"),
    _tool("set_alarm", "Wake somebody.", "time"),
    _tool("send_letter", "Send a letter.", "address"),
    DICE,
    _tool("look_up_word", "Explain a word.", "word"),
    _tool("play_song", "Play a song.", "title"),
    _tool("change_money", "Change an amount of money.", "amount", "number"),
    _tool("list_folder", "List the files of a folder.", "folder"),
    _tool("draw_card", "Draw cards.", "count", "integer"),
)
"""Eleven: some servers and models go wrong from ten on."""

ROLL: Final = (_user("Use the tool roll_dice to roll a die with 20 sides."),)
ROLL_TWICE: Final = (
    _user("Call the tool roll_dice two times in this answer: once with 6 sides, and once with 20 sides."),
)
_CALL: Final = Call("call_probe0001", DICE.name, '{"sides":20}')
CONTINUED: Final = (
    *ROLL,
    Message(Role.ASSISTANT, (_CALL,)),
    Message(Role.TOOL, (Result(_CALL.id, (Text("17"),), _CALL.name),)),
)
"""A call and its result: the model has only to say it."""
