"""The first layer of a probe: reads what a server says about itself. It costs no tokens, and settles some questions.

    models                 all servers   the kind of server; OpenRouter: what each model supports
    /props                 llama.cpp     the chat template, and whether it shows tools to the model
    /api/show              Ollama        the model's capabilities: without `tools` it refuses them
    /api/v0/models         LM Studio     whether the model was trained for tools
    /version               vLLM          its build

A missing page means that it is another kind of server. No page says whether calls come back as calls, so metadata alone
never settles that tools work; it can settle that they do not.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, TypeAlias

import jiter
import msgspec

from toolspeak.engine.effects import Look, ProbeAnswer, ProbeEffect
from toolspeak.engine.verdict import Depth, Finding, Layer, Verdict
from toolspeak.facts.model import Support, without_latest
from toolspeak.facts.strategy import CONSTRAINTS
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.failure import Failure
from toolspeak.ir.json import Json, JsonObject

Looking: TypeAlias = Generator[ProbeEffect, ProbeAnswer, Verdict]
_OWNERS: Final = {
    "llamacpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
    "organization_owner": "lmstudio",
    "organization-owner": "lmstudio",
    "library": "ollama",
}
SERVERS: Final = frozenset((*_OWNERS.values(), "openrouter"))
"""All kinds of server that a verdict can name."""
_ENTRY_SAYS: Final = ("id", "owned_by", "root", "max_model_len", "context_length", "supported_parameters")
"""The fields of a model's entry that do not change while the server is the same."""
_DIGITS = 16
_NONE: Final = ConstraintForm.NONE


@dataclass(frozen=True, slots=True)
class _Told:
    """The content of a page, as far as a verdict needs it."""

    server: str
    says: Support
    confidence: float
    reason: str
    context: int | None = None
    marks: tuple[Json, ...] = ()
    """The values that make up the fingerprint."""
    constrains: bool = True
    """Whether the model supports constrained decoding."""

    def verdict(self) -> Verdict:
        return Verdict(
            self.says,
            self.confidence,
            (Finding(Layer.METADATA, self.says, self.reason),),
            context_tokens=self.context,
            server=self.server,
            fingerprint=_digest(self.server, *self.marks) if any(self.marks) else "",
            constraint=CONSTRAINTS.get(self.server, _NONE) if self.constrains else _NONE,
            depth=Depth.LOOK,
        )


def look_at(model: str) -> Looking:
    """Read what the server says about itself and one of its models; return that as a verdict.

    A temporary error or a rejected key stops the probe; any other error means that the page does not exist.
    """
    listed = yield Look("models")
    if isinstance(listed, Failure) and (listed.kind.is_temporary or listed.kind.denies_access):
        return stopped(listed)
    entry = _entry_of(listed, model)
    if told := _openrouter(entry):
        return told.verdict()
    owner = _OWNERS.get(_text(entry.get("owned_by")), "")
    for page in _pages(model, owner):
        answer = yield page.look
        if isinstance(answer, Failure) and answer.kind.is_temporary:
            return stopped(answer)
        if told := page.read(_object(answer), entry):
            build = _object((yield page.more)).get("version") if page.more else None
            return replace(told, marks=(*told.marks, build)).verdict()
    return _unknown(owner, entry).verdict()


def stopped(failure: Failure, reason: str = "") -> Verdict:
    """Return the verdict of a probe that broke off: nothing is known."""
    said = reason or f"the probe was broken off: {failure.message[:200]}"
    return Verdict(evidence=(Finding(Layer.METADATA, Support.UNKNOWN, said),), depth=Depth.LOOK, stopped=True)


# ---------------------------------------------------------------- pages


@dataclass(frozen=True, slots=True)
class _Page:
    look: Look
    read: "Callable[[JsonObject, JsonObject], _Told | None]"
    """Takes the page and the model's entry in the list; returns None if the page is of another kind of server."""
    more: Look | None = None
    """The page with the server's build, if that is another one."""


def _pages(model: str, owner: str) -> Iterator[_Page]:
    """Yield the pages to read: the one of the owner, or all if the kind of server is unknown."""
    asked = msgspec.json.encode({"model": model})
    pages = {
        "llamacpp": _Page(Look("/props"), _llamacpp),
        "ollama": _Page(Look("/api/show", asked), _ollama, Look("/api/version")),
        "lmstudio": _Page(Look("/api/v0/models"), lambda page, _: _lmstudio(page, model)),
        "vllm": _Page(Look("/version"), _vllm),
    }
    yield from (page for name, page in pages.items() if owner in ("", name))


