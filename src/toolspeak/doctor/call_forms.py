"""Defines the forms that the doctor tries: ways to get calls out of a model, each with the settings that produce it.

To add one, add a row to `FORMS`. If two forms score the same, the earlier row wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from toolspeak.engine.plan import Plan, decide
from toolspeak.engine.settings import NOTHING_SAID, Mode, Settings, Strategy
from toolspeak.errors import BadRequest
from toolspeak.facts.model import Constrain, ModelFacts, Support
from toolspeak.ir.constraint import ConstraintForm
from toolspeak.ir.request import Request
from toolspeak.ir.tool import Tool

_WITH_TOOLS: Final = Request("", (), (Tool("any"),))


@dataclass(frozen=True, slots=True)
class DoctorForm:
    """A way to get calls. `tools` replaces the upstream's support while the form is tried, and is saved if it wins."""

    name: str
    settings: Settings
    tools: Support | None = None
    kept: Settings | None = None
    """The settings of its profile, if they differ from those of the trial."""
    quick: bool = False
    """Also tried with `--quick`."""
    own: bool = False
    """It uses the dialect that the model's family was trained on."""

    @property
    def is_native(self) -> bool:
        """Whether the upstream's own tool calling is used."""
        return self.tools is not None

    @property
    def profile(self) -> Settings:
        """The settings that are saved if it wins."""
        return self.settings if self.kept is None else self.kept


def emulated_form(name: str, dialect: str, more: Settings = NOTHING_SAID, *, quick: bool = False) -> DoctorForm:
    """Return a form that describes the tools in a prompt.

    Every setting that a family or an upstream could have a default for is set, so that the trial measures this form.
    """
    plain = Settings(Mode.FORCE, dialect=dialect, few_shot=False, answer_tool=False, keep_system=True)
    return DoctorForm(name, more.over(plain), quick=quick)


_EXAMPLE = Settings(few_shot=True)
_SOME_CARE: Final = Settings(drop_unrelated_calls=True, drop_unmentioned_arguments=True, confirm_tool_fit=True)
CARE: Final = Settings(
    drop_unrelated_calls=True,
    drop_unmentioned_arguments=True,
    request_missing_calls=True,
    accept_untaught_calls=True,
    confirm_tool_fit=True,
)
"""All guardrails (CHK-10 to 14). A model that needs none still pays for them, so each form is also tried without."""
NATIVE: Final = DoctorForm("native", Settings(Mode.OFF), Support.NATIVE, kept=NOTHING_SAID, quick=True)
"""The bare server, as every client sees it. It always gets all tasks: the report compares the winner with it."""
FORMS: Final = (
    NATIVE,
    DoctorForm("native+rescue", Settings(Mode.AUTO), Support.LEAKS, kept=NOTHING_SAID, quick=True),
    DoctorForm("native+care", replace(_SOME_CARE, mode=Mode.AUTO), Support.LEAKS, kept=_SOME_CARE, quick=True),
    emulated_form("hermes", "hermes", quick=True),
    emulated_form("fenced", "fenced", quick=True),
    emulated_form("hermes+care", "hermes", CARE, quick=True),
    emulated_form("fenced+care", "fenced", CARE, quick=True),
    emulated_form("hermes+example", "hermes", _EXAMPLE),
    emulated_form("fenced+example", "fenced", _EXAMPLE, quick=True),
    emulated_form("fenced+ex+care", "fenced", replace(CARE, few_shot=True)),
    emulated_form("hermes+grammar", "hermes", replace(CARE, constraint=Constrain.TEXT)),
    emulated_form("fenced+grammar", "fenced", replace(CARE, constraint=Constrain.TEXT)),
    emulated_form("json", "hermes", replace(_SOME_CARE, constraint=Constrain.JSON)),
    emulated_form("bare+example", "llama_json", _EXAMPLE),
    DoctorForm("decision", Settings(Mode.FORCE, strategy=Strategy.DECISION, keep_system=True)),
)


def candidates(facts: ModelFacts, *, quick: bool = False) -> tuple[DoctorForm, ...]:
    """Return the forms to try with a model.

    They include its family's own dialect, and leave out forms that this upstream cannot do and forms that would lead to
    the same plan as an earlier one.
    """
    forms = [form for form in (*FORMS[:2], *_own(facts), *FORMS[2:]) if form.quick or not quick]
    distinct: dict[Plan, DoctorForm] = {}
    for form in forms:
        if _has(facts, form):
            distinct.setdefault(_planned(form, facts), form)
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
    """Return the plan for a request in this form, without its reason, so that equal plans compare equal."""
    plan = decide(_WITH_TOOLS, form.settings, replace(facts, tools=form.tools or facts.tools))
    return replace(plan, why="")


def forms_by_name(names: Sequence[str], forms: Sequence[DoctorForm]) -> tuple[DoctorForm, ...]:
    """Return the forms of these names; raises `BadRequest`."""
    known = {form.name: form for form in (*FORMS, *forms)}
    for name in names:
        if name not in known:
            raise BadRequest(f"--forms: {name!r} is not one of {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names))
