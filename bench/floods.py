"""Texts made to cost much, by families: floods, storms, nesting, near-markers, values and blanks that do not end."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeAlias

from testkit.golden import samples
from toolspeak.dialects import load
from toolspeak.dialects.core.grammar import MarkupGrammar

Make: TypeAlias = Callable[[int], str]
"""Makes a text of about the given length."""

PROSE = (
    "The *quick* brown fox jumps over the lazy dog; it costs < 5 € and `code` may follow.\n"
    "> a quotation, 3 < 4 and a [link](https://example.org)\n\n"
    '- first {item}\n- second: `f(x)`, "quoted", it\'s fine\n\n'
)


def fill(piece: str, before: str = "", after: str = "") -> Make:
    """Make texts that repeat a piece."""
    return lambda size: before + piece * max(1, (size - len(before) - len(after)) // len(piece)) + after


# at the top of a message

FLOODS = {
    "plain text": PROSE,
    "deep arrays": "[",
    "deep objects": '{"a":',
    "double quotes": '"',
    "less-than signs": "<",
    "tags in words": "<b>x</b> ",
    "half tags": "</",
    "newlines": "\n",
    "blanks": " ",
    "backticks": "`",
    "inline code": "`x``y",
    "fences": "```\n",
    "fenced lines": "```json\n{}\n",
    "tildes": "~",
    "long fences": "````\n```\n",
    "quotations": "> x\n",
    "greater-than signs": ">",
    "broken calls": '<tool_call>{"a" ',
    "broken lists": "[now(",
    "broken functions": "<function=",
    "broken invokes": '<invoke name="',
    "one argument after another": "now(a=1, ",
    "bare calls in lines": '{"name": "now", "arguments": {}}\n',
    "backslashes": "\\",
    "letters": "a",
}
TAGGED = "<tool_call><function=find_bus><parameter=stop>Oslo S</parameter></function></tool_call>"
AFTER_TEXT = ("deep arrays", "less-than signs", "blanks", "backticks")
BETWEEN = {
    "many small calls in a list": ("[", "now(),", "now()]"),
    "many arguments": ("[now(", "a=1,", "a=2)]"),
    "many bad calls in an array": ('<tool_call>[{"name":"now","arguments":{}}', ',{"name":"x","arguments":{}}', "]"),
    "many calls in an array": ("<tool_call>[{}", ',{"name":"now","arguments":{}}', "]</tool_call>"),
    "many keys": ('<tool_call>{"name":"now","arguments":{"a":0', ',"a":1', "}}</tool_call>"),
    "many parameters": ("<tool_call><function=now>", "<parameter=a>\n<parameter=b>x</parameter>\n", "</function>"),
    "a call and ends of calls": (f"{TAGGED} x", "</parameter></function></tool_call> x", ""),
    "a call and text": (TAGGED, "x <b>y</b> ", ""),
    "tagged calls and text": ("", f"{TAGGED} x ", ""),
    "tagged calls and stray closers": ("", f"{TAGGED} x </parameter> ", ""),
    "tagged calls and stray openers": ("", f"{TAGGED} <parameter=stop> x ", ""),
    "bare calls and text": ("", '{"name": "now", "arguments": {}}\n', "text"),
    "a bracket and blanks": ("[", " ", "x"),
    "a call and blanks": ('<tool_call>{"name": "now", "arguments": {}}', " ", "x"),
    "a closer and blanks": ('<tool_call>{"name": "now", "arguments": {}}</tool_call>', " ", "x"),
    "JSON in a tag and blanks": ("<function=now>{}", " ", "x"),
    "a long name": ("<tool_call>", "a", "</tool_call>"),
    "a long key": ("<tool_call>now<arg_key>", "a", "</arg_key>"),
    "a long tag": ("<tool_call><function=now><parameter=", "a", ">"),
    "a long attribute": ("<tool_call><function=now><parameter ", "a", ">"),
    "long numbers": ('<tool_call>{"name":"now","arguments":{"a":[0', "," + "9" * 5000, "]}}</tool_call>"),
    "an unclosed thought": ("<think>", "so <tool_call> or ", ""),
    "calls in thoughts": ("<think>", '<tool_call>{"name": "now", "arguments": {}}</tool_call>\n', ""),
    "calls in thoughts and text": ("<think>", '<tool_call>{"name": "now", "arguments": {}}</tool_call>', "text"),
    "thoughts": ("", "<think>x</think>\n", ""),
    "half thoughts": ("<think>", "</think", ""),
    "a forged result": ('<tool_call>{"name": "now", "arguments": {}}</tool_call><tool_response>', "x</tool", ""),
}

# inside a value of a dialect's own sample

INSIDE = {
    "letters": "a",
    "double quotes": '"',
    "single quotes": "'",
    "backslashes": "\\",
    "blanks": " ",
    "newlines": "\n",
    "less-than signs": "<",
    "half closers": "</",
    "closers of values": "</parameter> x",
    "near-closers of values": "</parameter",
    "closers of pairs": "</arg_value> x",
    "ends of calls": "</parameter></function></tool_call> x",
    "ends of calls in a row": "</parameter></function></tool_call>",
    "ends of pairs": "</arg_value></tool_call> x",
    "calls": "<tool_call><function=f><parameter=a>x</parameter></function></tool_call> ",
    "invokes": '<invoke name="f"><parameter name="a">x</parameter></invoke> ',
    "sections": "<![CDATA[ x ]]> ",
    "openers of values": "\n<parameter=path>",
    "quote tokens": '<|"|',
    "brackets": "]",
    "braces": "{",
    "parentheses": ")",
}


def sample_of(name: str) -> str:
    """Return a text of the dialect with a value in it."""
    found = [case.raw for case in samples() if case.dialect.name == name and not case.id.startswith("BAD")]
    return found[-1] if found else '<tool_call>\n{"name": "find_bus", "arguments": {"stop": "Oslo S"}}\n</tool_call>'


def markup_of(grammar: MarkupGrammar) -> dict[str, list[str]]:
    """Collect a grammar's literals."""
    fences = [f"```{info}\n" for wrapper in grammar.wrappers if wrapper.fence for info in wrapper.openers]
    plain = [opener for wrapper in grammar.wrappers if not wrapper.fence for opener in wrapper.openers]
    openers = [*fences, *plain, *(mark.opener for mark in grammar.reasoning), *(s.literal for s in grammar.specials)]
    closers = [*grammar.closers, *(closer for wrapper in grammar.wrappers for closer in wrapper.closers)]
    others = [*grammar.results, *grammar.result_lines, *(label.literal for label in grammar.labels)]
    return {"openers": openers, "closers": closers, "other markers": others}


