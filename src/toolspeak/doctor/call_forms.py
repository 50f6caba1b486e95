"""Defines the forms that the doctor tries: ways to get calls out of a model, each with the settings that produce it.

To add one, add a row to `FORMS`. If two forms do equally well, the earlier row wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.engine.plan import Plan, decide
from toolspeak.engine.settings import NOTHING_SAID, Mode, Settings, Strategy
from toolspeak.errors import BadRequest
from toolspeak.facts.model import UNKNOWN_MODEL, Constrain, ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool

WITH_TOOLS: Final = Request("", (), (Tool("any"),))
"""A request with a tool, to compare plans."""


@dataclass(frozen=True, slots=True)
class DoctorForm:
    """A way to get calls. `tools` replaces the upstream's support while the form is tried, and is saved if it wins."""

    name: str
    settings: Settings
    """They are tried, and saved if the form wins: nothing is saved that was not measured."""
    tools: Support | None = None
    quick: bool = False
    """Also tried with `--quick`."""
    own: bool = False
    """It uses the dialect that the model's family was trained on."""

    @property
    def is_native(self) -> bool:
        """Whether the upstream's own tool calling is used."""
        return self.tools is not None

    @property
    def takes_calls(self) -> bool:
        """Whether it has a guardrail that may take a right call away."""
        return bool(self.settings.drop_unrelated_calls or self.settings.confirm_tool_fit)


def emulated_form(name: str, dialect: str, more: Settings = NOTHING_SAID, *, quick: bool = False) -> DoctorForm:
    """Return a form that describes the tools in a prompt.

    Every setting that a family or an upstream could have a default for is set, so that the trial measures this form.
    """
    plain = Settings(Mode.FORCE, dialect=dialect, few_shot=False, answer_tool=False, keep_system=True)
    return DoctorForm(name, more.over(plain), quick=quick)


_EXAMPLE = Settings(few_shot=True)
CARE: Final = Settings(request_missing_calls=True)
"""The guardrail that takes no call away (CHK-12)."""
STRICT: Final = replace(CARE, drop_unrelated_calls=True, confirm_tool_fit=True)
"""All guardrails. Two take calls away (CHK-10, CHK-14), so such a form is saved only after `ENOUGH_CALLS`."""
DOUBT: Final = replace(STRICT, unfit_probability=0.25)
"""All guardrails, and each first call is questioned: Qwen2.5-Coder 1.5B gains 6 points of 100 on BFCL, and loses right
calls on requests that people word."""
TODAY: Final = DoctorForm("today", NOTHING_SAID)
"""What the user has now: settings, facts and profile as they are. All other forms are compared with it."""
NO_PROFILE: Final = DoctorForm("no profile", NOTHING_SAID)
"""What the user would have without the saved profile. If it wins, the profile is deleted."""
FORMS: Final = (
    DoctorForm("native", Settings(Mode.OFF), Support.NATIVE),
    DoctorForm("native+rescue", Settings(Mode.AUTO), Support.LEAKS, quick=True),
    emulated_form("hermes", "hermes", quick=True),
    emulated_form("fenced", "fenced", quick=True),
    emulated_form("hermes+care", "hermes", CARE),
    emulated_form("fenced+care", "fenced", CARE),
    emulated_form("hermes+example", "hermes", _EXAMPLE),
    emulated_form("fenced+example", "fenced", _EXAMPLE),
    emulated_form("hermes+strict", "hermes", STRICT),
    emulated_form("fenced+strict", "fenced", STRICT),
    emulated_form("fenced+doubt", "fenced", DOUBT),
    emulated_form("hermes+grammar", "hermes", replace(CARE, constraint=Constrain.TEXT)),
    emulated_form("fenced+grammar", "fenced", replace(CARE, constraint=Constrain.TEXT)),
    emulated_form("json", "hermes", Settings(constraint=Constrain.JSON)),
    emulated_form("bare+example", "llama_json", _EXAMPLE),
    DoctorForm("decision", Settings(Mode.FORCE, strategy=Strategy.DECISION, keep_system=True)),
)


def candidates(facts: ModelFacts, has: Sequence[Plan] = (), *, quick: bool = False) -> tuple[DoctorForm, ...]:
    """Return the forms to try; `has` are the plans that the user has now, with the saved profile and without.

    They include the family's own dialect, and leave out forms that this upstream cannot do and forms that would lead to
    the same plan as one of these or as an earlier form.
    """
    forms = [form for form in (*FORMS[:2], *_own(facts), *FORMS[2:]) if form.quick or not quick]
    distinct: dict[Plan, DoctorForm] = {}
    for form in forms:
        if _has(facts, form):
            distinct.setdefault(_planned(form, facts), form)
    for plan in has:
        distinct.pop(_comparable(plan), None)
    return tuple(_with_own_mark(form, facts) for form in distinct.values())


def _with_own_mark(form: DoctorForm, facts: ModelFacts) -> DoctorForm:
    """Mark a form that uses the family's own dialect; other forms are returned unchanged."""
    return replace(form, own=True) if facts.dialect and form.settings.dialect == facts.dialect else form


def _own(facts: ModelFacts) -> tuple[DoctorForm, ...]:
    """Return forms in the family's own dialect, if `FORMS` has none in it."""
    dialect = facts.dialect
    if not dialect or dialect in {form.settings.dialect for form in FORMS}:
        return ()
    return emulated_form(dialect, dialect, quick=True), emulated_form(f"{dialect}+care", dialect, CARE)


def _has(facts: ModelFacts, form: DoctorForm) -> bool:
    """Whether an upstream has what a form needs: tools, or the form's kind of constrained decoding."""
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


def _planned(form: DoctorForm, facts: ModelFacts) -> Plan:
    plan = decide(WITH_TOOLS, form.settings, replace(facts, tools=form.tools or facts.tools))
    return _comparable(plan)


def _comparable(plan: Plan) -> Plan:
    """Return a plan without its reason and facts, so that plans that send and read the same compare equal."""
    return replace(plan, why="", facts=UNKNOWN_MODEL)


def forms_by_name(names: Sequence[str], forms: Sequence[DoctorForm]) -> tuple[DoctorForm, ...]:
    """Return the forms of these names; raises `BadRequest`."""
    known = {form.name: form for form in (*FORMS, *forms)}
    for name in names:
        if name not in known:
            raise BadRequest(f"--forms: {name!r} is not one of {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names))
