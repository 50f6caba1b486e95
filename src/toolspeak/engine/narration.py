"""Detects answers that mean a call and hold none: "Let me check the weather for you." with nothing called (CHK-15).

Small models stop after such a sentence, and the client takes it for the answer. The detector is conservative: in doubt,
an answer is an answer. It judges whole answers of a few words, of which the last sentence must begin as an announcement
in the first person, have a verb of looking up or doing, and name what a tool is for. Descriptions of tools are nearly
always English, so that other languages need a verb that says it clearly, and nothing that puts it off ("if", "later").

The second kind is an answer that ends in markup with a tool's name and its required keys, in a form that no reader
takes for a call: Gemini wrote `<call:default_api:f{severity:high}/>` (bayes-platform #620), Qwen2.5-Coder a fence after
"I'll list the directory first." (vLLM #32926). Words before a quotation are of another kind: these must announce it,
in their last sentence or in one that names the tool. The 1.5B of that family told Claude Code "I will use the `Write`
function. The `file_path` will be …", then the fence, and no file was written.

The third kind is a JSON object with a tool's name and arguments that no reader takes for a call, because they do not
fit: Qwen2.5-Coder 0.5B copies the tool's definition, or writes a list where the schema has one value.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pkgutil import get_data
from typing import Final, NamedTuple

import msgspec

from toolspeak.dialects.core.json_form import ARGUMENT_KEYS
from toolspeak.engine.loose_calls import object_at
from toolspeak.ir.tool import Tool
from toolspeak.text.strict import parse_object
from toolspeak.toolset.check import is_schema
from toolspeak.toolset.toolset import ToolSet

LONGEST: Final = 240
"""Characters of an announcement; a longer answer says something."""
_STEM: Final = 5
_LEAST_WORD: Final = 4
_NEAR: Final = 3
"""Words after the opener among which an English verb must be."""
_SENTENCE_END: Final = re.compile("[.!:](?=\\s|$)|[…。\uff01\\n]")
"""Not the point in `notes.txt`: agents mostly announce what they do with a file."""
_WORD: Final = re.compile(r"[\w']+")
_MARKUP: Final = re.compile(r"^(?:```|[<\[{|])", re.MULTILINE)
"""Where the markup of an answer begins."""
_LONGEST_MARKUP: Final = 64 * 1024
_OBJECT: Final = re.compile(r"(?:```\w*|<tools>)?\s*\{")
_ASKS_FOR_JSON: Final = re.compile(r"(?i)json|schema|schéma|esquema|d[eé]fini|signatur")
"""A user who says so wants to see a definition, and no call."""
_HEAD: Final = 48
"""Characters of the markup among which the tool's name must begin; logs and data name it anywhere."""
_SCHEMA: Final = re.compile(r'"(?:type|properties|description)"\s*:')
"""A definition of a tool names it and its keys too."""
_QUESTIONS: Final = "?\uff1f\u061f\u00bf"
_LEADS: Final = frozenset(
    ("ok", "okay", "sure", "certainly", "great", "alright", "now", "first", "next", "then", "so", "yes")
)
_WAITS: Final = ("one moment", "just a moment", "please wait", "hold on", "einen moment", "un momento", "un instant")


class _Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    openers: tuple[str, ...]
    """How an announcement begins."""
    verbs: tuple[str, ...]
    """Stems of the verbs of which it must have one."""
    vetoes: frozenset[str]
    """Words that put it off, or make it depend on something."""
    names_tool: bool = False
    """Whether a word of the sentence must occur in the tools."""
    has_spaces: bool = True
    """Whether the language separates words by spaces; Chinese and Japanese do not."""


@cache
def _languages() -> tuple[_Language, ...]:
    data = get_data("toolspeak.engine", "data/announcements.json") or b""
    return msgspec.json.decode(data, type=tuple[_Language, ...])


def announces_call(text: str, tools: Iterable[Tool]) -> bool:
    """Return whether an answer is nothing but the announcement of a call of one of the tools."""
    sentence = _last_sentence(text.strip())
    return bool(sentence) and _announces(sentence, tuple(tools))


def _last_sentence(text: str) -> str:
    """Return the last sentence of a few words; empty if there are more, or a question, or code."""
    sentences = _sentences(text)
    return sentences[-1] if sentences else ""


