"""Draws docs/rooms.svg: the rooms of src in their layers, and which room imports which; `--check` only compares.

The layers are those of the import-linter contract, the arrows are read from the import statements. An arrow that
follows from others is left out: a room may import each room that its arrows lead to. The colours have enough contrast
on a white and on a dark page.

An arrow over several layers needs room between the boxes, so it gets an invisible box (a joint) in each layer that it
crosses; arrows to the same room share their joints. Each layer is ordered and placed by the mean of its neighbours.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from tools.house.layers import PACKAGE, rooms
from tools.house.tree import Tree
from tools.imports import reachable

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "rooms.svg"
LEFT_OUT = {"__main__"}
"""It only starts the command line."""
PURE = "the core does no I/O"
"""The contract whose rooms lie on the shaded ground."""

BOX_WIDTH, BOX_HEIGHT, JOINT_WIDTH = 104, 32, 14
GAP, LAYER_HEIGHT, MARGIN = 26, 66, 24
PASSES = 24

Graph = dict[str, frozenset[str]]


def room_graph(tree: Tree, names: Iterable[str]) -> Graph:
    """Return for each room the other rooms that its modules import."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for module, targets in tree.graph.items():
        source = _room(module)
        for target in map(_room, targets):
            if source in found and target in found and source != target:
                found[source].add(target)
    return {name: frozenset(targets) for name, targets in found.items()}


