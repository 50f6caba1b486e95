"""`docs/rooms.svg`: rooms in layers, and only the arrows that do not follow from others."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.house.tree import Tree
from tools.rooms_picture import PICTURE, ROOT, is_joint, lay_out, picture_of, room_graph, without_implied

GRAPH = {
    "top": frozenset({"left", "bottom"}),
    "left": frozenset({"bottom"}),
    "right": frozenset({"bottom"}),
    "bottom": frozenset[str](),
}


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    assert without_implied(GRAPH) == {**GRAPH, "top": frozenset({"left"})}


def test_a_long_arrow_has_a_joint_in_each_layer_and_boxes_do_not_overlap() -> None:
    layers = [["top"], ["left", "right"], ["middle"], ["bottom"]]
    picture = lay_out(layers, {**GRAPH, "middle": frozenset({"bottom"})})
    assert "bottom@1" in picture.layers[1]
    assert "bottom@2" in picture.layers[2]
    for layer in picture.layers:
        places = sorted(picture.x[name] for name in layer if not is_joint(name))
        assert all(right - left > 104 for left, right in pairwise(places))


def test_the_picture_shows_each_room_that_the_code_has() -> None:
    tree = Tree(ROOT)
    shown = set(re.findall(r'class="name"[^>]*>(\w+)<', picture_of(tree)))
    package = ROOT / "src" / "toolspeak"
    # By files, not by folders: a checkout keeps `__pycache__` of rooms that are gone.
    there = {path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")}
    assert shown == there - {"__init__", "__main__"}
    assert room_graph(tree, shown)["cli"] <= shown
    assert ET.fromstring(PICTURE.read_text(encoding="utf-8")).tag.endswith("svg")  # noqa: S314 - our own file


def test_the_picture_is_small() -> None:
    assert Path(PICTURE).stat().st_size < 16_000