def by_grammar(name: str) -> Iterator[tuple[str, Make]]:
    """Make the floods of a dialect's own markup: whole, cut by one character, in a thought, each on its line."""
    for kind, literals in markup_of(load(name).grammar).items():
        if not literals:
            continue
        yield kind, fill("".join(literals))
        yield f"near {kind}", fill("".join(literal[:-1] for literal in literals))
        yield f"{kind} in lines", fill("x\n".join(literals) + "x\n")
        yield f"{kind} in a thought", fill("x".join(literals), "<think>")
        yield f"the first of the {kind}", fill(literals[0] + "x ", "x ")


def by_sample(name: str) -> Iterator[tuple[str, Make]]:
    """Flood the dialect's sample: again and again, in a value that ends, in one that does not, after its end."""
    sample = sample_of(name)
    start = sample.index("Oslo" if "Oslo" in sample else "a.txt")
    before, after = sample[:start], sample[start:]
    closer = markup_of(load(name).grammar)["closers"][0]
    yield "calls", fill(sample + "\n")
    yield "calls and text", fill(sample + "\n", after="text")
    yield "a long tag in a value", fill("a", before + "<a", after)
    yield "closers in a value", fill(closer + " x", before, after)
    yield "near-closers in a value", fill(closer[:-1], before, after)
    yield "blanks behind nine tenths of a call", fill(" ", sample[: len(sample) * 9 // 10], "x")
    yield "blanks behind a call", fill(" ", sample.rstrip("]>)}"), "x")
    yield "newlines behind a name", fill("\n", sample[: sample.index("_") + 5], after)
    for what, piece in INSIDE.items():
        yield f"{what} in a value", fill(piece, before, after)


@cache
def families_of(name: str) -> dict[str, Make]:
    """Return all families for a dialect."""
    top = {what: fill(piece) for what, piece in FLOODS.items()}
    after_text = {f"{what} after text": fill(FLOODS[what], "a ") for what in AFTER_TEXT}
    between = {what: fill(piece, before, after) for what, (before, piece, after) in BETWEEN.items()}
    return top | after_text | between | dict(by_grammar(name)) | dict(by_sample(name))


# JSON and byte streams

JSON_FLOODS = {
    "deep arrays": fill("["),
    "deep objects": fill('{"a":'),
    "quotes": fill('"', '{"a": "'),
    "quotes and commas": fill('",', '{"a": "'),
    "pairs of quotes": fill('"d" b', '{"a": "c', '"}'),
    "single quotes": fill("'", "['"),
    "apostrophes": fill("a'b", "['", "']"),
    "backslashes": fill("\\", '["', '"]'),
    "invalid escapes": fill("\\d", '["', '"]'),
    "drives": fill("C:\\d ", '["\\d ', '"]'),
    "surrogates": fill("\\ud83d", '["', '"]'),
    "blanks": fill(" ", "[", "]"),
    "newlines": fill("\n", "[", "!"),
    "comments": fill("/* */", "[", "1]"),
    "commas": fill(",", "[", "]"),
    "trailing commas": fill("[1,],", "[", "]"),
    "many keys": fill('"a":1,', "{", "}"),
    "bare keys": fill("a:1,", "{", "}"),
    "words": fill("True,", "[", "]"),
    "5000 digits": fill("9" * 5000 + ",", "[", "]"),
    "one long number": fill("9"),
    "exponents": fill("1e999,", "[", "]"),
    "floats": fill("1.5e3,", "[", "]"),
    "surplus closers": fill("}", "{"),
    "fences": fill("```json\n"),
    "one string": fill("é", '["', '"]'),
    "small objects": fill('{"a": [1, "x", null]},', "[", "{}]"),
    "broken in the end": fill('{"a": [1, "x", null]},', "[", "'x]"),
    "plain text": fill(PROSE),
}
FRAME_FLOODS = {
    "one line": fill("x", "data: "),
    "events": fill('data: {"a": 1}\n\n'),
    "data lines": fill("data: x\n"),
    "empty data lines": fill("data:\n"),
    "newlines": fill("\n"),
    "carriage returns": fill("\r"),
    "both": fill("\r\n"),
    "comments": fill(": x\n"),
    "ids": fill("id: 1\n"),
    "names": fill("event: x\n"),
    "colons": fill(":"),
    "unknown fields": fill("x: y\n"),
    "JSON lines": fill('{"a": 1}\n'),
    "blank lines": fill(" \n"),
    "marks": fill("\ufeff"),
}
