"""Draw docs/run.svg: a run as a user sees it, from a real `toolspeak run` in a terminal, with a scripted model."""

import io
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from testkit.scripted_model import Says, Scripted, called, scripted, text
from testkit.terminal import terminal

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "run.svg"
TASK = "Why does the sum of the cart come out wrong? Fix it."
CART = 'def total(prices):\n    """Add all prices."""\n    return sum(prices[1:])\n'
READ = ("read_file", '{"path": "cart.py"}')
EDIT = ("edit_file", '{"path": "cart.py", "old": "sum(prices[1:])", "new": "sum(prices)"}')
DONE = "total() left out the first price: it summed prices[1:]. It sums all of them now."
WIDTH = 80
_FONT_FACE = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)
_MOVES = r"\x1b\[2K|\x1b\[1A|\x1b\[\?25[lh]|\r|\n"
_STEP = re.compile(rf"({_MOVES})")


def say(upstream: Scripted) -> None:
    """Write the model's part."""
    listed = [{"content": "I look at the files first."}, *called(("list_files", "{}")).deltas]
    upstream.says(Says(listed, "tool_calls"), called(READ), called(EDIT), called(READ), text(DONE))


def played(folder: Path) -> str:
    """Run it, and allow its requests; return everything that the terminal received."""
    (folder / "cart.py").write_text(CART, encoding="utf-8")
    args = ("run", TASK, "--folder", str(folder), "--tools", "files")
    with scripted() as upstream:
        say(upstream)
        with terminal(*args, "--upstream", upstream.url) as screen:
            screen.expect("allow it?")
            screen.press("y\n")
            if screen.status() != 0:
                raise SystemExit(screen.plain)
    return screen.shown.replace(str(folder), "~/shop")


def left(shown: str) -> str:
    """Return what is left on the screen when all is over."""
    rows, at = [""], 0
    for step in _STEP.split(shown):
        if step == "\n":
            at += 1
            rows += [""] * (at == len(rows))
        elif step == "\x1b[1A":
            at -= 1
        elif step == "\x1b[2K":
            rows[at] = ""
        elif step != "\r" and not step.startswith("\x1b[?25"):
            rows[at] += step
    return "\n".join(rows).rstrip()


def main() -> None:
    """Draw."""
    with TemporaryDirectory() as state, TemporaryDirectory() as folder:
        os.environ.update(XDG_STATE_HOME=state, XDG_CONFIG_HOME=state)
        screen = left(played(Path(folder)))
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text.from_ansi(f'$ toolspeak run "{TASK}"\n{screen}'))
    svg = console.export_svg(title="toolspeak run", code_format=_FONT_FACE.sub("", CONSOLE_SVG_FORMAT), unique_id="run")
    PICTURE.write_text(svg, encoding="utf-8")
    print(screen)


if __name__ == "__main__":
    main()
