"""`just site`: build the documentation site into build/site/html, and fail if anything is wrong with it.

python -m tools.site ZENSICAL      the program of Zensical, from a separate environment
"""

import subprocess
import sys
import time
from pathlib import Path

from tools.site.faults import faults
from tools.site.pages import ROOT, collect, sections, sources
from tools.site.texts import write_texts

PAGES = ROOT / "build" / "site" / "pages"
SITE = ROOT / "build" / "site" / "html"


def main(zensical: Path) -> int:
    """Collect, build, write the texts for programs, and check."""
    began = time.monotonic()
    collect(PAGES)
    built = subprocess.run([zensical, "build", "--strict", "--clean"], cwd=ROOT, check=False)
    if built.returncode:
        return built.returncode
    write_texts(PAGES, SITE, sections())
    found = list(faults(SITE, sections(), set(sources())))
    for fault in found:
        print(fault)
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages in {SITE.relative_to(ROOT)}, {len(found)} faults, {time.monotonic() - began:.1f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
