"""`just conformance-peers`: `toolspeak conformance` on toolspeak and other gateways, each in front of the same model.

Each gateway is a separate process on loopback, set up as its documentation says for an OpenAI-compatible server, and
the command is the one that users run. LiteLLM, forge and Portkey are installed into ~/.cache/toolspeak/peers, see
`bench.gateway.install`. It writes bench/results/conformance-peers.json and the tables of docs/conformance.md, and is no
part of CI: it downloads 200 MB.

    python -m bench.conformance_peers [--only NAME …] [--page]
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.gateway.install import VERSIONS, folder, install
from bench.gateway.subjects import LITELLM_ENV, forge, free_port, portkey, portkey_headers, toolspeak
from testkit.report import close
from toolspeak.conformance.upstream import MODEL

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "bench" / "results" / "conformance-peers.json"
PAGE: Final = ROOT / "docs" / "conformance.md"
BADGE: Final = ROOT / "docs" / "conformance-badge.svg"
OURS: Final = "toolspeak"
COUNTS: Final = {
    "right": "right",
    "refused": "asked again",
    "shown": "text wrong",
    "missed": "missed",
    "wrong": "wrong",
    "false": "false",
    "protocol_errors": "protocol",
}
TABLE: Final = re.compile(r"(<!-- ([a-z-]+): made by just conformance-peers -->\n)(.*?)(<!-- end -->)", re.DOTALL)
MOST_PROBLEMS: Final = 4
"""Problems of one gateway that the page names."""


def litellm(port: int, upstream: int, files: Path) -> list[str]:
    """Return the command of LiteLLM's proxy, with the scripted model as its only one."""
    place = {"model": f"openai/{MODEL}", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "sk-none"}
    config = {
        "model_list": [{"model_name": MODEL, "litellm_params": place}],
        "litellm_settings": {"telemetry": False, "request_timeout": 60},
        "general_settings": {"disable_spend_logs": True},
    }
    (files / "litellm.yaml").write_text(json.dumps(config))  # JSON is YAML
    program = folder("litellm") / "venv" / "bin" / "litellm"
    return [str(program), "--config", str(files / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port)]


@dataclass(frozen=True)
class Contender:
    """A gateway and how it is started."""

    command: Callable[[int, int, Path], list[str]]
    peer: str = ""
    """Its name among the installed peers; empty for toolspeak."""
    about: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Callable[[int], dict[str, str]] = lambda _: {}
    options: tuple[str, ...] = ()
    """Options of `toolspeak conformance`."""


PROMPT: Final = ("--backend", "llamaserver", "--backend-capability", "prompt", "--model", MODEL)
CONTENDERS: Final = {
    OURS: Contender(
        toolspeak(), about="defaults, no probes; each case under the name of its model", options=("--by-model",)
    ),
    "toolspeak, model unknown": Contender(toolspeak(), about="defaults, no probes; all cases under one name"),
    "toolspeak, emulating": Contender(toolspeak("--mode", "force"), about="`--mode force`; all cases under one name"),
    "LiteLLM": Contender(litellm, "litellm", "proxy, `openai/` provider", LITELLM_ENV),
    "forge": Contender(forge("--backend", "openai"), "forge", "`--backend openai`"),
    "forge, prompt": Contender(forge(*PROMPT), "forge", "`--backend llamaserver --backend-capability prompt`"),
    "Portkey": Contender(portkey, "portkey", "provider `openai`, custom host", headers=portkey_headers),
}


