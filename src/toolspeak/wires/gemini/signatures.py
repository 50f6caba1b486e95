"""Signatures of other vendors, in the form that clients of this wire take.

A `thoughtSignature` is base64, and google-genai refuses a whole answer if one is not. Signatures that are none go out
wrapped, and come back as they were.
"""

import re
from base64 import b64decode, b64encode
from typing import Final

_MARK: Final = "dG9vbHNwZWFr"  # "toolspeak": nine bytes, so that what follows stays base64
_GROUP: Final = 4
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9_-]+={0,2}")
_STANDARD = str.maketrans("-_", "+/")


def wrapped(signature: str) -> str:
    """Return a signature that every client takes."""
    if _BASE64.fullmatch(signature) and len(signature.rstrip("=")) % _GROUP != 1:
        return signature
    return _MARK + b64encode(signature.encode("utf-8", "replace")).decode()


def unwrapped(signature: str) -> str:
    """Return a signature as its vendor gave it; clients may have changed between the two alphabets of base64."""
    if not signature.startswith(_MARK):
        return signature
    inner = signature.removeprefix(_MARK).rstrip("=").translate(_STANDARD)
    try:
        return b64decode(inner + "=" * (-len(inner) % _GROUP), validate=True).decode()
    except ValueError:
        return signature
