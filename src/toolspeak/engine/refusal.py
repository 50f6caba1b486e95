"""Detects answers in which the model says that it has no tools, although some were offered (CHK-6).

    I'm sorry, but I don't have access to your file system.       a refusal: the model may be asked again
    I can't help with writing malware.                            none: a thing that it will not do
    None of the available tools can change your password.         none: an honest limit
    The file could not be read: permission denied.                none: the report of a tool

Chat models were trained on conversations without tools, and repeat this sentence even if the prompt teaches tools.
Asking again helps, but not after the refusal has been streamed to the client: it would contradict the call that comes
then. So text is held while it may be a refusal. To keep that time short, only the first characters count, and only
sentences that start like a refusal: `RefusalWatch` releases other answers after a word or two.

The verdict does not depend on how the text is cut into chunks. In doubt, the text is not a refusal: an unnecessary
retry costs a request and may lose a right answer, while a refusal that is shown costs nothing more.

The phrases are in `data/refusals.json`, one object for each language (`RefusalWords`). In a phrase, `(a|b|)` means
each of its alternatives, `{world}` the list of that name in `parts`, and `_` a blank. In languages with spaces a phrase
starts where a word starts and may end inside a word, so stems work. Case and accents do not matter, hyphens are blanks,
typographic apostrophes are straight.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pkgutil import get_data
from typing import TypeAlias
from unicodedata import combining, normalize

import msgspec

from toolspeak.text.scan import END, Trie, trie_of

HELD_CHARS = 300
"""Characters of an answer that are judged, and that are held back at most."""
_JOINS = frozenset({"or", "nor", "o", "ou", "oder", "noch", "ni", "или", "ни", "lub", "ani", "of", "veya", "أو", "या"})
"""Words that continue a list after a comma, as in "no access to files, folders, or the internet"."""

_LEAD = " \n,.;:!?…—–、·'¿¡"
_ENDS = " \n.!?"
_BREAKS = re.compile("[,;:()…—–、]")
_QUOTES = {'"': '"', "“": "”", "„": "“”", "«": "»", "»": "«", "「": "」", "『": "』", "《": "》", "`": "`"}
_SENTENCE_ENDS = {"。": ".\n", "｡": ".\n", "।": ".\n", "！": "!\n", "？": "?\n", "؟": "?\n", "\n": "\n", "\r": "\n"}  # noqa: RUF001
_APOSTROPHES = "'\u2018\u2019\u02bc"
_AS = {
    **dict.fromkeys(_APOSTROPHES, "'"),
    **dict.fromkeys("-\u2010\u2011", " "),
    **dict.fromkeys("*\ufeff\u200b", ""),
    "\u0131": "i",  # the Turkish one without a dot
    "،": ",",
    "؛": ";",
}
_VIRAMA = 9  # the one combining class that distinguishes words; all others are accents, which are dropped
_TERMS = str.maketrans({"(": "(?:", "_": " "})

Term: TypeAlias = re.Pattern[str]
Claim: TypeAlias = tuple[Term, ...]
Phrases: TypeAlias = tuple[str, ...]
"""Alternatives: one of them must be in the text."""
Terms: TypeAlias = tuple[Phrases, ...]
"""All of them must be in the text, in any order."""


class RefusalWords(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """The phrases of refusals in one language.

    A sentence may be a refusal if it starts with an opener, after any number of softeners ("I'm sorry, but"). It is a
    refusal if one of its clauses contains a claim, or if the whole sentence contains an `across` (a claim or a
    request). A bare claim ("I have no tools") does not count beside a purpose ("tools for sending mail"): that is an
    honest limit. A veto anywhere means that the text is not a refusal.
    """

    name: str
    softeners: Phrases
    openers: Phrases
    claims: tuple[Terms, ...]
    bare_claims: tuple[Terms, ...]
    purposes: Phrases
    across: tuple[Terms, ...]
    vetoes: Phrases
    parts: dict[str, Phrases] = {}
    """Lists that phrases include as `{name}`; a list may include lists before it."""
    has_spaces: bool = True
    """Whether the language separates words by spaces; Chinese and Japanese do not."""

    def alternatives(self, phrases: Phrases) -> str:
        """Return one phrase that means any of these, with all lists expanded."""
        known: dict[str, str] = {}
        for name, part in self.parts.items():
            known[name] = "|".join(part).format_map(known)
        return "|".join(phrases).format_map(known)


@cache
def languages() -> tuple[RefusalWords, ...]:
    """Load the phrases of all languages, once."""
    return msgspec.json.decode(get_data("toolspeak.engine", "data/refusals.json") or b"", type=tuple[RefusalWords, ...])


def refuses_tools(text: str) -> bool:
    """Return whether an answer claims to have no tools, or no access to files, commands or the internet."""
    watch = RefusalWatch()
    watch.feed(text)
    return watch.verdict()


class RefusalWatch:
    """Decides while an answer streams whether it is a refusal, and until when its text must be held back.

    A state machine over single characters, so that chunks cannot matter. A sentence is first read for an opener
    (`_grammars` is empty), then collected up to its end and searched for claims. `_cleared` is final: the answer is not
    a refusal. `_claimed` is not: a veto in a later sentence still clears the answer.
    """

    def __init__(self) -> None:
        """Start at the first character of an answer."""
        self._seen = 0
        self._visible = _Visible()
        self._sentence = ""
        self._grammars: tuple[_Grammar, ...] = ()  # of the sentence's possible languages; empty before its opener
        self._claimed = False
        self._cleared = False

    def feed(self, text: str) -> bool:
        """Take more text; return whether to hold it back. Once it returns False it stays so, and `verdict` is final."""
        head = text[: HELD_CHARS - self._seen]
        self._seen += len(head)
        for char in head:
            if self._cleared:
                break
            self._take(char)
        return not self._cleared and self._seen < HELD_CHARS

    def verdict(self) -> bool:
        """Return whether the text is a refusal, given that it ends here or is longer than `HELD_CHARS`."""
        if self._cleared:
            return False
        grammars = self._grammars or _opening().at_end(self._sentence)
        if any(grammar.vetoes(self._sentence) for grammar in grammars):
            return False
        return self._claimed or any(grammar.claims(self._sentence) for grammar in grammars)

    def _take(self, char: str) -> None:
        shown = self._visible.of(char)
        self._cleared = shown is None
        for folded in shown or "":  # one character may become two: ß is ss
            if not self._cleared and (folded != " " or not self._sentence.endswith((" ", "\n"))):
                self._sentence += folded
                self._step()

    def _step(self) -> None:
        if not self._grammars:
            self._open()
        elif self._sentence.endswith(("\n", ". ", "! ", "? ")):
            self._close()

    def _open(self) -> None:
        rest, grammars = _opening().read(self._sentence)
        self._sentence = rest or ""
        self._grammars = grammars
        self._cleared = rest is None

    def _close(self) -> None:
        self._cleared = any(grammar.vetoes(self._sentence) for grammar in self._grammars)
        self._claimed = self._claimed or any(grammar.claims(self._sentence) for grammar in self._grammars)
        self._grammars = self._grammars if self._claimed else ()
        self._sentence = ""


class _Visible:
    """Removes quotations, which are not the model's own words, and folds the other characters.

    A quotation around the whole answer is read like plain text. If letters follow its end, it was not the whole answer,
    and `of` returns None: the answer is not a refusal.
    """

    def __init__(self) -> None:
        self._started = False
        self._around = ""  # the marks that close a quotation which started with the answer
        self._inside = ""  # the marks that close the present quotation
        self._closed = False
        self._last = ""

    def of(self, char: str) -> str | None:
        """Return the folded character, "" inside of a quotation, None if the answer cannot be a refusal."""
        last, self._last = self._last, char
        if self._inside:
            self._inside = "" if char in self._inside else self._inside
            return ""
        if self._closed:
            return None if char.isalnum() else ""
        if not self._started:
            return self._first(char)
        if self._around and self._closes(char, last):
            self._closed = True
            return "\n"
        self._inside = _QUOTES.get(char, "")
        return " " if self._inside else _folded(char)

    def _first(self, char: str) -> str | None:
        if char == "`":
            return None
        self._around = "'" if char in _APOSTROPHES else _QUOTES.get(char, "")
        self._started = not char.isspace()
        return "" if self._around else _folded(char)

    def _closes(self, char: str, last: str) -> bool:
        if self._around == "'":
            return last in _APOSTROPHES and not char.isalnum()
        return char in self._around


class _Opening:
    """How refusals start, in all languages."""

    def __init__(self) -> None:
        self._soft: dict[str, bool] = {}  # whether a blank or a mark must follow
        self._open: dict[str, tuple[RefusalWords, ...]] = {}
        for words in languages():
            self._soft.update(dict.fromkeys(_expanded(words.alternatives(words.softeners)), words.has_spaces))
            for literal in _expanded(words.alternatives(words.openers)):
                self._open[literal] = (*self._open.get(literal, ()), words)
        # Not `Markers`: its one pattern for thousands of literals takes half a second to compile.
        self._trie = trie_of((*self._soft, *self._open))

    def read(self, text: str) -> "tuple[str | None, tuple[_Grammar, ...]]":
        """Return the text after its softeners, and the languages whose opener it starts with.

        Without languages, more text is needed. None instead of a text means that no opener can come.
        """
        while text := text.lstrip(_LEAD):
            literal = _longest(self._trie, text)
            if literal is None:
                return None, ()
            if literal in self._open:
                return text, tuple(map(_grammar, self._open[literal]))
            after = text[len(literal) :]
            if not literal or not after:
                break
            if self._soft[literal] and literal[-1].isalnum() and after[0].isalnum():
                return None, ()
            text = after
        return text, ()

    def at_end(self, text: str) -> "tuple[_Grammar, ...]":
        """Return the languages whose opener a complete text starts with."""
        literal = _longest(self._trie, text, final=True)
        return tuple(map(_grammar, self._open.get(literal or "", ())))


def _longest(trie: Trie, text: str, *, final: bool = False) -> str | None:
    """Return the literal that the text starts with, "" if more text is needed to tell, None if there is none."""
    node, found = trie, None
    for end, char in enumerate(text, start=1):
        if char not in node:
            return found
        node = node[char]
        if END in node:
            found = text[:end]
    return found if final or node.keys() == {END} else ""


@cache
def _opening() -> _Opening:
    return _Opening()


@dataclass(frozen=True, slots=True)
class _Grammar:
    """The compiled phrases of one language."""

    spaced: bool
    full: tuple[Claim, ...]
    bare: tuple[Claim, ...]
    purposes: Claim
    across: tuple[Claim, ...]
    veto: Claim

    def vetoes(self, sentence: str) -> bool:
        return _any_in(self.veto, _flat(sentence))

    def claims(self, sentence: str) -> bool:
        flat = _flat(sentence)
        if _one_of(self.across, flat):
            return True
        if sentence.rstrip().endswith("?"):
            return False  # "Do I have no access to the file?" claims nothing
        bare = () if _any_in(self.purposes, flat) else self.bare
        return any(_one_of((*self.full, *bare), clause) for clause in _clauses(sentence, spaced=self.spaced))


@cache
def _grammar(words: RefusalWords) -> _Grammar:
    """Compile the phrases of one language; this happens when the first sentence opens in it."""

    def claim(terms: Terms) -> Claim:
        return tuple(_term(words.alternatives(term), spaced=words.has_spaces) for term in terms)

    return _Grammar(
        spaced=words.has_spaces,
        full=tuple(map(claim, words.claims)),
        bare=tuple(map(claim, words.bare_claims)),
        purposes=claim((words.purposes,)),
        across=tuple(map(claim, words.across)),
        veto=claim((words.vetoes,)),
    )


def _term(text: str, *, spaced: bool) -> Term:
    """Compile alternatives of literals. They have no repetition, so the pattern cannot backtrack (SAFE-5)."""
    escaped = "".join(char if char in "(|)_" else re.escape(char) for char in _fold(text))
    return re.compile(f"{' ' if spaced else ''}(?:{escaped.translate(_TERMS)})")


def _any_in(terms: Iterable[Term], text: str) -> bool:
    return any(term.search(text) for term in terms)


def _one_of(claims: Iterable[Claim], text: str) -> bool:
    return any(all(term.search(text) for term in claim) for claim in claims)


def _flat(sentence: str) -> str:
    return f" {' '.join(_BREAKS.sub(' ', sentence.rstrip(_ENDS)).split())} "


def _clauses(sentence: str, *, spaced: bool) -> list[str]:
    """Split a sentence at commas and similar marks, but not inside a list of words.

    A claim must be within one clause: "I can read the file, but have no internet" must not combine words of both.
    """
    clauses: list[str] = []
    for piece in _BREAKS.split(sentence.rstrip(_ENDS)):
        words = piece.split()
        if clauses and spaced and words and (len(words) == 1 or words[0] in _JOINS):
            clauses[-1] += f"{' '.join(words)} "
        else:
            clauses.append(f" {' '.join(words)} ")
    return clauses


def _expanded(text: str) -> list[str]:
    """Return all texts that a phrase means: `a (b|c)|d` is `a b`, `a c` and `d`."""
    return _parsed(_fold(text).replace("_", " "))


def _parsed(text: str) -> list[str]:
    done: list[str] = []
    stack: list[tuple[list[str], list[str]]] = []  # for each open group: the alternatives and prefixes outside of it
    before, current = done, [""]
    for char in text:
        if char == "(":
            stack.append((before, current))
            before, current = [], [""]
        elif char == "|":
            before.extend(current)
            current = [""]
        elif char == ")":
            group = [*before, *current]
            before, prefixes = stack.pop()
            current = [prefix + each for prefix in prefixes for each in group]
        else:
            current = [each + char for each in current]
    return [*done, *current]


def _fold(text: str) -> str:
    return "".join(map(_folded, text))


@lru_cache(maxsize=4096)
def _folded(char: str) -> str:
    """Return one character without case, accents and width; emoji become empty.

    It looks at single characters only, so the chunks of a stream cannot matter. From U+0980 on, only Latin letters with
    accents and full-width forms are decomposed; NFKD would take Hangul syllables apart.
    """
    if char in _SENTENCE_ENDS:
        return _SENTENCE_ENDS[char]
    if char in _AS:
        return _AS[char]
    if char.isspace():
        return " "
    if "\u2600" <= char <= "\u27bf" or "\ufe00" <= char <= "\ufe0f" or char >= "\U0001f000":
        return ""
    plain = char.casefold()
    if char < "\u0980" or "\u1e00" <= char <= "\u1eff" or "\uff00" <= char <= "\uffef":
        plain = normalize("NFKD", plain)
    return "".join(_AS.get(part, part) for part in plain if combining(part) in {0, _VIRAMA})
