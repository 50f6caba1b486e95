"""Which tests go through the product is read from the names that they use."""

from pathlib import Path

import pytest

from tools.doors import Doors

FILES = {
    "tests/gateway/conftest.py": "from tests.scene import serve\n\n\n@fixture\ndef gateway():\n    yield serve()\n",
    "tests/scene.py": "from toolspeak.gateway.server import build\n\n\ndef serve():\n    return build()\n",
    "tests/gateway/test_doors.py": (
        "from toolspeak import Client, Tool\nfrom toolspeak.gateway.server import build\nfrom testkit import kit\n\n\n"
        "def test_fixture(gateway):\n    pass\n\n\n"
        "def test_client():\n    Client()\n\n\n"
        "def test_kit():\n    kit.asks()\n\n\n"
        "def test_process():\n    run(['-m', 'toolspeak'])\n\n\n"
        "def test_annotation(x: build) -> Tool:\n    return Tool(x)\n"
    ),
    "testkit/kit.py": "import toolspeak.client as client\n\n\ndef asks():\n    return client.Client\n",
}


@pytest.mark.parametrize(
    ("test", "through"),
    [("fixture", True), ("client", True), ("kit", True), ("process", True), ("annotation", False)],
)
def test_a_test_goes_through_a_door_if_its_names_lead_there(tmp_path: Path, test: str, through: bool) -> None:
    for name, source in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    assert Doors(tmp_path).reached_by("tests/gateway/test_doors.py", f"test_{test}") is through
