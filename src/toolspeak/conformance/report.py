"""Counts the results of a trial: rows by kind, the worst cases, JSON and the badge."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from toolspeak.conformance.cases import CaseVerdict
from toolspeak.conformance.trial import TrialResult
from toolspeak.ir.json import Json, JsonObject

VERDICTS: Final = tuple(CaseVerdict)
_OTHERS: Final = "other families"
_FEWEST, _MOST_KINDS = 4, 10
"""In a table of more than 10 kinds, a kind needs 4 results for a row of its own."""
_SEVERITY: Final = {verdict: place for place, verdict in enumerate(reversed(VERDICTS))}
_GOOD, _FAIR = 0.95, 0.75
_GREEN, _YELLOW, _RED = "#3a7d34", "#8f6a00", "#b3362b"
"""Each has a contrast of at least 4.5 with white."""
_CHARACTER, _MARGIN, _HEIGHT = 6.6, 10, 20


@dataclass(frozen=True, slots=True)
class KindRow:
    """The counts of one kind."""

    kind: str
    sent: int = 0
    verdicts: Counter[CaseVerdict] = field(default_factory=Counter[CaseVerdict])
    protocol_errors: int = 0
    """Responses whose form breaks the protocol, whatever their verdict is."""
    right: int = 0
    """Results that are right in content and in form."""


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """The outcome of one trial."""

    url: str
    model: str
    results: tuple[TrialResult, ...]

    @property
    def total(self) -> KindRow:
        """All results in one row."""
        return _row("total", self.results)

    @property
    def is_right(self) -> bool:
        """Whether every result is right."""
        return all(result.is_right for result in self.results)

    def rows(self) -> Iterator[KindRow]:
        """Yield a row for each kind, in the order of the cases; kinds with few results share the last one."""
        kinds: dict[str, list[TrialResult]] = {}
        for result in self.results:
            kinds.setdefault(result.case.kind, []).append(result)
        others: list[TrialResult] = []
        for kind, results in kinds.items():
            if len(kinds) > _MOST_KINDS and len(results) < _FEWEST:
                others += results
            else:
                yield _row(kind, results)
        if others:
            yield _row(_OTHERS, others)

    def worst(self) -> list[TrialResult]:
        """Return the results that are not right, the worst first."""
        wrong = [result for result in self.results if not result.is_right]
        return sorted(wrong, key=lambda result: _SEVERITY[result.verdict])

    def as_object(self) -> JsonObject:
        """Return all of it for programs; only results that are not right are listed one by one."""
        return {
            "url": self.url,
            "model": self.model,
            **_counts(self.total),
            "kinds": {row.kind: _counts(row) for row in self.rows()},
            "not_right": [_as_object(result) for result in self.worst()],
        }

    def badge(self) -> str:
        """Draw the badge: the share of right results."""
        total = self.total
        share = total.right / max(1, total.sent)
        color = _GREEN if share >= _GOOD else _YELLOW if share >= _FAIR else _RED
        return _badge("tool calling", f"{total.right} of {total.sent} right", color)


def _row(kind: str, results: Sequence[TrialResult]) -> KindRow:
    return KindRow(
        kind,
        len(results),
        Counter(result.verdict for result in results),
        sum(bool(result.answer.problems) for result in results),
        sum(result.is_right for result in results),
    )


def _counts(row: KindRow) -> JsonObject:
    verdicts: dict[str, Json] = {verdict.name.lower(): row.verdicts[verdict] for verdict in VERDICTS}
    return {"sent": row.sent, "all_right": row.right, **verdicts, "protocol_errors": row.protocol_errors}


def _as_object(result: TrialResult) -> JsonObject:
    answer = result.answer
    return {
        "id": result.case.id,
        "kind": result.case.kind,
        "source": result.case.source,
        "way": result.way,
        "verdict": result.verdict.value,
        "expected": result.case.accepted[0],
        "calls": list(answer.calls),
        "text": answer.text,
        "error": answer.error,
        "problems": list(answer.problems),
        "requests": result.requests,
    }


def _badge(label: str, value: str, color: str) -> str:
    """Return an SVG of two boxes; widths are computed, because a badge is drawn without its font at hand."""
    left, right = (round(len(text) * _CHARACTER) + 2 * _MARGIN for text in (label, value))
    label, value = escape(label), escape(value)
    text = 'font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{_HEIGHT}" role="img" '
        f'aria-label="{label}: {value}">\n'
        f"<title>{label}: {value}</title>\n"
        f'<rect width="{left}" height="{_HEIGHT}" fill="#444"/>\n'
        f'<rect x="{left}" width="{right}" height="{_HEIGHT}" fill="{color}"/>\n'
        f'<g {text}>\n<text x="{left / 2}" y="14">{label}</text>\n'
        f'<text x="{left + right / 2}" y="14">{value}</text>\n</g>\n</svg>\n'
    )
