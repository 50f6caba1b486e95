"""Draws screens as one animated SVG: no scripts, no fonts from elsewhere, colours for light and for dark pages.

Each distinct row of text is drawn once, for the time that it is on the screen. Where animations are off, or not
supported, the last screen is shown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise

from tools.recordings.terminal import Cell, Frame

CELL_W, CELL_H, MARGIN, BAR = 8.4, 19, 14, 30
LONGEST_STILL_S = 1.6
"""A screen on which nothing happens is cut to this."""
LAST_S = 4.0
_LIGHT = {
    "default": "#24292f",
    "ground": "#ffffff",
    "edge": "#d0d7de",
    "panel": "#eaeef2",
    "black": "#24292f",
    "red": "#b3261e",
    "green": "#116329",
    "brown": "#7d4e00",
    "blue": "#0550ae",
    "magenta": "#8250df",
    "cyan": "#1b6f78",
    "white": "#57606a",
}
_DARK = {
    "default": "#e6edf3",
    "ground": "#0d1117",
    "edge": "#30363d",
    "panel": "#21262d",
    "black": "#8b949e",
    "red": "#ff7b72",
    "green": "#56d364",
    "brown": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#76e3ea",
    "white": "#b1bac4",
}
_STYLE = """
text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}}
text{{white-space:pre;fill:var(--default)}}
.w{{fill:var(--ground);stroke:var(--edge)}}.b{{font-weight:600}}.d{{opacity:.62}}
svg{{{light}}}
@media (prefers-color-scheme:dark){{svg{{{dark}}}}}
"""


@dataclass(frozen=True, slots=True)
class Span:
    """A row of a screen, from one time to another."""

    number: int
    cells: tuple[Cell, ...]
    begin: float
    end: float
    """The end of the animation, for rows of the last screen."""


def draw(frames: Sequence[Frame], title: str) -> str:
    """Return the picture."""
    rows = max((number for frame in frames for number, row in enumerate(frame.rows) if _is_inked(row)), default=0) + 1
    times, total = _times(frames)
    width = MARGIN * 2 + CELL_W * len(frames[0].rows[0])
    height = BAR + MARGIN + CELL_H * rows + MARGIN // 2
    spans = [span for number in range(rows) for span in _spans(number, frames, times, total)]
    style = _STYLE.format(light=_variables(_LIGHT), dark=_variables(_DARK))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}{_keyframes(spans, total)}</style>",
            f'<rect class="w" x=".5" y=".5" width="{width - 1:g}" height="{height - 1:g}" rx="8"/>',
            *(f'<circle cx="{18 + 18 * at}" cy="16" r="5" fill="var(--edge)"/>' for at in range(3)),
            f'<text x="{width / 2:g}" y="20" text-anchor="middle" class="d">{escape(title)}</text>',
            *(_row(span, at) for at, span in enumerate(spans)),
            "</svg>\n",
        ]
    )


def _times(frames: Sequence[Frame]) -> tuple[list[float], float]:
    """Return when each screen begins, with long stillness cut, and when all is over."""
    times, now = [0.0], 0.0
    for earlier, later in pairwise(frames):
        now += min(later.seconds - earlier.seconds, LONGEST_STILL_S)
        times.append(now)
    return times, now + LAST_S


def _spans(number: int, frames: Sequence[Frame], times: Sequence[float], total: float) -> Iterator[Span]:
    ends = [*times[1:], total]
    shown = zip(frames, times, ends, strict=True)
    for cells, group in groupby(shown, lambda each: each[0].rows[number]):
        lasting = list(group)
        if _is_inked(cells):
            yield Span(number, cells, lasting[0][1], lasting[-1][2])


def _is_inked(row: Sequence[Cell]) -> bool:
    return any(cell.text.strip() or cell.reverse or cell.ground != "default" for cell in row)


def _keyframes(spans: Sequence[Span], total: float) -> str:
    """Return the animations. Without them, only rows of the last screen are visible."""
    rules = [
        f"g.r{{animation-duration:{total:.2f}s;animation-iteration-count:infinite;animation-timing-function:step-end}}"
    ]
    for at, span in enumerate(spans):
        begin, end = 100 * span.begin / total, 100 * span.end / total
        first = "visible" if span.begin == 0 else "hidden"
        steps = f"0%{{visibility:{first}}}" + (f"{begin:.2f}%{{visibility:visible}}" if span.begin else "")
        steps += f"{end:.2f}%{{visibility:hidden}}" if span.end < total else ""
        rules.append(f"@keyframes k{at}{{{steps}100%{{visibility:{'visible' if span.end >= total else 'hidden'}}}}}")
        rules.append(f"#f{at}{{animation-name:k{at}}}")
    still = "".join(f"#f{at}{{visibility:hidden}}" for at, span in enumerate(spans) if span.end < total)
    return f"{still}@media (prefers-reduced-motion:no-preference){{{''.join(rules)}}}"


def _row(span: Span, at: int) -> str:
    top = BAR + MARGIN / 2 + CELL_H * span.number
    pieces: list[str] = []
    column = 0
    for look, group in groupby(span.cells, lambda cell: (cell.color, cell.ground, cell.bold, cell.dim, cell.reverse)):
        cells = list(group)
        pieces += _piece(look, "".join(cell.text for cell in cells), column, len(cells), top)
        column += len(cells)
    return f'<g id="f{at}" class="r">{"".join(pieces)}</g>'


def _piece(look: tuple[str, str, bool, bool, bool], text: str, column: int, cells: int, top: float) -> Iterator[str]:
    color, ground, bold, dim, reverse = look
    left, wide = MARGIN + CELL_W * column, CELL_W * cells
    ink, paper = _ink(color), _paper(ground)
    if reverse:
        ink, paper = paper or "var(--ground)", ink
    if paper:
        yield f'<rect x="{left:g}" y="{top:g}" width="{wide:g}" height="{CELL_H}" fill="{paper}"/>'
    if not text.strip():
        return
    words = text.rstrip()
    kept = "".join([" b" * bold, " d" * dim]).strip()
    looks = (f' class="{kept}"' if kept else "") + (f' style="fill:{ink}"' if ink != "var(--default)" else "")
    # The length keeps columns in line, whatever the width of the font's characters is.
    yield f'<text x="{left:g}" y="{top + 14:g}" textLength="{CELL_W * len(words):g}"{looks}>{escape(words)}</text>'


def _ink(color: str) -> str:
    """Return a colour: one of the theme's eight by its name, another by its value."""
    name = color.removeprefix("bright")
    if name in _LIGHT:
        return f"var(--{name})"
    return f"#{color}" if len(color) == 6 else "var(--default)"  # rrggbb


def _paper(ground: str) -> str:
    """Return a background; black and white mean a panel, which must differ little from the page on both themes."""
    if ground == "default":
        return ""
    return "var(--panel)" if ground.removeprefix("bright") in {"black", "white"} else _ink(ground)


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in palette.items())
