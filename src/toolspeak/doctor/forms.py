"""The forms that are tried: how a model is asked for calls, each a name and the settings that mean it.

A new one is a row in `FORMS`. Where two do equally well, the one that stands higher wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolspeak.engine.plan import NOTHING_SAID, Mode, Settings, Strategy
from toolspeak.errors import BadRequest
from toolspeak.facts.model import Support


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


def emulated(
    name: str, dialect: str, *, few_shot: bool = False, answer_tool: bool = False, quick: bool = False
) -> Form:
    """Return a form that teaches the tools in a prompt."""
    settings = Settings(Mode.FORCE, dialect=dialect, few_shot=few_shot, answer_tool=answer_tool, keep_system=True)
    return Form(name, settings, quick=quick)


NATIVE: Final = Form("native", Settings(Mode.OFF), Support.NATIVE, kept=NOTHING_SAID, quick=True)
"""The bare server, as every client sees it. It is always tried to the end: the verdict compares with it."""
FORMS: Final = (
    NATIVE,
    Form("native+rescue", Settings(Mode.AUTO), Support.LEAKS, kept=NOTHING_SAID, quick=True),
    emulated("hermes", "hermes", quick=True),
    emulated("fenced", "fenced", quick=True),
    emulated("hermes+example", "hermes", few_shot=True),
    emulated("fenced+example", "fenced", few_shot=True, quick=True),
    emulated("hermes+answer", "hermes", answer_tool=True),
    emulated("fenced+answer", "fenced", answer_tool=True),
    emulated("bare+example", "llama_json", few_shot=True),
    emulated("python+example", "pythonic", few_shot=True),
    Form("decision", Settings(Mode.FORCE, strategy=Strategy.DECISION, keep_system=True)),
)


def candidates(support: Support, dialect: str = "", *, quick: bool = False) -> tuple[Form, ...]:
    """Return the forms to try with a model: its family's own dialect too, and nothing native where that is refused."""
    known = {form.settings.dialect for form in FORMS}
    own = () if not dialect or dialect in known else (emulated(dialect, dialect, quick=True),)
    forms = [form for form in (*FORMS[:2], *own, *FORMS[2:]) if form.quick or not quick]
    return tuple(form for form in forms if not (form.is_native and support is Support.NONE))


def named(names: Sequence[str], forms: Sequence[Form]) -> tuple[Form, ...]:
    """Return the forms of these names; raises `BadRequest`."""
    known = {form.name: form for form in (*FORMS, *forms)}
    for name in names:
        if name not in known:
            raise BadRequest(f"--forms: {name!r} is not one of {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names))
