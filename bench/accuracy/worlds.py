"""Small worlds that tools change: the final state shows what a conversation really did.

Each tool is a function of the state and its arguments; its return value is the result, and a refusal is an error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from toolspeak.ir.json import Json, JsonObject
from toolspeak.ir.tool import Tool

State = dict[str, Any]
Act = Callable[..., Json]


class Refused(Exception):
    """The world does not allow the call."""


@dataclass(frozen=True, slots=True)
class World:
    """The tools, and the functions that run them."""

    tools: tuple[Tool, ...]
    acts: Mapping[str, Act]

    def run(self, name: str, state: State, arguments: JsonObject) -> Json:
        """Run a tool; raises `Refused`."""
        if name not in self.acts:
            raise Refused(f"there is no tool {name}")
        try:
            return self.acts[name](state, **arguments)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Refused(f"bad arguments: {error}") from None


def make_tool(name: str, description: str, /, **parameters: str) -> Tool:
    """Write a tool; a parameter is `type: description`, and a type that ends in `?` makes it optional."""
    properties: JsonObject = {}
    required: list[Json] = []
    for key, said in parameters.items():
        kind, _, about = said.partition(": ")
        properties[key] = {"type": kind.removesuffix("?"), "description": about}
        required += [] if kind.endswith("?") else [key]
    return Tool(name, description, {"type": "object", "properties": properties, "required": required})


def make_world(*pairs: tuple[Tool, Act]) -> World:
    return World(tuple(tool for tool, _ in pairs), {tool.name: act for tool, act in pairs})


def named(state: State, kind: str, name: str) -> str:
    """Find something by its name, in any case."""
    found: str | None = next((each for each in state[kind] if each.lower() == name.strip().lower()), None)
    if found is None:
        raise Refused(f"there is no {name!r}; there are: {', '.join(state[kind]) or 'none'}")
    return found


# ---------------------------------------------------------------- a thermostat


def _read_room(state: State, room: str) -> Json:
    name = named(state, "rooms", room)
    return {"room": name, "temperature": state["rooms"][name], "target": state["targets"].get(name)}


def _set_target(state: State, room: str, celsius: float) -> Json:
    name = named(state, "rooms", room)
    if not 5 <= celsius <= 30:
        raise Refused("celsius must be from 5 to 30")
    state["targets"][name] = float(celsius)
    return {"room": name, "target": float(celsius)}


THERMOSTAT = make_world(
    (make_tool("read_room", "Read the temperature of a room.", room="string: name of the room"), _read_room),
    (
        make_tool(
            "set_target",
            "Set the temperature that a room shall have.",
            room="string: name of the room",
            celsius="number: degrees, from 5 to 30",
        ),
        _set_target,
    ),
)

# ---------------------------------------------------------------- a calendar


def _add_event(state: State, day: str, time: str, title: str) -> Json:
    state["events"].append([day.strip().lower(), time.strip(), title.strip().lower()])
    return {"added": title, "day": day, "time": time}


def _list_events(state: State, day: str) -> Json:
    found = [event for event in state["events"] if event[0] == day.strip().lower()]
    return {"day": day, "events": [{"time": time, "title": title} for _, time, title in found]}


def _cancel_event(state: State, day: str, time: str) -> Json:
    found = next((one for one in state["events"] if one[:2] == [day.strip().lower(), time.strip()]), None)
    if found is None:
        raise Refused(f"there is no event on {day} at {time}")
    state["events"].remove(found)
    return {"cancelled": found[2]}


CALENDAR = make_world(
    (
        make_tool(
            "add_event",
            "Put an event into the calendar.",
            day="string: day of the week, e.g. Monday",
            time="string: 24-hour time, e.g. 09:30",
            title="string: what it is",
        ),
        _add_event,
    ),
    (make_tool("list_events", "List the events of a day.", day="string: day of the week, e.g. Monday"), _list_events),
    (
        make_tool(
            "cancel_event",
            "Take an event out of the calendar.",
            day="string: day of the week",
            time="string: 24-hour time at which it starts, e.g. 09:30",
        ),
        _cancel_event,
    ),
)

# ---------------------------------------------------------------- files


def _list_files(state: State) -> Json:
    return {"files": sorted(state["files"])}


def _read_file(state: State, path: str) -> Json:
    return {"path": path, "content": state["files"][named(state, "files", path)]}


def _write_file(state: State, path: str, content: str) -> Json:
    state["files"][path.strip()] = content.strip()
    return {"written": path}


def _delete_file(state: State, path: str) -> Json:
    name = named(state, "files", path)
    del state["files"][name]
    return {"deleted": name}


FILES = make_world(
    (make_tool("list_files", "List all files."), _list_files),
    (make_tool("read_file", "Read a file.", path="string: name of the file"), _read_file),
    (
        make_tool(
            "write_file", "Write a text to a file.", path="string: name of the file", content="string: the new text"
        ),
        _write_file,
    ),
    (make_tool("delete_file", "Delete a file.", path="string: name of the file"), _delete_file),
)

# ---------------------------------------------------------------- orders


def _order_status(state: State, order: int) -> Json:
    return {"order": order, **state["orders"][str(order)]}


def _cancel_order(state: State, order: int) -> Json:
    found = state["orders"][str(order)]
    if found["status"] == "shipped":
        raise Refused(f"order {order} is shipped already")
    found["status"] = "cancelled"
    return {"order": order, "status": "cancelled"}


def _place_order(state: State, item: str, quantity: int) -> Json:
    number = 1 + max(int(number) for number in state["orders"])
    state["orders"][str(number)] = {"item": item.strip().lower(), "quantity": quantity, "status": "open"}
    return {"order": number, "status": "open"}


ORDERS = make_world(
    (make_tool("order_status", "Look up an order.", order="integer: number of the order"), _order_status),
    (make_tool("cancel_order", "Cancel an order.", order="integer: number of the order"), _cancel_order),
    (
        make_tool(
            "place_order",
            "Order an item.",
            item="string: what is ordered, in the singular",
            quantity="integer: how many",
        ),
        _place_order,
    ),
)

# ---------------------------------------------------------------- a bank


def _balance(state: State, account: str) -> Json:
    name = named(state, "accounts", account)
    return {"account": name, "balance": state["accounts"][name]}


def _transfer(state: State, source: str, target: str, amount: float) -> Json:
    come_from, goes_to = named(state, "accounts", source), named(state, "accounts", target)
    if amount <= 0 or state["accounts"][come_from] < amount:
        raise Refused(f"{come_from} has only {state['accounts'][come_from]}")
    state["accounts"][come_from] -= amount
    state["accounts"][goes_to] += amount
    return {"transferred": amount, come_from: state["accounts"][come_from], goes_to: state["accounts"][goes_to]}


BANK = make_world(
    (make_tool("get_balance", "Tell the balance of an account.", account="string: name of the account"), _balance),
    (
        make_tool(
            "transfer",
            "Move money between two accounts.",
            source="string: account that the money comes from",
            target="string: account that the money goes to",
            amount="number: how much",
        ),
        _transfer,
    ),
)

# ---------------------------------------------------------------- lights


def _switch_light(state: State, room: str, on: Json) -> Json:
    name = named(state, "lights", room)
    if not isinstance(on, bool):
        raise Refused("on must be true or false")
    state["lights"][name] = on
    return {"room": name, "on": on}


def _lights(state: State) -> Json:
    return {"lights": {room: "on" if on else "off" for room, on in state["lights"].items()}}


LIGHTS = make_world(
    (
        make_tool(
            "switch_light",
            "Switch the light of a room.",
            room="string: name of the room",
            on="boolean: true for on, false for off",
        ),
        _switch_light,
    ),
    (make_tool("list_lights", "Tell which lights are on and which are off."), _lights),
)

# ---------------------------------------------------------------- a list of things to do


def _add_item(state: State, item: str) -> Json:
    state["items"].append(item.strip().lower())
    return {"items": state["items"]}


def _remove_item(state: State, item: str) -> Json:
    state["items"].remove(named(state, "items", item))
    return {"items": state["items"]}


def _show_items(state: State) -> Json:
    return {"items": state["items"], "count": len(state["items"])}


SHOPPING = make_world(
    (make_tool("add_item", "Put one item on the shopping list.", item="string: the item"), _add_item),
    (make_tool("remove_item", "Take one item off the shopping list.", item="string: the item"), _remove_item),
    (make_tool("show_list", "Show the shopping list."), _show_items),
)

# ---------------------------------------------------------------- people


def _find_contact(state: State, name: str) -> Json:
    found = named(state, "contacts", name)
    return {"name": found, **state["contacts"][found]}


def _send_message(state: State, phone: str, text: str) -> Json:
    known = [each["phone"] for each in state["contacts"].values()]
    if phone.replace(" ", "") not in known:
        raise Refused(f"{phone} is no known number; find the contact first")
    state["sent"].append([phone.replace(" ", ""), text.strip()])
    return {"sent": True, "message_id": 7400 + len(state["sent"])}


PEOPLE = make_world(
    (make_tool("find_contact", "Look up a person's phone number.", name="string: the person's name"), _find_contact),
    (
        make_tool(
            "send_message",
            "Send a text message to a phone number.",
            phone="string: phone number",
            text="string: the message",
        ),
        _send_message,
    ),
)
