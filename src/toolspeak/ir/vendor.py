"""Fields of one wire that have no word here."""

from dataclasses import dataclass

from toolspeak.ir.json import JsonObject


@dataclass(frozen=True, slots=True)
class Vendor:
    """What `wire` wrote beside the fields that we know; only the same wire writes them back."""

    wire: str
    fields: JsonObject
