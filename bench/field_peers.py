"""`just field-peers`: the parsers of vLLM, SGLang and @ai-sdk-tool/parser on the field cases, beside our readers.

Each case goes to the parser that the peer documents for the family of the model (`bench.peers.parsers`): whole, token
by token as these servers stream by default, and in random deltas of one to four tokens. Our readers get the same
deltas, and the same judge (`testkit.field`) judges all. First each parser reads a well-formed call of its own format,
whole and token by token: one that cannot is left out.

It installs the peers into ~/.cache/toolspeak/peers, writes bench/results/field-peers.json and docs/peers.md, and is no
part of CI: it downloads 400 MB.

    python -m bench.field_peers [--only ID …]
"""

import argparse
import json
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

from bench.peers.install import VERSIONS, command, install
from bench.peers.page import NO_PARSER, OURS, PAGE, RESULTS, WAYS, fresh
from bench.peers.parsers import EXTRA_SAMPLES, PEERS, ROWS, SPECIAL, ParserRow, deltas, opened_reasoning, row_of
from testkit.field import FieldCase, Verdict, field_cases
from testkit.golden import samples
from testkit.report import close, progress
from toolspeak.ir.json import Json
from toolspeak.ir.tool import Tool

CHECKED_WAYS: Final = ("whole", "tokens")


class Peer:
    """One peer, which answers questions line by line in a process of its own."""

    def __init__(self, name: str, sent: IO[str], received: IO[str]) -> None:
        self.name, self.sent, self.received = name, sent, received
        self.checked: dict[str, bool] = {}
        """Parsers, and whether they read a well-formed call right."""
        self.trimmed: list[str] = []
        """Cases whose whole reading is wrong only because white space at the ends of values is missing."""

    def read(self, row: ParserRow, text: str, tools: tuple[Tool, ...], seed: str) -> dict[str, Any]:
        """Let the parser for a family read a text; return the answers by way."""
        parser, reasoning = row.parser(self.name)
        has_reasoning, opened = opened_reasoning(text, row.reasoning)
        ask = {
            "parser": parser,
            "reasoning": reasoning if has_reasoning and reasoning else None,
            "opened": opened,
            "tools": [{"name": tool.name, "parameters": tool.parameters} for tool in tools],
            "text": text,
            "streams": {way: deltas(text, seed, most) for way, most in WAYS.items() if most},
            "special": SPECIAL,
        }
        self.sent.write(json.dumps(ask) + "\n")
        self.sent.flush()
        line = self.received.readline()
        if not line:
            raise SystemExit(f"{self.name} ended at {seed}: run {' '.join(command(self.name))} to see why")
        answers: dict[str, Any] = json.loads(line)
        return answers

    def check(self) -> None:
        """Let each parser read a well-formed call of its own format; print what is not right."""
        golden = {case.id: case for case in samples()}
        for row in ROWS:
            parser = row.parser(self.name)[0]
            if not parser or parser in self.checked:
                continue
            like = golden[row.sample if row.sample in golden else "D10-llama-json"]
            answers = self.read(row, EXTRA_SAMPLES.get(row.sample, like.raw), like.tools, parser)
            wrong = [way for way in CHECKED_WAYS if called(answers[way]) != like.calls]
            self.checked[parser] = not wrong
            for way in wrong:
                print(f"{self.name} {parser} cannot read a well-formed call, {way}: {answers[way]}")

    def verdicts(self, case: FieldCase) -> list[str]:
        """Judge one case in each way."""
        row = row_of(case.model, case.dialect)
        parser = row.parser(self.name)[0] if row else ""
        if not row or not parser or not self.checked[parser]:
            return [NO_PARSER] * len(WAYS)
        tools = tuple(map(case.tools.tool, case.tools.names))
        answers = self.read(row, case.text, tools, case.id)
        if judged(case, answers["whole"]) is Verdict.WRONG and is_only_trimmed(case, called(answers["whole"])):
            self.trimmed.append(case.id)
        return [judged(case, answers[way]).value for way in WAYS]


def called(answer: Mapping[str, Any]) -> list[Any]:
    """Return the calls of an answer as a client sees them; arguments that are no JSON stay text."""
    return [{"name": call["name"], "arguments": arguments(call["arguments"])} for call in answer["calls"]]


def arguments(text: str) -> object:
    """Parse arguments as a client does: none are an empty object."""
    try:
        found: object = json.loads(text or "{}")
    except ValueError:
        return text
    return found


def judged(case: FieldCase, answer: Mapping[str, Any]) -> Verdict:
    """Judge the answer of a peer; an error that it raises or reports counts as a complaint."""
    return case.judge(called(answer), answer["text"], complains="error" in answer)


def is_only_trimmed(case: FieldCase, calls: list[Any]) -> bool:
    """Return whether calls are right but for white space at the ends of values."""
    return any(json.dumps(trimmed(calls)) == json.dumps(trimmed(accepted)) for accepted in case.accepted)


def trimmed(value: Json) -> Json:
    """Strip all strings in a value."""
    if isinstance(value, dict):
        return {key: trimmed(member) for key, member in value.items()}
    if isinstance(value, list):
        return [trimmed(item) for item in value]
    return value.strip() if isinstance(value, str) else value


def ours(case: FieldCase, reading: str) -> list[str]:
    """Judge one of our readings in each way."""
    dialect = case.dialect_of(reading)
    cuts = [map("".join, deltas(case.text, case.id, most)) if most else (case.text,) for most in WAYS.values()]
    return [case.verdict(case.read(dialect, pieces)).value for pieces in cuts]


@contextmanager
def started(name: str) -> Generator[Peer]:
    """Start a peer, and end it."""
    install(name)
    with subprocess.Popen(
        command(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield Peer(name, process.stdin, process.stdout)
        process.stdin.close()


def main() -> None:
    """Run all cases, or some."""
    options = argparse.ArgumentParser(prog="bench.field_peers")
    options.add_argument("--only", nargs="*", default=[])
    only: list[str] = options.parse_args().only
    cases = [case for case in field_cases() if not only or case.id in only]
    found = {case.id: {name: ours(case, reading) for name, reading in OURS.items()} for case in cases}
    checked: dict[str, dict[str, bool]] = {}
    only_trimmed: dict[str, list[str]] = {}
    for name in PEERS:
        with started(name) as peer:
            peer.check()
            for number, case in enumerate(cases):
                found[case.id][name] = peer.verdicts(case)
                progress(number + 1, len(cases), f"cases by {name}")
        checked[name], only_trimmed[name] = peer.checked, peer.trimmed
    rows: dict[str, dict[str, Any]] = {
        case.id: {"source": case.source, "note": case.note, "verdicts": found[case.id]} for case in cases
    }
    if only:
        print(json.dumps(rows, indent=1))
    else:
        results = {"versions": VERSIONS, "parsers": checked, "only_trimmed": only_trimmed, "cases": rows}
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        PAGE.write_text(fresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    right = {
        name: [
            sum(row["verdicts"][name][way] == Verdict.RIGHT.value for row in rows.values()) for way in range(len(WAYS))
        ]
        for name in (*OURS, *PEERS)
    }
    close("field-peers", ok=all(all(parsers.values()) for parsers in checked.values()), cases=len(cases), right=right)


if __name__ == "__main__":
    main()
