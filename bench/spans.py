"""`just spans`: real turns through a real gateway, and their spans in a real collector, Phoenix (OBS-15).

Phoenix, an independent collector that reads OpenTelemetry over the network, is installed in `.venv-phoenix` and started
on loopback. A gateway with a scripted upstream sends it turns: streamed, emulated, retried, failed, broken off. Then
its API returns what arrived, and every span is compared with what the turn did and with the table of docs/metrics.md.

    python -m bench.spans [--save]      writes bench/results/spans.json with --save
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from testkit.protocols import answering, question
from testkit.report import close
from testkit.scripted_upstream import Script, ScriptedUpstream, listening, refuse
from testkit.vendor_answers import Answer
from toolspeak.config.shape import Config, Otel, Server, Upstream
from toolspeak.engine.verdict import Depth
from toolspeak.gateway.server import background_server, build
from toolspeak.gateway.span_names import CHAT, SPAN_ATTRIBUTES, TURN

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "bench" / "results" / "spans.json"
VENV: Final = ROOT / ".venv-phoenix"
REQUIREMENT: Final = "arize-phoenix>=20,<21"
PATIENCE: Final = 180.0
"""Seconds in which Phoenix must start; it takes half a minute on two cores."""
ARRIVAL: Final = 30.0
"""Seconds in which spans must arrive."""

CALL: Final = Answer('```tool_call\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```')
BAD: Final = Answer('```tool_call\n{"name": "get_weather", "arguments": {"town": 7}}\n```')
NATIVE: Final = Answer(calls=(("call_1", "get_weather", {"city": "Oslo"}),))
CUT: Final = Answer("It is", error="the model crashed")


@dataclass(frozen=True)
class Scene:
    """A turn, and what its spans must contain. `chats` has the expectations of each request to the upstream."""

    name: str
    wire: str
    scripts: tuple[Script, ...]
    turn: Mapping[str, object]
    chats: tuple[Mapping[str, object], ...]
    is_streamed: bool = False
    is_forced: bool = False
    """Calls are emulated."""


ANSWERED: Final = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": 11,
    "gen_ai.usage.output_tokens": 7,
    "server.address": "127.0.0.1",
    "toolspeak.upstream": "box",
}
REFUSED: Final = {"gen_ai.operation.name": "chat", "error.type": "invalid_request"}
AGAIN: Final = {**ANSWERED, "toolspeak.tool_call.retry_reason": "its calls cannot run"}
EMULATED: Final = {
    "toolspeak.tool_call.mode": "emulated",
    "toolspeak.tool_call.dialect": "fenced",
    "toolspeak.tool_call.count": 1,
    "http.response.status_code": 200,
}
SCENES: Final = (
    Scene(
        "native, streamed",
        "openai_chat",
        (answering(NATIVE),),
        {"toolspeak.tool_call.mode": "native", "gen_ai.request.stream": True, "toolspeak.tool_call.repair": "none"},
        (ANSWERED,),
        is_streamed=True,
    ),
    Scene("native, whole", "gemini", (answering(NATIVE),), {"gen_ai.request.stream": False}, (ANSWERED,)),
    Scene("emulated", "anthropic", (answering(CALL),), EMULATED, (ANSWERED,), is_forced=True),
    Scene(
        "emulated, streamed, asked again",
        "openai_responses",
        (answering(BAD), answering(CALL)),
        {**EMULATED, "toolspeak.tool_call.repair": "partial", "toolspeak.requests": 2},
        (ANSWERED, AGAIN),
        is_streamed=True,
        is_forced=True,
    ),
    Scene(
        "failed",
        "ollama",
        (refuse(400, "the prompt is too odd"),),
        {"error.type": "invalid_request", "http.response.status_code": 400},
        (REFUSED,),
    ),
    Scene(
        "broken off in the middle of a stream",
        "openai_chat",
        (answering(CUT),),
        {"http.response.status_code": 200, "toolspeak.tool_call.count": 0},
        ({"gen_ai.operation.name": "chat"},),
        is_streamed=True,
    ),
)


# ---------------------------------------------------------------- Phoenix


def installed() -> str:
    """Install Phoenix if it is not there, and return its version."""
    python = VENV / "bin" / "python"
    if not (VENV / "bin" / "phoenix").exists():
        print(f"installing {REQUIREMENT} into {VENV.name}", file=sys.stderr)
        uv = str(ROOT / ".venv" / "bin" / "uv")
        subprocess.run([uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(VENV)], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), REQUIREMENT], check=True)
    code = "import importlib.metadata; print(importlib.metadata.version('arize-phoenix'))"
    return subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def phoenix() -> Generator[str]:
    """Run Phoenix with an empty database, and yield its URL."""
    port, grpc = free_ports(2)
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        told = {
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(grpc),
            "PHOENIX_WORKING_DIR": folder,
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        with (Path(folder) / "log").open("wb") as log:
            command = [str(VENV / "bin" / "phoenix"), "serve"]
            process = subprocess.Popen(
                command, env=os.environ | told, stdout=log, stderr=log, start_new_session=True, cwd=folder
            )
            try:
                wait_for(url, process)
                yield url
            finally:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()


def wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Return when Phoenix answers."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"Phoenix ended with status {process.returncode}")
        try:
            got(f"{url}/v1/projects")
        except (OSError, urllib.error.URLError):
            time.sleep(0.5)
        else:
            return
    raise SystemExit(f"Phoenix did not answer within {PATIENCE:.0f} s")


def got(url: str) -> dict[str, Any]:
    """Fetch JSON."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def spans_of(url: str, trace: str, count: int) -> list[dict[str, Any]]:
    """Return the spans of a trace that Phoenix has, once there are this many."""
    end = time.monotonic() + ARRIVAL
    found: list[dict[str, Any]] = []
    while True:
        with suppress(urllib.error.HTTPError):  # there is no project before the first span
            found = got(f"{url}/v1/projects/default/spans/otlpv1?trace_id={trace}&limit=100")["data"]
        if len(found) >= count or time.monotonic() > end:
            return found
        time.sleep(0.2)


