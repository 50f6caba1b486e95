"""A small reader of grammars in llama.cpp's notation, to judge ours: it tells what they accept, and writes examples."""

import re
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

TOKEN = re.compile(
    r'\s+|(?P<text>"(?:[^"\\]|\\.)*")|(?P<chars>\[(?:[^\]\\]|\\.)*\])|(?P<times>[*+?]|\{\d+(?:,\d*)?\})|(?P<mark>[()|])'
    r"|(?P<name>[a-zA-Z][a-zA-Z0-9-]*)"
)
ESCAPE = re.compile(r"\\(?:x([0-9A-F]{2})|u([0-9A-F]{4})|U([0-9A-F]{8})|(.))|(.)", re.DOTALL)
PLAIN = {"n": "\n", "r": "\r", "t": "\t"}
ANY = "aZ09 \n<{\"'ø🙂"
DEEP = 40
MANY = 10_000


@dataclass(frozen=True)
class Chars:
    ranges: tuple[tuple[int, int], ...]
    negated: bool

    def has(self, char: str) -> bool:
        return any(low <= ord(char) <= high for low, high in self.ranges) is not self.negated


@dataclass(frozen=True)
class Times:
    of: "Expr"
    least: int
    most: int


@dataclass(frozen=True)
class Both:
    parts: tuple["Expr", ...]


@dataclass(frozen=True)
class Either:
    ways: tuple["Expr", ...]


@dataclass(frozen=True)
class Name:
    name: str


Expr: TypeAlias = str | Chars | Times | Both | Either | Name


def _unescaped(text: str) -> list[str]:
    found = (one.groups() for one in ESCAPE.finditer(text))
    return [
        chr(int(x or u or big, 16)) if x or u or big else PLAIN.get(c, c) if c else raw for x, u, big, c, raw in found
    ]


def _chars(text: str) -> Chars:
    negated = text.startswith("[^")
    parts = [one.group() for one in ESCAPE.finditer(text[2 if negated else 1 : -1])]
    ranges: list[tuple[int, int]] = []
    while parts:
        first = ord(_unescaped(parts.pop(0))[0])
        if len(parts) > 1 and parts[0] == "-":
            last = ord(_unescaped(parts[1])[0])
            del parts[:2]
        else:
            last = first
        ranges.append((first, last))
    return Chars(tuple(ranges), negated)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        pos = 0
        while pos < len(text):
            found = TOKEN.match(text, pos)
            assert found is not None, text[pos : pos + 40]
            if found.lastgroup:
                self.tokens.append((found.lastgroup, found.group()))
            pos = found.end()

    def either(self) -> Expr:
        ways = [self.both()]
        while self.tokens and self.tokens[0][1] == "|":
            self.tokens.pop(0)
            ways.append(self.both())
        return ways[0] if len(ways) == 1 else Either(tuple(ways))

    def both(self) -> Expr:
        parts: list[Expr] = []
        while self.tokens and self.tokens[0] not in (("mark", "|"), ("mark", ")")):
            kind, text = self.tokens.pop(0)
            match kind:
                case "text":
                    parts.append("".join(_unescaped(text[1:-1])))
                case "chars":
                    parts.append(_chars(text))
                case "name":
                    parts.append(Name(text))
                case "times":
                    parts[-1] = _times(parts[-1], text)
                case _:
                    parts.append(self.either())
                    assert self.tokens.pop(0)[1] == ")"
        return Both(tuple(parts))


def _times(of: Expr, text: str) -> Times:
    if text in "*+?":
        return Times(of, int(text == "+"), 1 if text == "?" else MANY)
    least, comma, most = text[1:-1].partition(",")
    return Times(of, int(least), int(most) if most else MANY if comma else int(least))


@dataclass
class Matcher:
    """One grammar."""

    text: str
    rules: dict[str, Expr] = field(default_factory=dict[str, Expr])

    def __post_init__(self) -> None:
        for line in self.text.splitlines():
            name, _, body = line.partition(" ::= ")
            assert name not in self.rules, name
            self.rules[name] = _Parser(body).either()

    def accepts(self, text: str) -> bool:
        return len(text) in _Match(self.rules, text).ends(Name("root"), 0)

    def example(self, random: Random) -> str:
        return _Examples(self.rules, random).text(Name("root"))


@dataclass
class _Match:
    rules: dict[str, Expr]
    text: str
    known: dict[tuple[str, int], frozenset[int]] = field(default_factory=dict[tuple[str, int], frozenset[int]])

    def ends(self, expr: Expr, pos: int) -> frozenset[int]:
        match expr:
            case str():
                return frozenset({pos + len(expr)} if self.text.startswith(expr, pos) else ())
            case Chars():
                return frozenset({pos + 1} if pos < len(self.text) and expr.has(self.text[pos]) else ())
            case Name(name):
                if (name, pos) not in self.known:
                    self.known[name, pos] = self.ends(self.rules[name], pos)
                return self.known[name, pos]
            case Either(ways):
                return frozenset(end for way in ways for end in self.ends(way, pos))
            case Both(parts):
                at = frozenset({pos})
                for part in parts:
                    at = frozenset(end for begin in at for end in self.ends(part, begin))
                return at
            case Times():
                return self._repeated(expr, pos)

    def _repeated(self, expr: Times, pos: int) -> frozenset[int]:
        at, found = frozenset({pos}), set[int]()
        for count in range(expr.most + 1):
            found |= at if count >= expr.least else set()
            at = frozenset(end for begin in at for end in self.ends(expr.of, begin)) - (
                found if count >= expr.least else set()
            )
            if not at:
                break
        return frozenset(found)


@dataclass
class _Examples:
    """Writes texts of a grammar; deep inside, by the shortest way out."""

    rules: dict[str, Expr]
    random: Random
    heights: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.heights = dict.fromkeys(self.rules, MANY)
        changed = True
        while changed:
            found = {name: 1 + self.height(expr) for name, expr in self.rules.items()}
            capped = {name: min(MANY, one) for name, one in found.items()}
            changed, self.heights = capped != self.heights, capped

    def height(self, expr: Expr) -> int:
        match expr:
            case str() | Chars():
                return 0
            case Name(name):
                return self.heights[name]
            case Either(ways):
                return min(map(self.height, ways))
            case Both(parts):
                return max(map(self.height, parts), default=0)
            case Times(of, least):
                return self.height(of) if least else 0

    def text(self, expr: Expr, depth: int = 0) -> str:
        match expr:
            case str():
                return expr
            case Chars():
                spread = [chr(code) for low, high in expr.ranges for code in (low, (low + high) // 2, high)]
                return self.random.choice([char for char in (ANY if expr.negated else spread) if expr.has(char)])
            case Name(name):
                return self.text(self.rules[name], depth + 1)
            case Either(ways):
                way = min(ways, key=self.height) if depth > DEEP else self.random.choice(ways)
                return self.text(way, depth + 1)
            case Both(parts):
                return "".join(self.text(part, depth + 1) for part in parts)
            case Times(of, least, most):
                count = least if depth > DEEP else self.random.randint(least, min(most, least + 3))
                return "".join(self.text(of, depth + 1) for _ in range(count))
