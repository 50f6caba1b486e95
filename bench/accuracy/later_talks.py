"""Twelve conversations that were written after the guardrails were shaped, and are held out: see split.py.

Four of them need a call that takes a value from the result of another call. No guardrail may drop it as superfluous:
"In which room is the manager of Linus?" is `find_person`, and then `room_of` for the manager that it returns.
"""

from collections.abc import Callable, Sequence

from bench.accuracy.talks import Step, Talk
from bench.accuracy.worlds import Refused, State, make_tool, make_world, named
from toolspeak.ir.json import Json

Ending = Callable[[State], bool]

# ---------------------------------------------------------------- people and rooms


def _find_person(state: State, name: str) -> Json:
    who = named(state, "people", name)
    return {"name": who, **state["people"][who]}


def _room_of(state: State, name: str) -> Json:
    who = named(state, "rooms", name)
    return {"name": who, "room": state["rooms"][who]}


_OFFICE = make_world(
    (
        make_tool("find_person", "Look up the team and the manager of somebody.", name="string: first name"),
        _find_person,
    ),
    (make_tool("room_of", "Tell the room in which somebody sits.", name="string: first name"), _room_of),
)
_STAFF: State = {
    "people": {
        "Linus": {"team": "kernel", "manager": "Margaret"},
        "Margaret": {"team": "flight", "manager": "Katherine"},
    },
    "rooms": {"Linus": "B12", "Margaret": "C40", "Katherine": "A03"},
}

# ---------------------------------------------------------------- parcels


def _find_customer(state: State, name: str) -> Json:
    return {"customer": state["customers"][named(state, "customers", name)]}


def _list_parcels(state: State, customer: str) -> Json:
    return [parcel for parcel in state["parcels"] if parcel["customer"] == customer.strip()]


def _hold_parcel(state: State, parcel: str) -> Json:
    found = next((one for one in state["parcels"] if one["parcel"] == parcel.strip()), None)
    if found is None:
        raise Refused(f"there is no parcel {parcel}")
    found["status"] = "held"
    return found


_DEPOT = make_world(
    (make_tool("find_customer", "Find the number of a customer.", name="string: family name"), _find_customer),
    (
        make_tool("list_parcels", "List what is on its way to a customer.", customer="string: number such as K1"),
        _list_parcels,
    ),
    (make_tool("hold_parcel", "Keep a parcel at the depot.", parcel="string: number such as P1"), _hold_parcel),
)
_PARCELS: State = {
    "customers": {"Noether": "K7", "Turing": "K9"},
    "parcels": [
        {"parcel": "P31", "customer": "K7", "place": "Hamburg", "status": "moving"},
        {"parcel": "P32", "customer": "K9", "place": "Leeds", "status": "moving"},
    ],
}

# ---------------------------------------------------------------- timers


def _set_timer(state: State, name: str, minutes: float) -> Json:
    state["timers"][name.strip().lower()] = float(minutes)
    return {"set": name, "minutes": minutes}


def _list_timers(state: State) -> Json:
    return dict(state["timers"])


def _cancel_timer(state: State, name: str) -> Json:
    del state["timers"][named(state, "timers", name)]
    return {"cancelled": name}


_KITCHEN = make_world(
    (make_tool("set_timer", "Start a timer.", name="string: what it is for", minutes="number: minutes"), _set_timer),
    (make_tool("list_timers", "Show the timers that run."), _list_timers),
    (make_tool("cancel_timer", "Stop a timer.", name="string: what it is for"), _cancel_timer),
)
_TIMERS: State = {"timers": {"bread": 40.0}}

# ---------------------------------------------------------------- trains


def _next_train(state: State, origin: str, destination: str) -> Json:
    key = f"{origin.strip().title()}-{destination.strip().title()}"
    if key not in state["trains"]:
        raise Refused(f"no train goes from {origin} to {destination}")
    train: Json = state["trains"][key]
    return train


def _reserve_seat(state: State, train: str, seats: float) -> Json:
    state["reserved"].append([train.strip(), int(seats)])
    return {"train": train, "seats": int(seats), "reserved": True}


_STATION = make_world(
    (
        make_tool(
            "next_train",
            "Find the next connection between two cities.",
            origin="string: city",
            destination="string: city",
        ),
        _next_train,
    ),
    (
        make_tool("reserve_seat", "Reserve seats.", train="string: number such as IC1", seats="integer: how many"),
        _reserve_seat,
    ),
)
_TRAINS: State = {
    "trains": {
        "Bern-Basel": {"train": "IC61", "leaves": "10:34"},
        "Basel-Bern": {"train": "IC67", "leaves": "18:59"},
    },
    "reserved": [],
}

# ---------------------------------------------------------------- a music player


def _play(state: State, artist: str) -> Json:
    state["playing"] = artist.strip()
    return {"playing": artist}


def _volume(state: State, percent: float) -> Json:
    if not 0 <= percent <= 100:
        raise Refused("percent must be from 0 to 100")
    state["volume"] = int(percent)
    return {"volume": int(percent)}


def _status(state: State) -> Json:
    return {"playing": state["playing"], "volume": state["volume"]}