def _sentences(text: str) -> list[str]:
    """Return the sentences of a few words, without a request to wait at their end; none if there are more, or code."""
    if not 0 < len(text) <= LONGEST or any(mark in text for mark in _QUESTIONS) or "```" in text:
        return []
    text = text.replace("’", "'").replace("*", "").casefold()
    sentences = [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
    while len(sentences) > 1 and sentences[-1].startswith(_WAITS):
        sentences.pop()
    return sentences


class WrittenCall(NamedTuple):
    """Text that means a call and is none, and the tool's name where it is known."""

    text: str
    tool: str = ""


def copied_call(text: str, tools: Sequence[Tool], asked: str) -> WrittenCall | None:
    """Return the JSON object that an answer begins with, if it is a tool's definition, or a call that does not fit.

    A user who `asked` for a definition or for JSON gets it.
    """
    text = text.lstrip()
    begin = _OBJECT.match(text)
    if begin is None or _ASKS_FOR_JSON.search(asked):
        return None
    start = begin.end() - 1
    written = object_at(text[: start + _LONGEST_MARKUP], start)[1]
    value = parse_object(written)
    name = value.get("name")
    if not isinstance(name, str) or all(tool.name != name for tool in tools):
        return None
    arguments = next((value[key] for key in ARGUMENT_KEYS if key in value), None)
    if not isinstance(arguments, dict) or not (is_schema(arguments) or ToolSet.of(tools).fit(name, arguments).problems):
        return None
    return WrittenCall(written, name)


def written_call(text: str, tools: Iterable[Tool]) -> WrittenCall | None:
    """Return the markup that an answer ends in, if it calls a tool in a form that no reader understands."""
    text = text.strip()
    begin = _MARKUP.search(text[:_LONGEST_MARKUP])
    if begin is None or len(text) > _LONGEST_MARKUP or text[-1] not in ">]})|`" or _SCHEMA.search(text):
        return None
    words, markup = text[: begin.start()].rstrip(), text[begin.start() :]
    is_fence = markup.startswith("```")
    if is_fence and (not words or markup.count("```") > 1 + markup.endswith("```")):
        return None  # code, or text that goes on after it
    found = next((tool for tool in tools if _names(markup, tool)), None)
    return WrittenCall(markup) if found is not None and (not words or _introduces(_sentences(words), found)) else None


def _introduces(sentences: list[str], tool: Tool) -> bool:
    """Return whether the last sentence announces something, or another one the use of this tool."""
    name = tool.name.casefold()
    *others, last = sentences or [""]
    return _announces_anywhere(last) or any(_announces_anywhere(one) and name in _WORD.findall(one) for one in others)


def _announces_anywhere(sentence: str) -> bool:
    """Return whether the first person announces something: "To see the files, I'll list the directory first"."""
    return any(f" {opener} " in f" {sentence} " for language in _languages() for opener in language.openers)


def _names(markup: str, tool: Tool) -> bool:
    """Return whether markup has the tool's name and then its required keys; a tool without any names nothing surely."""
    name = re.search(rf"(?<![\w-]){re.escape(tool.name)}(?![\w-])", markup)
    keys = tool.parameters.get("required")
    if name is None or name.start() >= _HEAD or not isinstance(keys, list) or not keys:
        return False
    rest = markup[name.end() :]
    return all(re.search(rf"(?<![\w-]){re.escape(str(key))}[\"'>]?\s*[:=>]", rest) for key in keys)


def _announces(sentence: str, tools: tuple[Tool, ...]) -> bool:
    words = _WORD.findall(sentence)
    while words and words[0] in _LEADS:
        sentence = sentence[sentence.index(words.pop(0)) :].partition(" ")[2].lstrip(" ,")
    names = any(tool.name.casefold() in words for tool in tools)
    return any(_fits(language, sentence, words, tools, names=names) for language in _languages())


def _fits(language: _Language, sentence: str, words: list[str], tools: tuple[Tool, ...], *, names: bool) -> bool:
    opener = next((one for one in language.openers if sentence.startswith(one)), "")
    if not opener:
        return False
    if not language.has_spaces:
        is_put_off = any(veto in sentence for veto in language.vetoes)
        return not is_put_off and any(verb in sentence for verb in language.verbs)
    if sentence[len(opener) : len(opener) + 1].isalnum() or not language.vetoes.isdisjoint(words):
        return False
    # "I'll be happy to read it" offers something: in English the verb comes soon. In German it may be the last word.
    near = words[: len(opener.split()) + _NEAR] if language.names_tool else words
    does = any(word.startswith(language.verbs) for word in near) or not _verbs_of(tools).isdisjoint(near)
    return names or (does and (not language.names_tool or _is_about(words, tools)))


def _verbs_of(tools: Iterable[Tool]) -> set[str]:
    """Return the first words of the names of tools: `turn_on_lamp` is a verb that no list has."""
    firsts = {re.split(r"[_-]", tool.name, maxsplit=1)[0].casefold() for tool in tools}
    return {word for word in firsts if len(word) >= _LEAST_WORD}


def _is_about(words: Iterable[str], tools: tuple[Tool, ...]) -> bool:
    """Return whether a word of meaning occurs in the name, the description or the parameters of a tool."""
    stems = {word[:_STEM] for word in words if len(word) >= _LEAST_WORD}
    for tool in tools:
        properties = tool.parameters.get("properties")
        keys = " ".join(properties) if isinstance(properties, dict) else ""
        said = f"{tool.name} {tool.description} {keys}".replace("_", " ").replace("-", " ").casefold()
        if any(len(word) >= _LEAST_WORD and word[:_STEM] in stems for word in _WORD.findall(said[:4096])):
            return True
    return False