def shown_kinds(url: str, trace: str) -> Counter[str]:
    """Count the spans of a trace by operation and kind as Phoenix shows them, such as `chat: LLM`."""
    found = got(f"{url}/v1/projects/default/spans?trace_id={trace}&limit=100")["data"]
    return Counter(f"{span['name'].split()[0]}: {span['span_kind']}" for span in found)


# ---------------------------------------------------------------- turns


def config_of(upstream: ScriptedUpstream, url: str, *, has_all: bool) -> Config:
    """Describe a gateway that sends its spans to Phoenix; `has_all` adds content and old names."""
    place = Upstream("box", f"http://127.0.0.1:{upstream.port}/v1", key="sk-canary-upstream")
    otel = Otel(url, old_names=has_all, content=has_all)
    return Config(server=Server(port=0, probe=Depth.OFF), upstreams=(place,), otel=otel)


def play(gateway: str, upstream: ScriptedUpstream, scene: Scene, trace: str) -> None:
    """Request the turn of a scene, as a part of a trace."""
    upstream.answers(*scene.scripts)
    asked = question(scene.wire, stream=scene.is_streamed)
    headers = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01", "content-type": "application/json"}
    if scene.is_forced:
        headers |= {"x-toolspeak-mode": "force", "x-toolspeak-dialect": "fenced"}
    request = urllib.request.Request(gateway + asked.path, json.dumps(asked.body).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        error.read()


# ---------------------------------------------------------------- the judge


def plain(span: Mapping[str, Any]) -> dict[str, object]:
    """Return the attributes of a span in OTLP's JSON as plain values."""
    return {one["key"]: value_of(one["value"]) for one in span["attributes"]}


def value_of(value: Mapping[str, Any]) -> object:
    kinds = {"string_value": str, "int_value": int, "double_value": float, "bool_value": bool}
    for kind, make in kinds.items():
        if value.get(kind) is not None:
            return make(value[kind])
    listed: list[Mapping[str, Any]] = value["array_value"]["values"] if value.get("array_value") else []
    return [value_of(one) for one in listed]


def faults(scene: Scene, trace: str, spans: list[dict[str, Any]], *, has_all: bool) -> list[str]:
    """Return all that is wrong with the spans of a scene."""
    turns = [span for span in spans if span["name"] == f"{TURN} m"]
    chats = sorted(
        (span for span in spans if span["name"] == f"{CHAT} m"), key=lambda span: int(span["start_time_unix_nano"])
    )
    if (len(turns), len(chats), len(spans)) != (1, len(scene.chats), 1 + len(scene.chats)):
        return [f"{scene.name}: Phoenix has {[span['name'] for span in spans]}"]
    (turn,) = turns
    said = differences(turn, TURN, scene.turn, has_all=has_all)
    for chat, expected in zip(chats, scene.chats, strict=True):
        said += differences(chat, CHAT, expected, has_all=has_all)
        if chat["parent_span_id"] != turn["span_id"]:
            said.append("a request is not below its turn")
        if (
            not int(turn["start_time_unix_nano"])
            <= int(chat["start_time_unix_nano"])
            <= int(chat["end_time_unix_nano"])
        ):
            said.append("a request is not within its turn")
    if any(span["trace_id"] != trace for span in spans):
        said.append("the client's trace is not kept")
    if "canary" in json.dumps(spans):
        said.append("a key is in a span")
    return [f"{scene.name}: {one}" for one in said]


def differences(span: Mapping[str, Any], kind: str, expected: Mapping[str, object], *, has_all: bool) -> list[str]:
    """Compare a span with the table of names, and with its expected values."""
    values = plain(span)
    ours = [one for one in SPAN_ATTRIBUTES if kind in one.spans]
    names = {one.name for one in ours} | ({one.old for one in ours} if has_all else set[str]())
    said = [f"{kind}: {name} is not in the table" for name in sorted(own(values) - names)]
    said += [
        f"{kind}: {name} is {values.get(name)!r}, not {value!r}"
        for name, value in expected.items()
        if values.get(name) != value and not (has_all and str(values.get(name)).startswith(f"{value}: "))
    ]
    has_content = any("messages" in name for name in values)
    if has_content and not has_all:
        said.append(f"{kind}: it has content")
    if has_all and kind == TURN and "gen_ai.input.messages" not in values:
        said.append(f"{kind}: it has no content")
    return said


def own(names: Iterable[str]) -> set[str]:
    """Return the names without those that Phoenix derives from others."""
    derived = ("openinference.", "llm.", "input.", "output.", "session.", "tool.", "metadata", "user.")
    return {name for name in names if not name.startswith(derived)}


def main() -> None:
    """Play all scenes twice: bare, and with content and old names."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--save", action="store_true", help="write bench/results/spans.json")
    save = options.parse_args().save
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "100"
    version = installed()
    began = time.monotonic()
    said: list[str] = []
    seen: set[str] = set()
    kinds: Counter[str] = Counter()
    rows: list[dict[str, object]] = []
    with phoenix() as url, listening(("m",)) as upstream:
        ready = time.monotonic() - began
        for has_all in (False, True):
            config = config_of(upstream, url, has_all=has_all)
            with background_server(build(config), config) as gateway:
                for number, scene in enumerate(SCENES):
                    trace = f"{has_all + 1:016x}{number + 1:016x}"
                    play(gateway, upstream, scene, trace)
                    spans = spans_of(url, trace, 1 + len(scene.chats))
                    wrong = faults(scene, trace, spans, has_all=has_all)
                    said += wrong
                    names = {name for span in spans for name in own(plain(span))}
                    seen |= names
                    kinds += shown_kinds(url, trace)
                    rows.append(
                        {
                            "scene": scene.name,
                            "content": has_all,
                            "spans": len(spans),
                            "attributes": len(names),
                            "ok": not wrong,
                        }
                    )
    for fault in said:
        print(fault, file=sys.stderr)
    pinned = {one.name for one in SPAN_ATTRIBUTES} | {one.old for one in SPAN_ATTRIBUTES if one.old}
    figures = {
        "collector": f"arize-phoenix {version}",
        "ready_seconds": round(ready, 1),
        "scenes": rows,
        "names_pinned": len(pinned),
        "names_seen": len(seen & pinned),
        "never_seen": sorted(pinned - seen),
        "shown_as": dict(kinds),
        "faults": said,
    }
    if save:
        RESULTS.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    counts = {"spans": sum(int(str(row["spans"])) for row in rows), "scenes": len(rows)}
    close("spans", ok=not said, collector=figures["collector"], **counts, names=len(seen & pinned), faults=len(said))


if __name__ == "__main__":
    main()
