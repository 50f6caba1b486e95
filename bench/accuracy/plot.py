"""One picture for each model: the forms as bars, the best on top, each with its interval."""

from collections.abc import Iterator, Sequence
from html import escape

from bench.accuracy.table import Row, kind_of

COLOURS = {"native": "#8a8f98", "seed": "#d9822b", "forge": "#8f5fbf", "ours": "#3b7dd8", "auto": "#1f9d55"}
NAMES = {"native": "bare server", "seed": "others' plain forms", "forge": "forge", "ours": "ours", "auto": "ours, auto"}
LEFT, RIGHT, WIDTH, BAR, TOP, BOTTOM = 336, 64, 960, 22, 78, 50
STYLE = (
    "text{font-family:'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:13px;fill:#24292f}"
    ".title{font-size:17px;font-weight:600}.small{font-size:11.5px;fill:#57606a}"
)


def plot(title: str, note: str, rows: Sequence[Row]) -> str:
    """Draw it as SVG."""
    shown = [row for row in rows if row.average]
    height = TOP + BAR * len(shown) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="20" y="28" class="title">{escape(title)}</text>',
        *_legend({kind_of(row.form) for row in shown}),
        *_grid(len(shown)),
        *(part for index, row in enumerate(shown) for part in _bar(row, TOP + BAR * index)),
        f'<text x="20" y="{height - 12}" class="small">{escape(note)}</text></svg>',
    ]
    return "\n".join(parts) + "\n"


def _x(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def _legend(kinds: set[str]) -> Iterator[str]:
    x = 20.0
    for kind in (kind for kind in COLOURS if kind in kinds):
        yield f'<rect x="{x}" y="42" width="11" height="11" rx="2" fill="{COLOURS[kind]}"/>'
        yield f'<text x="{x + 16}" y="52" class="small">{NAMES[kind]}</text>'
        x += 36 + 6.6 * len(NAMES[kind])


def _grid(count: int) -> Iterator[str]:
    bottom = TOP + BAR * count
    for percent in range(0, 101, 20):
        x = _x(percent / 100)
        yield f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom}" stroke="#d8dee4" stroke-width="1"/>'
        yield f'<text x="{x}" y="{bottom + 15}" text-anchor="middle" class="small">{percent} %</text>'


def _bar(row: Row, y: float) -> Iterator[str]:
    if row.average is None:
        return
    middle, colour = y + BAR / 2, COLOURS[kind_of(row.form)]
    low, value, high = (_x(share) for share in (row.average.low, row.average.value, row.average.high))
    yield f'<text x="{LEFT - 10}" y="{middle + 4.5}" text-anchor="end">{escape(row.form)}</text>'
    yield f'<rect x="{LEFT}" y="{y + 3}" width="{max(value - LEFT, 1):.1f}" height="{BAR - 6}" rx="2" fill="{colour}"/>'
    whisker = f"M{low} {middle}H{high}M{low} {middle - 4}v8M{high} {middle - 4}v8"
    yield f'<path d="{whisker}" stroke="#24292f" stroke-width="1.3" fill="none"/>'
    yield f'<text x="{high + 8}" y="{middle + 4.5}">{100 * row.average.value:.0f}</text>'
