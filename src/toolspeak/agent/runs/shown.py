"""Runs as JSON, for programs: the same over HTTP and on the command line."""

import msgspec

from toolspeak.agent.runs.runs import NumberedEvent, RunSummary, RunView
from toolspeak.engine.journal import compact_json
from toolspeak.ir.json import JsonObject
from toolspeak.ir.message import Call, Message, Role, Text
from toolspeak.ir.round import Compact
from toolspeak.wires.message_export import export_messages


def line_json(line: RunSummary) -> JsonObject:
    """Write a run in a list; `ended` is null while it goes on."""
    return {
        "id": line.id,
        "object": "run",
        "status": line.status.value,
        "task": line.task,
        "model": line.model,
        "rounds": line.rounds,
        "began": round(line.began, 3),
        "ended": round(line.ended, 3) or None,
    }


def view_json(view: RunView) -> JsonObject:
    """Write a run with all that is kept of it."""
    return {
        **line_json(view.line),
        "reason": view.reason,
        "text": "".join(part.text for part in view.kept.message.parts if isinstance(part, Text)),
        "asked": [_call(call) for call in view.asked],
        "spec": msgspec.to_builtins(view.spec),
        "message": compact_json(view.kept),
    }


def messages_json(view: RunView, form: str) -> JsonObject:
    """Write a run's messages out, as a vendor has them (RUN-2): what was asked, the rounds, the text."""
    asked = Compact(Message(Role.USER, (Text(view.spec.task),)))
    return {"messages": [*export_messages((asked, view.kept), form)]}


def event_json(each: NumberedEvent) -> JsonObject:
    """Write an event with its number."""
    return {"number": each.number, **msgspec.to_builtins(each.event)}


def _call(call: Call) -> JsonObject:
    return {"id": call.id, "name": call.name, "arguments": call.arguments}
