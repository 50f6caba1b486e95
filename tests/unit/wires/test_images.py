"""Images as data URLs, and URLs that nobody fetches."""

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolspeak.ir.message import Image
from toolspeak.wires.shared.request_parts import image_from_url, image_to_url


def test_a_data_url_is_taken_apart() -> None:
    assert image_from_url("data:image/jpeg;base64,/9j/4AAQ") == Image("image/jpeg", "/9j/4AAQ")


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/a.png",
        "https://example.com/?q=data:image/png;base64,AA==",
        "data:image/svg+xml,<svg/>",
        "file_123",
        "",
    ],
)
def test_any_other_url_stays_one(url: str) -> None:
    assert image_from_url(url) == Image(url=url)
    if url:
        assert image_to_url(image_from_url(url)) == url


def test_an_image_without_a_type_is_sent_as_png() -> None:
    assert image_to_url(Image(data="AA==")) == "data:image/png;base64,AA=="


@given(st.sampled_from(["image/png", "image/svg+xml", "image/x;a=b"]), st.binary().map(b64encode).map(bytes.decode))
def test_an_image_comes_back_as_it_was(media_type: str, data: str) -> None:
    image = Image(media_type, data)
    assert image_from_url(image_to_url(image)) == image
