"""Removes configured secrets from text that goes to clients, logs and stores. No other module does (SAFE-6).

    redactor = Redactor((("authorization", "Bearer sk-1234567"), ("x-sec", "SECRETVALUE")), public=())
    redactor.clean("bad x-sec: secretvalue")       "bad x-sec: [redacted]"

Every configured header's value is a secret, whatever the header's name: an upstream once echoed `x-sec` in its error,
and the client received the value because the name did not look like a key.
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
"""Characters of a value. Shorter ones occur in ordinary words, and are too short to be secrets."""
_SHORTEST_PART = 4
"""Characters of a part of a secret, where shortening the text has cut the secret in two."""
MARK: Final = "[redacted]"
_CUT = " … "
"""The mark that shortening leaves between the beginning and the end of a text."""
_BASIC = "basic "


class Redactor:
    """Removes the secrets of one upstream. It has the default repr, so that no log or traceback shows them."""

    def __init__(self, headers: Iterable[tuple[str, str]], public: Iterable[tuple[str, str]] = ()) -> None:
        """Take the headers of requests. Those in `public` are in documentation (`anthropic-version`), not secret."""
        known = {(name.lower(), value) for name, value in public}
        secrets = {form for name, value in headers if (name.lower(), value) not in known for form in _forms(value)}
        # The longest first: an alternation matches the first that fits, and would leave the rest of a longer secret.
        self._secrets: Final = tuple(sorted(secrets, key=len, reverse=True))
        pattern = "|".join(map(re.escape, self._secrets))
        self._pattern: Final = re.compile(pattern, re.IGNORECASE) if pattern else None

    def clean(self, text: str) -> str:
        """Return the text without secrets, and without the remains of one that shortening has cut in two."""
        if self._pattern is None or not text:
            return text
        first, *rest = self._pattern.sub(MARK, text).split(_CUT)
        if not rest:
            return first
        pieces = [first, *map(self._without_start, rest)]
        return _CUT.join(map(self._without_end, pieces))

    def clean_bytes(self, data: bytes) -> bytes:
        """Return a body without secrets; bytes that are not UTF-8 are kept."""
        if self._pattern is None or not data:
            return data
        text = data.decode(errors="surrogateescape")
        return self._pattern.sub(MARK, text).encode(errors="surrogateescape")

    def clean_failure(self, failure: Failure) -> Failure:
        """Return the failure with all its texts cleaned."""
        if self._pattern is None:
            return failure
        message, field, salvage = map(self.clean, (failure.message, failure.field, failure.salvage))
        status, words = failure.basis
        return replace(failure, message=message, field=field, salvage=salvage, basis=(status, self.clean(words)))

    def _without_end(self, text: str) -> str:
        """Replace the beginning of a secret at the end of the text."""
        low = text[-self._longest :].lower()
        for secret in self._secrets:
            for length in range(min(len(secret) - 1, len(low)), _SHORTEST_PART - 1, -1):
                if low.endswith(secret[:length].lower()):
                    return text[:-length] + MARK
        return text

    def _without_start(self, text: str) -> str:
        """Replace the end of a secret at the beginning of the text."""
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
    """Yield the forms in which a server may echo a value: with or without its scheme, plain or escaped.

    Errors come as JSON, HTML pages or URLs, and a server may repeat only the token of `Bearer TOKEN`.
    """
    parts = [value, value.rpartition(" ")[2], *_basic_parts(value)]
    for part in parts:
        for form in (part, json.dumps(part)[1:-1], quote(part, safe=""), quote_plus(part), html.escape(part)):
            if len(form.strip()) >= SHORTEST:
                yield form.strip()


def _basic_parts(value: str) -> Iterator[str]:
    """Yield the decoded credentials of basic authentication: a server decodes them, and may echo them as plain text."""
    if not value.lower().startswith(_BASIC):
        return
    try:
        pair = b64decode(value[len(_BASIC) :], validate=True).decode()
    except ValueError:
        return
    yield pair
    yield pair.partition(":")[2]