def _llamacpp(page: JsonObject, entry: JsonObject) -> _Told | None:
    """Read /props: a chat template without a place for tools drops them silently."""
    del entry
    settings, template = _object(page.get("default_generation_settings")), _text(page.get("chat_template"))
    if not settings or not ("chat_template" in page or "chat_template_caps" in page):
        return None
    caps = _object(page.get("chat_template_caps"))
    shows = caps["supports_tools"] is True if "supports_tools" in caps else "tools" in template
    parallel = ", several calls at once" if caps.get("supports_parallel_tool_calls") is True else ""
    reason = (
        f"its chat template shows tools to the model{parallel}"
        if shows
        else "its chat template has no place for tools, so that they are dropped in silence"
    )
    return _Told(
        "llamacpp",
        Support.NATIVE if shows else Support.NONE,
        # Not sure either way: a template that shows tools says nothing about how calls come back, and older builds
        # write a prompt of their own if the template has no place for tools.
        0.5 if shows else 0.7,
        reason,
        _count(settings.get("n_ctx")),
        (page.get("build_info"), page.get("model_path"), page.get("model_ftype"), template, settings.get("n_ctx")),
    )


def _ollama(page: JsonObject, entry: JsonObject) -> _Told | None:
    """Read /api/show: Ollama rejects tools for a model without the capability `tools`."""
    del entry
    capabilities = page.get("capabilities")
    if not isinstance(capabilities, list) or "details" not in page:
        return None
    info = _object(page.get("model_info"))
    context = next((value for key, value in info.items() if key.endswith(".context_length")), None)
    template = _text(page.get("template"))
    has = "tools" in capabilities
    reason = "its capabilities have `tools`" if has else "its capabilities have no `tools`: Ollama refuses them"
    marks = (template, page.get("modified_at"), page.get("parameters"), page.get("details"), capabilities)
    return _Told(
        "ollama", Support.NATIVE if has else Support.NONE, 0.6 if has else 0.95, reason, _count(context), marks
    )


def _lmstudio(page: JsonObject, model: str) -> _Told | None:
    entry = _named(page.get("data"), model)
    if not entry:
        return None
    capabilities = entry.get("capabilities")
    has = isinstance(capabilities, list) and "tool_use" in capabilities
    context = _count(entry.get("loaded_context_length")) or _count(entry.get("max_context_length"))
    marks = tuple(entry.get(name) for name in ("id", "arch", "compatibility_type", "quantization", "type"))
    if has:
        return _Told("lmstudio", Support.NATIVE, 0.6, "its capabilities have `tool_use`", context, marks)
    reason = "it was not trained for tools; LM Studio shows them to it in words of its own"
    return _Told("lmstudio", Support.UNKNOWN, 0.0, reason, context, marks)


def _vllm(page: JsonObject, entry: JsonObject) -> _Told | None:
    version = _text(page.get("version"))
    if not version:
        return None
    server = _OWNERS.get(_text(entry.get("owned_by")), "vllm")
    reason = f"{server} {version} does not tell whether its model has tools"
    marks = (version, *(entry.get(name) for name in _ENTRY_SAYS))
    return _Told(server, Support.UNKNOWN, 0.0, reason, _count(entry.get("max_model_len")), marks)


def _openrouter(entry: JsonObject) -> _Told | None:
    """Read the parameters that OpenRouter lists for a model."""
    supported = entry.get("supported_parameters")
    if not isinstance(supported, list):
        return None
    has = "tools" in supported
    reason = f"its supported_parameters have {'' if has else 'no '}`tools`"
    constrains = "structured_outputs" in supported
    context = _count(entry.get("context_length"))
    marks = tuple(entry.get(name) for name in _ENTRY_SAYS)
    says, confidence = (Support.NATIVE, 0.7) if has else (Support.NONE, 0.9)
    return _Told("openrouter", says, confidence, reason, context, marks, constrains)


def _unknown(owner: str, entry: JsonObject) -> _Told:
    context = _count(entry.get("max_model_len")) or _count(entry.get("context_length"))
    marks = tuple(entry.get(name) for name in _ENTRY_SAYS)
    reason = f"{owner or 'the server'} does not tell whether its model has tools"
    return _Told(owner, Support.UNKNOWN, 0.0, reason, context, marks)


# ---------------------------------------------------------------- JSON of others


def _entry_of(listed: ProbeAnswer, model: str) -> JsonObject:
    page = _object(listed)
    return _named(page.get("data"), model) or _named(page.get("models"), model)


def _named(entries: Json, model: str) -> JsonObject:
    """Return the entry of a model. If there is only one, it is returned whatever its name is."""
    found = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    named = (entry for entry in found if without_latest(model) in _names(entry))
    return next(named, found[0] if len(found) == 1 else {})


def _names(entry: JsonObject) -> set[str]:
    return {without_latest(_text(entry.get(key)).removeprefix("models/")) for key in ("id", "name", "model")}


def _object(value: Json | ProbeAnswer) -> JsonObject:
    """Return an object, decoded if it is bytes; anything else becomes an empty object."""
    if isinstance(value, bytes):
        try:
            decoded: Json = jiter.from_json(value)
        except ValueError:
            return {}
        return decoded if isinstance(decoded, dict) else {}
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _digest(*marks: Json) -> str:
    return sha256(msgspec.json.encode(marks)).hexdigest()[:_DIGITS]
