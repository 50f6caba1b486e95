"""The forms that are tried: how a model is asked for calls, each a name and the settings that mean it.

A new one is a row in `FORMS`. Where two do equally well, the one that stands higher wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.engine.plan import NOTHING_SAID, Mode, Plan, Settings, Strategy, decide
from toolspeak.errors import BadRequest
from toolspeak.facts.model import ModelFacts, Support
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool

_WITH_TOOLS: Final = Request("", (), (Tool("any"),))


@dataclass(frozen=True, slots=True)
class Form:
    """How to ask. `tools` is taken for the upstream's support while it is tried, and kept if it wins."""

    name: str
    settings: Settings
    tools: Support | None = None
    kept: Settings | None = None
    """What its profile says, if that is something else."""
    quick: bool = False
    """Worth a try when there is little time."""

    @property
    def is_native(self) -> bool:
        """Tell whether the upstream's own tools are used."""
        return self.tools is not None

    @property
    def profile(self) -> Settings:
        """Return the settings that are kept if it wins."""
        return self.settings if self.kept is None else self.kept


def emulated(name: str, dialect: str, more: Settings = NOTHING_SAID, *, quick: bool = False) -> Form:
    """Return a form that teaches the tools in a prompt."""
    plain = Settings(Mode.FORCE, dialect=dialect, few_shot=False, answer_tool=False, keep_system=True)
    return Form(name, more.over(plain), quick=quick)


_EXAMPLE, _ANSWER = Settings(few_shot=True), Settings(answer_tool=True)
NATIVE: Final = Form("native", Settings(Mode.OFF), Support.NATIVE, kept=NOTHING_SAID, quick=True)
"""The bare server, as every client sees it. It is always tried to the end: the verdict compares with it."""
FORMS: Final = (
    NATIVE,
    Form("native+rescue", Settings(Mode.AUTO), Support.LEAKS, kept=NOTHING_SAID, quick=True),
    emulated("hermes", "hermes", quick=True),
    emulated("fenced", "fenced", quick=True),
    emulated("hermes+example", "hermes", _EXAMPLE),
    emulated("fenced+example", "fenced", _EXAMPLE, quick=True),
    emulated("hermes+answer", "hermes", _ANSWER),
    emulated("fenced+answer", "fenced", _ANSWER),
    emulated("bare+example", "llama_json", _EXAMPLE),
    emulated("python+example", "pythonic", _EXAMPLE),
    Form("decision", Settings(Mode.FORCE, strategy=Strategy.DECISION, keep_system=True)),
)


def candidates(facts: ModelFacts, *, quick: bool = False) -> tuple[Form, ...]:
    """Return the forms to try with a model.

    Its family's own dialect is tried too, nothing native where that is refused, and no two forms that come to the same:
    what a setting asks for may be nothing that this upstream has.
    """
    known = {form.settings.dialect for form in FORMS}
    own = () if not facts.dialect or facts.dialect in known else (emulated(facts.dialect, facts.dialect, quick=True),)
    forms = [form for form in (*FORMS[:2], *own, *FORMS[2:]) if form.quick or not quick]
    distinct: dict[Plan, Form] = {}
    for form in forms:
        if not (form.is_native and facts.tools is Support.NONE):
            distinct.setdefault(_planned(form, facts), form)
    return tuple(distinct.values())


def _planned(form: Form, facts: ModelFacts) -> Plan:
    """Return what is done with a request in this form, whyever."""
    plan = decide(_WITH_TOOLS, form.settings, replace(facts, tools=form.tools or facts.tools))
    return replace(plan, why="")


def named(names: Sequence[str], forms: Sequence[Form]) -> tuple[Form, ...]:
    """Return the forms of these names; raises `BadRequest`."""
    known = {form.name: form for form in (*FORMS, *forms)}
    for name in names:
        if name not in known:
            raise BadRequest(f"--forms: {name!r} is not one of {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names))
