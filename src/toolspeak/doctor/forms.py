"""The forms that are tried: how a model is asked for calls, each a name and the settings that mean it.

A new one is a row in `FORMS`. Where two do equally well, the one that stands higher wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.engine.plan import NOTHING_SAID, Mode, Plan, Settings, Strategy, decide
from toolspeak.errors import BadRequest
from toolspeak.facts.model import Constrain, ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
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
    own: bool = False
    """It speaks the dialect that the model's family was trained in."""

    @property
    def is_native(self) -> bool:
        """Return whether the upstream's own tools are used."""
        return self.tools is not None

    @property
    def profile(self) -> Settings:
        """Return the settings that are kept if it wins."""
        return self.settings if self.kept is None else self.kept


def emulated(name: str, dialect: str, more: Settings = NOTHING_SAID, *, quick: bool = False) -> Form:
    """Return a form that teaches the tools in a prompt."""
    plain = Settings(Mode.FORCE, dialect=dialect, few_shot=False, answer_tool=False, keep_system=True)
    return Form(name, more.over(plain), quick=quick)


_EXAMPLE = Settings(few_shot=True)
_SOME_CARE: Final = Settings(drop_unrelated_calls=True, drop_unmentioned_arguments=True, confirm_tool_fit=True)
CARE: Final = Settings(
    drop_unrelated_calls=True,
    drop_unmentioned_arguments=True,
    request_missing_calls=True,
    accept_untaught_calls=True,
    confirm_tool_fit=True,
)
"""The guardrails (CHK-10 to 14): a model that needs none pays for them, so each form is tried without, too."""
NATIVE: Final = Form("native", Settings(Mode.OFF), Support.NATIVE, kept=NOTHING_SAID, quick=True)
"""The bare server, as every client sees it. It is always tried to the end: the verdict compares with it."""
FORMS: Final = (
    NATIVE,
    Form("native+rescue", Settings(Mode.AUTO), Support.LEAKS, kept=NOTHING_SAID, quick=True),
    Form("native+care", replace(_SOME_CARE, mode=Mode.AUTO), Support.LEAKS, kept=_SOME_CARE, quick=True),
    emulated("hermes", "hermes", quick=True),
    emulated("fenced", "fenced", quick=True),
    emulated("hermes+care", "hermes", CARE, quick=True),
    emulated("fenced+care", "fenced", CARE, quick=True),
    emulated("hermes+example", "hermes", _EXAMPLE),
    emulated("fenced+example", "fenced", _EXAMPLE, quick=True),
    emulated("fenced+ex+care", "fenced", replace(CARE, few_shot=True)),
    emulated("hermes+grammar", "hermes", replace(CARE, constraint=Constrain.TEXT)),
    emulated("fenced+grammar", "fenced", replace(CARE, constraint=Constrain.TEXT)),
    emulated("json", "hermes", replace(_SOME_CARE, constraint=Constrain.JSON)),
    emulated("bare+example", "llama_json", _EXAMPLE),
    Form("decision", Settings(Mode.FORCE, strategy=Strategy.DECISION, keep_system=True)),
)


def candidates(facts: ModelFacts, *, quick: bool = False) -> tuple[Form, ...]:
    """Return the forms to try with a model.

    Its family's own dialect is tried too, nothing that this upstream does not have, and no two forms that come to the
    same.
    """
    forms = [form for form in (*FORMS[:2], *_own(facts), *FORMS[2:]) if form.quick or not quick]
    distinct: dict[Plan, Form] = {}
    for form in forms:
        if _has(facts, form):
            distinct.setdefault(_planned(form, facts), form)
    return tuple(_marked(form, facts) for form in distinct.values())


def _marked(form: Form, facts: ModelFacts) -> Form:
    """Mark a form that speaks the family's own dialect; the others stay the very same."""
    return replace(form, own=True) if facts.dialect and form.settings.dialect == facts.dialect else form


def _own(facts: ModelFacts) -> tuple[Form, ...]:
    """Return the forms of the family's own dialect, if that is none of those that all are tried with."""
    dialect = facts.dialect
    if not dialect or dialect in {form.settings.dialect for form in FORMS}:
        return ()
    return emulated(dialect, dialect, quick=True), emulated(f"{dialect}+care", dialect, CARE)


def _has(facts: ModelFacts, form: Form) -> bool:
    """Return whether an upstream has what a form needs: tools, or words for its constraint."""
    if form.is_native:
        return facts.tools is not Support.NONE
    has = facts.quirks.constraint
    match form.settings.constraint:
        case Constrain.TEXT:
            return has.leaves_text_free
        case Constrain.JSON:
            return has is not ConstraintForm.NONE
        case _:
            return True


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
