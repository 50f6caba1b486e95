"""Removes configured secrets from text that goes to clients, logs and stores: the one place that does (SAFE-6).

    redactor = Redactor((("authorization", "Bearer sk-1234567"), ("x-sec", "SECRETVALUE")), public=())
    redactor.clean("bad x-sec: secretvalue")       "bad x-sec: [redacted]"

The value of every configured header counts, whatever its name: an upstream that echoed `x-sec` in its error once gave
the value to the client.
"""

import html
import json
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import quote, quote_plus

from toolspeak.ir.failure import Failure

SHORTEST: Final = 6
"""Characters: shorter values would be found in ordinary words, and are too short to be secrets."""
_SHORTEST_PART = 4
"""Characters of a secret that was cut off by shortening the text."""
MARK: Final = "[redacted]"
_CUT = " … "
_BASIC = "basic "


class Redactor:
    """Knows the secrets of one upstream. It has no repr of its own, so that no traceback shows them."""

    def __init__(self, headers: Iterable[tuple[str, str]], public: Iterable[tuple[str, str]] = ()) -> None:
        """Take the headers that are sent; those of `public` are printed in documentation and are no secrets."""
        known = {(name.lower(), value) for name, value in public}
        secrets = {form for name, value in headers if (name.lower(), value) not in known for form in _forms(value)}
        self._secrets: Final = tuple(sorted(secrets, key=len, reverse=True))
        pattern = "|".join(map(re.escape, self._secrets))
        self._pattern: Final = re.compile(pattern, re.IGNORECASE) if pattern else None

    def clean(self, text: str) -> str:
        """Return the text without secrets, including the part of one at a place where the text was shortened."""
        if self._pattern is None or not text:
            return text
        first, *rest = self._pattern.sub(MARK, text).split(_CUT)
        if not rest:
            return first
        pieces = [first, *map(self._without_start, rest)]
        return _CUT.join(map(self._without_end, pieces))

    def clean_bytes(self, data: bytes) -> bytes:
        """Return a body without secrets; bytes that are no text are kept."""
        if self._pattern is None or not data:
            return data
        text = data.decode(errors="surrogateescape")
        return self._pattern.sub(MARK, text).encode(errors="surrogateescape")

    def clean_failure(self, failure: Failure) -> Failure:
        """Return the failure without secrets in any of its texts."""
        if self._pattern is None:
            return failure
        message, field, salvage = map(self.clean, (failure.message, failure.field, failure.salvage))
        status, words = failure.basis
        return replace(failure, message=message, field=field, salvage=salvage, basis=(status, self.clean(words)))

    def _without_end(self, text: str) -> str:
        """Drop the beginning of a secret that ends the text."""
        low = text[-self._longest :].lower()
        for secret in self._secrets:
            for length in range(min(len(secret) - 1, len(low)), _SHORTEST_PART - 1, -1):
                if low.endswith(secret[:length].lower()):
                    return text[:-length] + MARK
        return text

    def _without_start(self, text: str) -> str:
        """Drop the end of a secret that begins the text."""
        low = text[: self._longest].lower()
        for secret in self._secrets:
            for length in range(min(len(secret) - 1, len(low)), _SHORTEST_PART - 1, -1):
                if low.startswith(secret[-length:].lower()):
                    return MARK + text[length:]
        return text

    @property
    def _longest(self) -> int:
        return len(self._secrets[0])


def _forms(value: str) -> Iterator[str]:
    """Yield the ways in which a server may write a value: whole or without its scheme, and escaped."""
    parts = [value, value.rpartition(" ")[2], *_basic_parts(value)]
    for part in parts:
        for form in (part, json.dumps(part)[1:-1], quote(part, safe=""), quote_plus(part), html.escape(part)):
            if len(form.strip()) >= SHORTEST:
                yield form.strip()


def _basic_parts(value: str) -> Iterator[str]:
    """Yield the password of basic authentication: a server decodes it, and may repeat it as plain text."""
    if not value.lower().startswith(_BASIC):
        return
    try:
        pair = b64decode(value[len(_BASIC) :], validate=True).decode()
    except ValueError:
        return
    yield pair
    yield pair.partition(":")[2]
