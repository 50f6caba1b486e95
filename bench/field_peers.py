"""`just field-peers`: the parsers of vLLM, SGLang and @ai-sdk-tool/parser compared with ours on the same outputs.

The outputs are the field cases and the fixtures of canitoolcall, an outside suite. A case goes to the parser that the
peer documents for the family of the model (`bench.peers.parsers`), a fixture to the one that canitoolcall names for it
(`bench.peers.suite`): whole, token by token as these servers stream by default, and in random deltas of one to four
tokens. Our readers get the same deltas. One judge judges all readers: `testkit.field` the cases, canitoolcall's checks
the fixtures. First each parser for the cases reads a well-formed call of its own format, whole and token by token: a
parser that fails is left out.

It installs the peers into ~/.cache/toolspeak/peers, writes bench/results/field-peers.json and docs/peers.md, and is no
part of CI: it downloads 400 MB.

    python -m bench.field_peers [--only ID …]
"""

import argparse
import json
import re
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final

from bench.peers.install import ROOT, VERSIONS, command, install
from bench.peers.page import GATEWAY, NO_PARSER, OURS, PAGE, RESULTS, WAYS, count, fresh
from bench.peers.parsers import EXTRA_SAMPLES, PEERS, ROWS, ParserRow, Question, deltas, opened_reasoning, row_of
from bench.peers.suite import SuiteCase, as_result, suite_cases
from testkit.field import FieldCase, Verdict, field_cases
from testkit.golden import samples
from testkit.report import close, progress
from toolspeak.ir.json import Json
from toolspeak.ir.tool import Tool

CHECKED_WAYS: Final = ("whole", "tokens")


class Peer:
    """One peer, which answers questions line by line in a separate process."""

    def __init__(self, name: str, sent: IO[str], received: IO[str]) -> None:
        self.name, self.sent, self.received = name, sent, received
        self.checked: dict[str, bool] = {}
        """Parsers, and whether they read a well-formed call right."""
        self.trimmed: list[str] = []
        """Cases whose whole reading is wrong only because white space at the ends of values is missing."""

    def read(self, row: ParserRow, text: str, tools: tuple[Tool, ...], seed: str) -> dict[str, Any]:
        """Let the parsers for a family read a text; that of reasoning only if the text holds some."""
        parser, reasoning = row.parser(self.name)
        has_reasoning, opener = opened_reasoning(text, row.reasoning)
        thinks = has_reasoning and bool(reasoning)
        question = Question(text, tools, seed, prompt=opener, thinking=thinks, opened=bool(opener))
        return self.answers(question, parser, reasoning if thinks else "")

    def answers(self, question: Question, parser: str, reasoning: str) -> dict[str, Any]:
        """Ask the parsers; return the answers by way."""
        self.sent.write(json.dumps(question.ask(parser, reasoning, WAYS)) + "\n")
        self.sent.flush()
        line = self.received.readline()
        if not line:
            raise SystemExit(f"{self.name} ended at {question.seed}: run {' '.join(command(self.name))} to see why")
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

    def suite_verdicts(self, case: SuiteCase) -> list[str]:
        """Judge one fixture of canitoolcall in each way."""
        parser, reasoning = case.parsers(self.name)
        if not parser:
            return [NO_PARSER] * len(WAYS)
        answers = self.answers(case.question, parser, reasoning)
        return [case.judge(as_result(answers[way])).value for way in WAYS]


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


def our_suite_row(case: SuiteCase) -> dict[str, Any]:
    """Judge a fixture as the gateway reads it in each way, and say why it is not right."""
    results = [case.ours(most) for most in WAYS.values()]
    return {
        "source": case.fixture.provenance.source_url,
        "kind": case.fixture.provenance.kind,
        "note": next((reason for result in results if (reason := case.reason(result))), ""),
        "truncated": case.fixture.truncated,
        "verdicts": {GATEWAY: [case.judge(result).value for result in results]},
    }


@contextmanager
def started(name: str) -> Generator[Peer]:
    """Start a peer, and end it."""
    install(name)
    with subprocess.Popen(
        command(name), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield Peer(name, process.stdin, process.stdout)
        process.stdin.close()


def main() -> None:
    """Run all cases and fixtures, or some."""
    options = argparse.ArgumentParser(prog="bench.field_peers")
    options.add_argument("--only", nargs="*", default=[])
    only: list[str] = options.parse_args().only
    cases = [case for case in field_cases() if not only or case.id in only]
    fixtures = [case for case in suite_cases() if not only or case.fixture.id in only]
    rows: dict[str, dict[str, Any]] = {
        case.id: {
            "source": case.source,
            "note": case.note,
            "verdicts": {name: ours(case, reading) for name, reading in OURS.items()},
        }
        for case in cases
    }
    suite_rows = {case.fixture.id: our_suite_row(case) for case in fixtures}
    checked: dict[str, dict[str, bool]] = {}
    only_trimmed: dict[str, list[str]] = {}
    for name in PEERS:
        with started(name) as peer:
            peer.check()
            for number, case in enumerate(cases):
                rows[case.id]["verdicts"][name] = peer.verdicts(case)
                progress(number + 1, len(cases), f"cases by {name}")
            for number, fixture in enumerate(fixtures):
                suite_rows[fixture.fixture.id]["verdicts"][name] = peer.suite_verdicts(fixture)
                progress(number + 1, len(fixtures), f"fixtures by {name}")
        checked[name], only_trimmed[name] = peer.checked, peer.trimmed
    results = {"versions": VERSIONS, "parsers": checked, "only_trimmed": only_trimmed}
    results |= {"cases": rows, "fixtures": suite_rows}
    if only:
        print(json.dumps({**rows, **suite_rows}, indent=1))
    else:
        one_line_each = re.sub(r"\n {3,}", " ", json.dumps(results, indent=1, ensure_ascii=False))
        RESULTS.write_text(one_line_each + "\n", encoding="utf-8")
        PAGE.write_text(fresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    ok = all(all(parsers.values()) for parsers in checked.values())
    figures = {"right": right(rows), "right_fixtures": right(suite_rows)}
    close("field-peers", ok=ok, cases=len(cases), fixtures=len(fixtures), **figures)


def right(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, list[int]]:
    """Return how many texts each reader reads right, by way."""
    readers = next(iter(rows.values()), {"verdicts": ()})["verdicts"]
    return {name: [count(rows, name, Verdict.RIGHT.value, way) for way in range(len(WAYS))] for name in readers}


if __name__ == "__main__":
    main()
