"""What runs of a real model came to, as they are kept, and the page that shows them: docs/example-run.md."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST = 300
HEAD = """# An example run

What a real model does in a run: small file tasks, run by Qwen2.5-Coder with 1.5 billion parameters (Q4_K_M, a file of
1.12 GB) behind [`toolspeak up`](up.md), on two cores that were also busy with other work. `just example-run` generates
this page. Temperature 0, at most 8 rounds, 400 tokens per turn.

The limits of the 1.5B model, in our reading of its transcripts:

- It reads 31, 47 and 28 points, and picks the first player as the best (`scores`).
- It replaces a word with the same word (`spelling`), and reads one of two files (`both`). The run tells the model what
  is left to do. The model continues with a tool result that it made up, which is not a final text (RUN-17), so the run
  ends with a summary.
- In `both` it wrote the call for the second file between the tags of a tool result, three times. toolspeak asks the
  model for such a call again, and does not run it: the text between these tags is mostly not the model's own.
"""
TABLE = """
## All runs

`file` shows whether the files were right at the end, `answer` whether the final text was right. An answer that was
written before the model saw the file is a guess, and counts as wrong. The tools are `read_file`, `write_file`,
`edit_file`, `list_files`, with or without `final_output`. The seconds say more about the machine than about the form.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One run, as it is kept."""

    model: str
    task: str
    form: str
    tools: str
    plan: str
    did: bool
    says: bool
    status: str
    text: str
    reason: str
    rounds: list[dict[str, Any]]
    files: dict[str, str]
    seconds: float
    tokens: list[int]

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.model, self.task, self.form, self.tools

    @property
    def right(self) -> bool:
        return self.did and self.says


def kept(path: Path) -> dict[tuple[str, str, str, str], Line]:
    """Read what was done; the last time counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.key: line for line in (Line(**json.loads(each)) for each in lines)}


def page(lines: Sequence[Line], asks: Mapping[str, str], shown: Sequence[tuple[str, str, str, str]]) -> str:
    """Write the page: some transcripts, then all runs in tables."""
    by_key = {line.key: line for line in lines}
    transcripts = [transcript(by_key[key], asks[key[1]]) for key in shown if key in by_key]
    tables = [
        table([line for line in lines if line.model == model]) for model in sorted({line.model for line in lines})
    ]
    return "\n".join([HEAD, *transcripts]) + TABLE + "".join(reversed(tables))


def transcript(line: Line, asks: str) -> str:
    """Write one run down, round by round."""
    used = f"{line.seconds:.0f} seconds, {line.tokens[0]} tokens in, {line.tokens[1]} out"
    came = "done" if line.right else f"not done: the files are {_yes(line.did)}, the answer is {_yes(line.says)}"
    return "\n".join(
        [
            f"## {line.model}, “{line.task}”, form `{line.form}`: {came}\n",
            f"Tools: {line.tools}. Plan: `{line.plan}`. {used}.\n",
            "```",
            f"task    {asks}",
            *(row for number, each in enumerate(line.rounds, start=1) for row in _round(number, each)),
            *_block("answer", line.text or f"(none: {line.reason})"),
            *([] if line.status == "done" else [f"status  {line.status}: {line.reason}"]),
            "```\n",
        ]
    )


def table(lines: Sequence[Line]) -> str:
    """Write the runs of one model."""
    rows = [f"\n### {lines[0].model}\n", "| task | tools | form | file | answer | ended | rounds | seconds |"]
    rows.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for line in lines:
        said = f"{_yes(line.did)} | {_yes(line.says)} | {line.status.replace('_', ' ')}"
        rows.append(
            f"| {line.task} | {line.tools} | `{line.form}` | {said} | {len(line.rounds)} | {line.seconds:.0f} |"
        )
    return "\n".join([*rows, f"\n{sum(line.right for line in lines)} of {len(lines)} right.\n"])


def _round(number: int, each: dict[str, Any]) -> Iterator[str]:
    before = "".join(part.get("text", "") for part in each["before"]).strip()
    if before:
        yield from _block(f"round {number}"[:7], before)
    for call, result in zip(each["calls"], each["results"], strict=True):
        said = "\n".join(part.get("text", "") for part in result["content"])
        arguments = json.dumps(json.loads(call["arguments"]), ensure_ascii=False)
        yield from _block(f"round {number}"[:7], f"{call['name']} {arguments}")
        yield from _block("  error" if result.get("is_error") else " result", said)


def _block(label: str, text: str) -> Iterator[str]:
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"
    for index, row in enumerate(text.replace("```", "'''").splitlines() or [""]):
        yield f"{label if index == 0 else '':8}{row}".rstrip()


def _yes(right: bool) -> str:
    return "right" if right else "wrong"
