"""Configured secrets are removed from text, in whatever form an upstream repeats them (SAFE-6)."""

from base64 import b64encode

import pytest

from toolspeak.ir.failure import Failure, FailureKind
from toolspeak.runtime.redaction import MARK, Redactor

SECRET = 'S3cret/"Value" & more'


@pytest.mark.parametrize(
    "shown",
    [
        SECRET,
        SECRET.upper(),
        'S3cret/\\"Value\\" & more',
        "S3cret%2F%22Value%22%20%26%20more",
        "S3cret%2F%22Value%22+%26+more",
        "S3cret/&quot;Value&quot; &amp; more",
    ],
)
def test_a_header_with_an_innocent_name_is_hidden_in_every_form_safe6(shown: str) -> None:
    redactor = Redactor((("x-sec", SECRET),))
    assert redactor.clean(f"bad x-sec: {shown}!") == f"bad x-sec: {MARK}!"
    assert redactor.clean_bytes(f"\udcff{shown}".encode(errors="surrogateescape")) == b"\xff" + MARK.encode()


def test_a_password_of_basic_authentication_is_hidden_decoded_too_safe6() -> None:
    redactor = Redactor((("proxy", "Basic " + b64encode(b"me:hunter2-hunter2").decode()),))
    assert redactor.clean("user me, password hunter2-hunter2") == f"user me, password {MARK}"


@pytest.mark.parametrize("text", ["you sent SECRETVAL … and more", "much … RETVALUE was sent", "a … b SECRETVA"])
def test_the_part_of_a_secret_that_shortening_leaves_is_hidden_safe6(text: str) -> None:
    cleaned = Redactor((("x-sec", "SECRETVALUE"),)).clean(text)
    assert MARK in cleaned
    assert not any(part in cleaned for part in ("SECR", "ALUE", "TVAL"))


def test_every_text_of_a_failure_is_cleaned_safe6() -> None:
    failure = Failure(FailureKind.OTHER, "SECRETVALUE", 400, "SECRETVALUE", "SECRETVALUE", basis=(400, "secretvalue"))
    cleaned = Redactor((("x-sec", "SECRETVALUE"),)).clean_failure(failure)
    assert (cleaned.message, cleaned.field, cleaned.salvage, cleaned.basis) == (MARK, MARK, MARK, (400, MARK))


def test_short_values_and_those_of_presets_are_ordinary_words() -> None:
    headers = (("x-team", "tools"), ("anthropic-version", "2023-06-01"))
    assert Redactor(headers, headers[1:]).clean("tools of 2023-06-01") == "tools of 2023-06-01"
    assert Redactor(()).clean("all") == "all"
