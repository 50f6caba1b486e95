"""`just live`: a real model on llama.cpp's server is asked for the weather with a tool, bare and through toolspeak.

    just live                                the SDKs of OpenAI and Anthropic, whole and streamed, side by side
    just live --ways                         also with every way to call: which ones does this model master?
    just live --agent pi --agent goose       also a real file task
    just live --model qwen2.5-coder-1.5b     another model of `testkit/llama_models.py`
    just live --keep                         writes bench/results/live.json, and live.md with what agents did

It fails if an SDK gets no call through toolspeak, or no answer after it has sent the result.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testkit.llama_models import DEFAULT, MODELS
from testkit.llama_server import LlamaServer
from testkit.report import close
from tests.live.agent import Attempt, attempt, transcript
from tests.live.agents import AGENTS
from tests.live.gateway import gateway
from tests.live.recorder import Exchange, Recorder
from tests.live.talk import Talk, side_by_side, talk

RESULTS = Path(__file__).parent.parent.parent / "bench" / "results"
PAGE = "# What agents did with a real model: `just live --agent NAME --keep`\n"
BARE = "the bare server"
SDKS = ("openai", "anthropic")
HOWS = ("whole", "stream")
DIALECTS = ("fenced", "hermes", "llama_json", "inline_json", "pythonic", "react", "qwen_xml", "invoke_xml")
WAYS = (
    ("--mode", "auto"),
    ("--mode", "fallback"),
    *(("--mode", "force", "--dialect", dialect) for dialect in DIALECTS),
    ("--mode", "force", "--strategy", "decision"),
)


@dataclass
class Report:
    """All that was found."""

    model: str
    talks: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ways: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    agents: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    transcripts: list[str] = field(default_factory=list[str])

    def figures(self) -> dict[str, Any]:
        """Count."""
        passed = [row["toolspeak"]["called"] and row["toolspeak"]["answered"] for row in self.talks]
        agents = {row["agent"]: row["ok"] for row in self.agents if row["by"] != BARE}
        found: dict[str, Any] = {
            "ok": all(passed or agents.values()),
            "model": self.model,
            "talks": len(self.talks),
            "passed": sum(passed),
            "bare_calls": sum(row["bare"]["called"] for row in self.talks),
        }
        if self.ways:
            found["ways"] = f"{sum(row['called'] and row['answered'] for row in self.ways)}/{len(self.ways)}"
        return found | agents


def compare(server: LlamaServer, flags: tuple[str, ...]) -> Iterator[tuple[str, str, Talk, Talk]]:
    """Let each SDK ask both."""
    for sdk in SDKS:
        for how in HOWS:
            bare = talk(sdk, server.url, server.model, how)
            with gateway(f"{server.url}/v1", *flags) as url:
                yield sdk, how, bare, talk(sdk, url, server.model, how)


def show_talks(server: LlamaServer, report: Report, flags: tuple[str, ...]) -> None:
    """Show them side by side."""
    for sdk, how, bare, through in compare(server, flags):
        print(f"\nWhat is the weather in Paris? ({sdk} SDK, {how})\n\n{side_by_side(bare, through)}", flush=True)
        row = {"sdk": sdk, "how": how, "bare": bare.figures(), "toolspeak": through.figures()}
        report.talks.append(row)


def show_ways(server: LlamaServer, report: Report) -> None:
    """Try each way to call."""
    print("\nway                                  call  answer  tokens     seconds  the last text")
    for flags in WAYS:
        with gateway(f"{server.url}/v1", *flags) as url:
            found = talk("openai", url, server.model, "stream")
        row = {"way": " ".join(flags), **found.figures()}
        report.ways.append(row)
        told = [" yes" if row[key] else "  no" for key in ("called", "answered")]
        tokens, text = "+".join(map(str, row["tokens"])), (found.fault or " ".join(row["text"].split()))[:60]
        print(f"{row['way']:36} {told[0]}  {told[1]:6}  {tokens:9}  {row['seconds']:7}  {text}", flush=True)


def show_agent(agent: str, server: LlamaServer, report: Report, flags: tuple[str, ...], limit_s: float) -> None:
    """Let an agent do a file task, with the bare server and through toolspeak."""
    with Recorder(server.url) as recorder:
        bare = attempt(agent, recorder.url, server.model, limit_s)
    _tell(bare, BARE, report, recorder.exchanges)
    with Recorder(server.url) as recorder, gateway(f"{recorder.url}/v1", *flags) as url:
        through = attempt(agent, url, server.model, limit_s)
    _tell(through, f"toolspeak {' '.join(flags)}".rstrip(), report, recorder.exchanges)


def _tell(one: Attempt, by: str, report: Report, exchanges: Sequence[Exchange]) -> None:
    report.agents.append({"agent": one.agent, "by": by, **one.figures(exchanges)})
    report.transcripts.append(transcript(one, report.model, by, exchanges))
    print(f"\n{report.transcripts[-1]}", flush=True)


def keep(report: Report) -> None:
    """Write down what was found, beside what was found with other models."""
    path = RESULTS / "live.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    before: dict[str, Any] = kept.get(report.model, {})
    agents = {(row["agent"], row["by"]): row for row in (*before.get("agents", ()), *report.agents)}
    found = {"talks": report.talks, "ways": report.ways, "agents": [agents[key] for key in sorted(agents)]}
    kept[report.model] = {**before, **{key: rows for key, rows in found.items() if rows}}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    keep_transcripts(RESULTS / "live.md", report.transcripts)


def keep_transcripts(path: Path, transcripts: Sequence[str]) -> None:
    """Write what agents did; the last time counts."""
    kept = path.read_text().split("\n## ")[1:] if path.exists() else []
    sections = {_title(one): one for one in (*kept, *(one.removeprefix("## ") for one in transcripts))}
    if transcripts:
        path.write_text("\n## ".join((PAGE, *(sections[title].strip() + "\n" for title in sorted(sections)))))


def _title(section: str) -> str:
    """Who did it, without how it went."""
    return section.partition(":")[0]


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT, choices=MODELS)
    parser.add_argument("--flags", default="", help="of `toolspeak serve`, such as '--mode force --dialect hermes'")
    parser.add_argument("--ways", action="store_true")
    parser.add_argument("--agent", action="append", default=[], choices=AGENTS)
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="for an agent")
    parser.add_argument("--only-agents", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    report, flags = Report(options.model), tuple(options.flags.split())
    if not (options.only_agents and options.agent):
        with LlamaServer(options.model, remembers=False) as server:
            show_talks(server, report, flags)
            if options.ways:
                show_ways(server, report)
    for agent in options.agent:
        with LlamaServer(options.model) as server:
            show_agent(agent, server, report, flags, options.limit)
    if options.keep:
        keep(report)
    close("live", **report.figures())


if __name__ == "__main__":
    main()