_SPEAKER = make_world(
    (make_tool("play_music", "Play songs of an artist.", artist="string: name"), _play),
    (make_tool("set_volume", "Change how loud it is.", percent="integer: from 0 to 100"), _volume),
    (make_tool("player_status", "Tell what plays, and how loud."), _status),
)
_PLAYER: State = {"playing": "Björk", "volume": 30}

# ---------------------------------------------------------------- a library


def _search_books(state: State, author: str) -> Json:
    return [book for book in state["books"] if author.strip().lower() in book["author"].lower()]


def _borrow(state: State, number: float) -> Json:
    found = next((book for book in state["books"] if book["number"] == int(number)), None)
    if found is None:
        raise Refused(f"there is no book {number}")
    if found["lent"]:
        raise Refused(f"{found['title']} is lent until Friday")
    found["lent"] = True
    return {"borrowed": found["title"]}


_SHELVES = make_world(
    (make_tool("search_books", "Find the books of an author.", author="string: name"), _search_books),
    (make_tool("borrow_book", "Borrow a book.", number="integer: the book's number"), _borrow),
)
_BOOKS: State = {
    "books": [
        {"number": 501, "author": "Tove Jansson", "title": "The Summer Book", "lent": False},
        {"number": 502, "author": "Tove Jansson", "title": "Fair Play", "lent": True},
        {"number": 503, "author": "Italo Calvino", "title": "Invisible Cities", "lent": False},
    ]
}


def _is(**wanted: object) -> Ending:
    return lambda state: all(state[key] == value for key, value in wanted.items())


def _books_lent(*numbers: int) -> Ending:
    return lambda state: [book["number"] for book in state["books"] if book["lent"]] == list(numbers)


def _parcels_held(*parcels: str) -> Ending:
    return lambda state: [one["parcel"] for one in state["parcels"] if one["status"] == "held"] == list(parcels)


LATER_TALKS: Sequence[Talk] = (
    Talk(
        "where the manager sits",
        _OFFICE,
        _STAFF,
        (
            Step("In which room is the manager of Linus?", ("C40",)),
            Step("Thanks. And which team does Linus belong to?", ("kernel",)),
        ),
        _is(**_STAFF),
    ),
    Talk(
        "who sits where",
        _OFFICE,
        _STAFF,
        (Step("Where does Katherine sit?", ("A03",)), Step("Who is Margaret's manager?", ("Katherine",))),
        _is(**_STAFF),
    ),
    Talk(
        "a parcel by its name",
        _DEPOT,
        _PARCELS,
        (
            Step("Where is the parcel for Noether at the moment?", ("Hamburg",)),
            Step("Please keep that parcel at the depot."),
        ),
        _parcels_held("P31"),
    ),
    Talk(
        "hold by number",
        _DEPOT,
        _PARCELS,
        (Step("Hold parcel P32, please."), Step("What is Turing's customer number?", ("K9",))),
        _parcels_held("P32"),
    ),
    Talk(
        "two timers",
        _KITCHEN,
        _TIMERS,
        (
            Step("Set a timer for the pasta, 9 minutes, and one for the eggs, 6 minutes."),
            Step("Which timers are running?", ("bread", "pasta|spaghetti", "eggs?")),
        ),
        lambda state: sorted(state["timers"].values()) == [6.0, 9.0, 40.0],
    ),
    Talk(
        "bread is done",
        _KITCHEN,
        _TIMERS,
        (Step("How long does the bread still need?", ("40",)), Step("Cancel that timer.")),
        _is(timers={}),
    ),
    Talk(
        "a train to Basel",
        _STATION,
        _TRAINS,
        (
            Step("When does the next train from Bern to Basel leave?", (r"10[:.]34",)),
            Step("Reserve 2 seats on it."),
            Step("And when can I go back from Basel to Bern?", (r"18[:.]59|6[:.]59",)),
        ),
        _is(reserved=[["IC61", 2]]),
    ),
    Talk(
        "two steps at once",
        _STATION,
        _TRAINS,
        (
            Step("Find the next connection from Basel to Bern and reserve 3 seats on that train."),
            Step("Thank you, that is all."),
        ),
        _is(reserved=[["IC67", 3]]),
    ),
    Talk(
        "louder",
        _SPEAKER,
        _PLAYER,
        (Step("What is playing right now?", ("Björk|Bjork",)), Step("Make it louder: 55 percent.")),
        _is(playing="Björk", volume=55),
    ),
    Talk(
        "another artist",
        _SPEAKER,
        _PLAYER,
        (Step("Play something by Nina Simone at a volume of 20."), Step("How loud is it now?", ("20",))),
        _is(playing="Nina Simone", volume=20),
    ),
    Talk(
        "borrow a book",
        _SHELVES,
        _BOOKS,
        (
            Step("Which books by Tove Jansson do you have?", ("Summer Book", "Fair Play")),
            Step("I would like to borrow The Summer Book."),
        ),
        _books_lent(501, 502),
    ),
    Talk(
        "a lent book",
        _SHELVES,
        _BOOKS,
        (
            Step("Please borrow book 502 for me.", ("lent|not available|unavailable|cannot|can't|unable|Friday",)),
            Step("Do you have anything by Calvino?", ("Invisible Cities",)),
        ),
        _books_lent(502),
    ),
)
