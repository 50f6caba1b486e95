"""Rules of this repository that no other tool checks. Prints what breaks them, and how long our functions are.

- no file has a generic name (utils, helpers, ...): a module is named after its concept;
- no file names a path of a private machine or an address to download from; requirements/ holds versions and hashes;
- no lock file: requirements/*.txt are the pins;
- tests and benches do not import each other: they share `testkit`, which imports neither.
"""

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

EMPTY_NAMES = {"base", "common", "helper", "helpers", "manager", "managers", "util", "utils"}
LOCK_FILES = {"Pipfile.lock", "package-lock.json", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "yarn.lock"}

FORBIDDEN_IMPORTS = {
    "src": {"bench", "testkit", "tests", "tools"},
    "testkit": {"bench", "tests", "tools"},
    "tests": {"bench"},
    "bench": {"tests", "tools"},
}
"""Top folders, and the packages of this repository that no file below them may import."""

# Written in pieces, so that this file does not break its own rules.
FOREIGN_TEXT = {
    "a path of one machine": re.compile(r"(?<![\w.~-])/work" + "/"),
    "a path outside the repository": re.compile(r"\.\./" + "shared"),
    "an address to download from": re.compile(
        r"--(?:extra-)?index" + r"-url\b|--find" + r"-links\b|--trusted" + r"-host\b"
        r"|https?://(?:[\w-]+\.)*(?:registry|mirrors?|downloads?|files|packages)\b"
        r"|https?://\S+/(?:simple|packages|releases/download|resolve)/"
        r"|(?:https?|ftp)://\S+\.(?:whl|zip|tgz|tar\.\w+|gguf|exe|dmg)\b"
    ),
}


def repository_files(root: Path) -> list[Path]:
    """List what git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    return [root / name for name in listing.split("\0") if name and (root / name).is_file()]


def function_lengths(source: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, first line and number of lines of each function, decorators not counted."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def name_breaches(name: str) -> Iterator[str]:
    """Check the path itself."""
    path = Path(name)
    if path.name in LOCK_FILES:
        yield f"{name}: a lock file; the pins are requirements/*.txt"
    if path.suffix == ".py":
        for part in (*path.parent.parts, path.stem):
            if part.strip("_").lower() in EMPTY_NAMES:
                yield f"{name}: {part!r} says nothing; name the concept"


def import_breaches(name: str, source: str) -> Iterator[str]:
    """Check which packages of this repository a Python file imports."""
    forbidden = FORBIDDEN_IMPORTS.get(name.partition("/")[0], set())
    for node in ast.walk(ast.parse(source)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
        for module in modules:
            if module.partition(".")[0] in forbidden:
                yield f"{name}:{getattr(node, 'lineno', 1)}: imports {module}; tests and benches share testkit"


def text_breaches(name: str, text: str) -> Iterator[str]:
    """Check the text of a file, line by line."""
    for number, line in enumerate(text.splitlines(), start=1):
        for what, pattern in FOREIGN_TEXT.items():
            if found := pattern.search(line):
                yield f"{name}:{number}: {what}: {found.group()!r}"


def breaches(root: Path, files: list[Path]) -> Iterator[str]:
    """Check all files."""
    for file in files:
        name = file.relative_to(root).as_posix()
        yield from name_breaches(name)
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        yield from text_breaches(name, text)
        if file.suffix == ".py":
            yield from import_breaches(name, text)


def function_summary(sources: list[Path]) -> str:
    """Report how long our functions are."""
    lengths = [length for file in sources for _, _, length in function_lengths(file.read_text(encoding="utf-8"))]
    if len(lengths) < 2:
        return f"src: {len(sources)} files, {len(lengths)} functions"
    p90 = statistics.quantiles(lengths, n=10)[-1]
    median, longest = statistics.median(lengths), max(lengths)
    return f"src: {len(sources)} files, {len(lengths)} functions, lines: median {median:g}, p90 {p90:g}, max {longest}"


def main() -> int:
    """Print the summary and every breach."""
    root = Path(__file__).resolve().parent.parent
    files = repository_files(root)
    found = list(breaches(root, files))
    print(function_summary([file for file in files if file.is_relative_to(root / "src") and file.suffix == ".py"]))
    print("\n".join(found) if found else f"repository rules: {len(files)} files, no breach")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
