"""The readers of all dialects, JSON repair and Python literals: model text in, events or a value out.

Header: dialect, split seed, options. Content: UTF-8; bytes that are none become lone surrogates, the worst that a
caller of the library can pass.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import pairwise
from typing import Final

from testkit.damage import fragments
from testkit.fuzzing.target import Broken, Target, places
from testkit.golden import cases, samples
from toolspeak.dialects import Dialect, ReadOptions, load, names, native_attempt
from toolspeak.errors import BadJson
from toolspeak.ir.event import Event, raw_of
from toolspeak.ir.json import Json
from toolspeak.ir.message import Call
from toolspeak.ir.tool import AUTO, ChoiceMode, ToolChoice
from toolspeak.ir.turn import fold, split
from toolspeak.runtime.upstream import STEP
from toolspeak.text.jsonspan import JsonSpan
from toolspeak.text.repair import Lenient, repair
from toolspeak.text.strict import dump, parse
from toolspeak.toolset.check import CallChecker
from toolspeak.toolset.toolset import ToolSet

_HEADER: Final = 3
_JSON, _PYTHON, _NATIVE = "json", "python", "native"
_CHOICES: Final = (
    *(AUTO, ToolChoice(ChoiceMode.REQUIRED), ToolChoice(ChoiceMode.NAMED, "now"), ToolChoice(parallel=False)),
)


@cache
def kinds() -> tuple[str, ...]:
    """Return the names of all readers: an input's first byte chooses one."""
    return (*names(), _JSON, _PYTHON, _NATIVE)


@cache
def _tools() -> ToolSet:
    return ToolSet.of(samples()[0].tools)


@cache
def _dialect(name: str) -> Dialect:
    return load(name)


def options_of(byte: int) -> ReadOptions:
    """Return the options that the third byte chooses."""
    return ReadOptions(
        _CHOICES[byte & 3],
        stop=("\nObservation:", "STOP") if byte & 4 else (),
        calls_in_reasoning=bool(byte & 8),
        starts_in_reasoning=bool(byte & 16),
        max_calls=2 if byte & 32 else 128,
        max_block=200 if byte & 64 else 8 * 1024 * 1024,
    )


def check(data: bytes) -> None:
    """Read an input; nothing raises, no byte is lost (P1), and no split changes the result."""
    kind, seed, options, text = _parts(data)
    if kind in (_JSON, _PYTHON):
        _check_json(text, seed, python=kind == _PYTHON)
        return
    if kind == _NATIVE:
        _judge(text, seed)
        return
    dialect = _dialect(kind)
    whole = _read(dialect, options, [text])
    if "".join(map(raw_of, whole)) != text:
        raise Broken(f"P1: {kind} lost or added text")
    split = [text[start:end] for start, end in pairwise((0, *places(len(text), seed), len(text)))]
    pieces = list(text) if seed == 1 else split
    if fold(_read(dialect, options, pieces)) != fold(whole):
        raise Broken(f"{kind} reads another turn when the text is split")


def _read(dialect: Dialect, options: ReadOptions, pieces: list[str]) -> list[Event]:
    reader = dialect.reader(_tools(), options=options)
    return [event for piece in pieces for event in reader.feed(piece)] + reader.finish()


def _judge(arguments: str, seed: int) -> list[Event]:
    """Judge a native call with these arguments, of a tool or of one that is not offered."""
    name = (*_tools().names, "other")[seed % (len(_tools().names) + 1)]
    attempt = native_attempt(Call("call_1", name, arguments), _tools())
    checked = CallChecker(_tools(), AUTO, iter(("call_1",))).check(attempt, arguments)
    return split((checked,) if checked else ())


def _check_json(text: str, seed: int, *, python: bool) -> None:
    with suppress(BadJson):
        value = _value(text, seed, python=python)
        if parse(dump(value)) != value:
            raise Broken("a repaired value changes when it is written as JSON and read again")


def _value(text: str, seed: int, *, python: bool) -> Json:
    if not python:
        JsonSpan().feed(text)
        return repair(text, closed=bool(seed & 1)).value
    return Lenient(text, python=True).value()


def _parts(data: bytes) -> tuple[str, int, ReadOptions, str]:
    first, seed, options = data[:_HEADER].ljust(_HEADER, b"\0")
    text = data[_HEADER:].decode("utf-8", "surrogateescape")
    return kinds()[first % len(kinds())], seed, options_of(options), text


def steps(data: bytes) -> Iterator[Callable[[], object]]:
    """Yield the reads that the gateway makes: it feeds `STEP` characters, then lets other tasks run."""
    kind, seed, options, text = _parts(data)
    if kind in (_JSON, _PYTHON):
        yield lambda: _quiet(text, seed, python=kind == _PYTHON)
        return
    if kind == _NATIVE:
        yield partial(_judge, text, seed)
        return
    reader = _dialect(kind).reader(_tools(), options=options)
    for start in range(0, len(text), STEP):
        yield partial(reader.feed, text[start : start + STEP])
    yield reader.finish


def _quiet(text: str, seed: int, *, python: bool) -> None:
    with suppress(BadJson):
        _value(text, seed, python=python)


def seeds() -> Iterator[bytes]:
    """Yield the golden texts for their own dialect, for `any`, and as JSON."""
    index = {name: number for number, name in enumerate(kinds())}
    for number, case in enumerate(cases()):
        if case.deltas is not None or case.body != "text" or len(case.raw) > 2000:
            continue
        text = case.raw.encode("utf-8", "surrogatepass")
        for name in {case.dialect.name, "any"} & set(index):
            yield bytes((index[name], number % 256, 0)) + text
        if "{" in case.raw:
            cut = case.raw[case.raw.index("{") : case.raw.rindex("}") + 1] if "}" in case.raw else case.raw
            for kind in (_JSON, _PYTHON, _NATIVE):
                yield bytes((index[kind], number % 4, 0)) + cut.encode("utf-8", "surrogatepass")


def words() -> Iterator[bytes]:
    """Yield every marker of every dialect, and syntax."""
    for word in (*fragments(), "\\u", "\\ud800", "\\x41", "1e400", "None", "True", "“", "”", "/*", "//", "'''", '"""'):
        yield word.encode("utf-8", "surrogatepass")


TARGET: Final = Target("readers", _HEADER, check, steps, seeds, words)