@contextmanager
def started(contender: Contender, port: int, upstream: int, files: Path) -> Generator[Path]:
    """Run a gateway while the block runs; yield its log file."""
    env = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
    env |= {"XDG_CONFIG_HOME": str(files), "XDG_STATE_HOME": str(files)}  # no profile of this machine's user
    path = files / "log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            contender.command(port, upstream, files),
            env=env | dict(contender.env),
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        try:
            yield path
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def judged(contender: Contender, badge: Path | None, *options: str) -> dict[str, Any]:
    """Run the command against a gateway; return what it prints."""
    if contender.peer:
        install(contender.peer)
    port, upstream = free_port(), free_port()
    headers = [part for name, value in contender.headers(upstream).items() for part in ("--header", f"{name}: {value}")]
    command = [sys.executable, "-m", "toolspeak", "conformance", f"http://127.0.0.1:{port}/v1", "--json"]
    command += ["--upstream-port", str(upstream), *headers, *contender.options, *options]
    command += ["--badge", str(badge)] if badge else []
    with tempfile.TemporaryDirectory() as files, started(contender, port, upstream, Path(files)) as log:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode > 1:
            sys.exit(f"{done.stderr}\n{log.read_text(errors='replace')[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def kept(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the results keep of one gateway."""
    contender = CONTENDERS[name]
    breaches = [{without_values(problem) for problem in row["problems"]} for row in found["not_right"]]
    problems = Counter(problem for response in breaches for problem in sorted(response))
    return {
        "version": VERSIONS.get(contender.peer, ""),
        "about": contender.about,
        "sent": found["sent"],
        "all_right": found["all_right"],
        **{count: found[count] for count in COUNTS},
        "kinds": {kind: [row["sent"], row["all_right"]] for kind, row in found["kinds"].items()},
        "problems": dict(problems.most_common()),
        "not_right": [f"{row['id']} {row['way']}: {row['verdict']}" for row in found["not_right"]],
    }


def without_values(problem: str) -> str:
    """Return a problem without the values and places of one case, so that equal ones can be counted."""
    problem = re.sub(r"^(?:call|tool_calls|chunk)[ \[]\d+\]?:? ?", "", problem)
    return re.sub(r"(arguments of) .*? (are not a JSON object): .*", r"\1 a call \2", problem)


# ---------------------------------------------------------------- the page


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def gateways(results: Mapping[str, Any]) -> str:
    """Return the counts of each gateway."""
    head = ("gateway", "setup", "responses", *COUNTS.values(), "right in content and form")
    rows = [
        (f"{name} {row['version']}".strip(), row["about"], row["sent"], *(row[count] for count in COUNTS), share(row))
        for name, row in results.items()
    ]
    return table(head, rows)


def share(row: Mapping[str, Any]) -> str:
    """Return a share in percent."""
    return f"{100 * row['all_right'] / row['sent']:.0f} %"


def problems(results: Mapping[str, Any]) -> str:
    """Return the most frequent violations of the protocol."""
    rows = [
        (name, problem.replace("|", "\\|"), times)
        for name, row in results.items()
        for problem, times in list(row["problems"].items())[:MOST_PROBLEMS]
    ]
    return table(("gateway", "violation", "responses"), rows) if rows else "None.\n"


TABLES: Final = {"gateways": gateways, "problems": problems}


def fresh(page: str) -> str:
    """Return the page with its tables as the last results are."""
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return TABLE.sub(lambda found: f"{found[1]}\n{TABLES[found[2]](results)}\n{found[4]}", page)


def main() -> None:
    """Judge all gateways, or some; write the results and the page."""
    options = argparse.ArgumentParser(prog="bench.conformance_peers")
    options.add_argument("--only", nargs="*", default=[], choices=list(CONTENDERS))
    options.add_argument("--page", action="store_true", help="only write the page from the last results")
    chosen = options.parse_args()
    results: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    names = [] if chosen.page else chosen.only or list(CONTENDERS)
    for name in names:
        results[name] = kept(name, judged(CONTENDERS[name], BADGE if name == OURS else None))
        print(f"{name}: {results[name]['all_right']} of {results[name]['sent']} right", flush=True)
        results = {each: results[each] for each in CONTENDERS if each in results}
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(fresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    right = {name: [row["all_right"], row["sent"]] for name, row in results.items()}
    close("conformance-peers", ok=not results[OURS]["protocol_errors"] + results[OURS]["wrong"], right=right)


if __name__ == "__main__":
    main()