def _room(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.").partition(".")[0]


def without_implied(graph: Graph) -> Graph:
    """Leave out each arrow to a room that another arrow leads to anyway."""
    reached = {name: reachable(graph, name) for name in graph}
    return {
        name: frozenset(target for target in targets if not any(target in reached[other] for other in targets))
        for name, targets in graph.items()
    }


@dataclass
class Picture:
    """Boxes and joints in layers, and lines from one layer to the next."""

    layers: list[list[str]]
    lines: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """Downwards; a joint is named `room@layer`."""
    x: dict[str, float] = field(default_factory=dict[str, float])
    """The middle of each box and joint."""

    def neighbours(self, name: str) -> list[str]:
        """Return the boxes and joints right above and below."""
        above = [other for other, targets in self.lines.items() if name in targets]
        # Sorted: the sum of floats depends on their order, and a last digit decides between boxes at the same place.
        return [*above, *sorted(self.lines.get(name, ()))]

    def wish(self, name: str) -> float:
        """Return the preferred place of a box: over and under its neighbours."""
        near = [self.x[other] for other in self.neighbours(name)]
        return sum(near) / len(near) if near else self.x[name]


def is_joint(name: str) -> bool:
    """Return whether this is a place where a line crosses a layer."""
    return "@" in name


def lay_out(layers: Sequence[Sequence[str]], graph: Graph) -> Picture:
    """Add the joints, then order and place each layer."""
    picture = Picture([list(layer) for layer in layers])
    height = {name: number for number, layer in enumerate(layers) for name in layer}
    for name, targets in graph.items():
        for target in sorted(targets):
            way = [name, *(f"{target}@{layer}" for layer in range(height[name] + 1, height[target])), target]
            for upper, lower in pairwise(way):
                picture.lines.setdefault(upper, set()).add(lower)
            for layer, joint in enumerate(way[1:-1], start=height[name] + 1):
                if joint not in picture.layers[layer]:
                    picture.layers[layer].append(joint)
    for layer in picture.layers:
        _spread(picture, layer, dict.fromkeys(layer, 0.0))
    for number in range(PASSES):
        for layer in picture.layers if number % 2 else reversed(picture.layers):
            wishes = {name: picture.wish(name) for name in layer}
            if number < PASSES // 2:
                layer.sort(key=lambda name: wishes[name])  # first the order, then the places
            _spread(picture, layer, wishes)
    return picture


def _spread(picture: Picture, layer: Sequence[str], wishes: Mapping[str, float]) -> None:
    """Place a layer in its order as near to the wishes as the widths allow: the mean of packing left and right."""
    widths = [JOINT_WIDTH if is_joint(name) else BOX_WIDTH for name in layer]
    distances = [(one + other) / 2 + GAP for one, other in pairwise(widths)]
    wanted = [wishes[name] for name in layer]
    rightwards, leftwards = list(wanted), list(wanted)
    for at, distance in enumerate(distances):
        rightwards[at + 1] = max(rightwards[at + 1], rightwards[at] + distance)
    for at, distance in reversed(list(enumerate(distances))):
        leftwards[at] = min(leftwards[at], leftwards[at + 1] - distance)
    for name, one, other in zip(layer, rightwards, leftwards, strict=True):
        picture.x[name] = (one + other) / 2


STYLE = """
  text { font: 600 14px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; text-anchor: middle }
  .box { fill: #1f5f99; stroke: #4f93d1 }
  .name { fill: #ffffff }
  .line { fill: none; stroke: #7d8896; stroke-width: 1.5 }
  .tip { fill: #7d8896 }
  .ground { fill: #8a94a0; fill-opacity: 0.14 }
  .note { fill: #7d8896; font-size: 12px; font-weight: 400; text-anchor: end }
"""


def draw(picture: Picture, pure: set[str]) -> str:
    """Return the SVG."""
    widths = {name: JOINT_WIDTH if is_joint(name) else BOX_WIDTH for layer in picture.layers for name in layer}
    left = min(picture.x[name] - width / 2 for name, width in widths.items()) - MARGIN
    right = max(picture.x[name] + width / 2 for name, width in widths.items()) + MARGIN
    height = MARGIN * 2 + (len(picture.layers) - 1) * LAYER_HEIGHT + BOX_HEIGHT
    at = {
        name: (picture.x[name] - left, MARGIN + number * LAYER_HEIGHT)
        for number, layer in enumerate(picture.layers)
        for name in layer
    }
    parts = [*_ground(picture, pure, at, right - left), *_lines(picture, at)]
    for name, (x, y) in sorted(at.items()):
        if not is_joint(name):
            box = f'x="{x - BOX_WIDTH / 2:.0f}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"'
            parts.append(f'<rect class="box" {box}/>')
            parts.append(f'<text class="name" x="{x:.0f}" y="{y + 21}">{escape(name)}</text>')
    size = f'viewBox="0 0 {right - left:.0f} {height}" width="{right - left:.0f}" height="{height}"'
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    tip += '<path class="tip" d="M0 0L8 4L0 8z"/></marker>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    title = f"<title>The rooms of {PACKAGE}: an arrow means that a room imports another one</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", f"<defs>{tip}</defs>", *parts, "</svg>", ""])


Places = Mapping[str, tuple[float, float]]


def _ground(picture: Picture, pure: set[str], at: Places, width: float) -> list[str]:
    """Shade the lowest layers, as far up as all their rooms are pure."""
    tops = [at[layer[0]][1] for layer in picture.layers if {name for name in layer if not is_joint(name)} <= pure]
    if not tops:
        return []
    top = min(tops) - (LAYER_HEIGHT - BOX_HEIGHT) / 2
    bottom = max(tops) + BOX_HEIGHT + MARGIN / 2
    box = f'x="8" y="{top:.0f}" width="{width - 16:.0f}" height="{bottom - top:.0f}" rx="10"'
    note = f'<text class="note" x="{width - 20:.0f}" y="{bottom - 10:.0f}">{escape(PURE)}</text>'
    return [f'<rect class="ground" {box}/>', note]


def _lines(picture: Picture, at: Places) -> list[str]:
    """Draw the lines; only those that end at a box have a tip."""
    found: list[str] = []
    for upper, targets in sorted(picture.lines.items()):
        for lower in sorted(targets):
            (x, y), (end_x, end_y) = at[upper], at[lower]
            start = f"M{x:.0f} {y + BOX_HEIGHT}" if not is_joint(upper) else f"M{x:.0f} {y}V{y + BOX_HEIGHT}"
            bend = LAYER_HEIGHT / 3
            curve = f"C{x:.0f} {y + BOX_HEIGHT + bend:.0f} {end_x:.0f} {end_y - bend:.0f} {end_x:.0f} {end_y}"
            tip = "" if is_joint(lower) else ' marker-end="url(#tip)"'
            found.append(f'<path class="line"{tip} d="{start}{curve}"/>')
    return found


def picture_of(tree: Tree) -> str:
    """Return the picture of a tree."""
    layers = [[name for name in layer if name not in LEFT_OUT] for layer in rooms(tree)]
    shown = [layer for layer in layers if layer]
    graph = room_graph(tree, [name for layer in shown for name in layer])
    contracts: list[dict[str, Any]] = tree.settings["tool"]["importlinter"]["contracts"]
    pure = {_room(name) for found in contracts if found["name"] == PURE for name in found["source_modules"]}
    return draw(lay_out(shown, without_implied(graph)), pure)


def main() -> None:
    """Write or check."""
    wanted = picture_of(Tree(ROOT))
    if "--check" not in sys.argv:
        PICTURE.write_text(wanted, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != wanted:
        sys.exit(f"docs/{PICTURE.name} is stale: run `just docs`")


if __name__ == "__main__":
    main()
