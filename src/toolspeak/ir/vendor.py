"""Fields of one wire that have no counterpart in the ir."""

from dataclasses import dataclass

from toolspeak.ir.json import JsonObject


@dataclass(frozen=True, slots=True)
class Vendor:
    """Fields that `wire` read and the ir does not have; only the same wire writes them back."""

    wire: str
    fields: JsonObject
