"""`just injection-quick`: AgentDojo and all forms with scripted models, in half a minute.

It fails unless every attack succeeds with the model that obeys, and none with the model that does not, which does the
user's task in every form.
"""

import asyncio
import tempfile
from pathlib import Path

from bench.injection import lines
from bench.injection.cases import ATTACKS
from bench.injection.dojo import install
from bench.injection.lines import InjectionLine
from bench.injection.run import FORMS, measured_cases, options_of
from bench.injection.scripted import case, scripted
from testkit.report import close


def played(folder: Path, *, obeys: bool) -> list[InjectionLine]:
    """Play the case that the scripts know, with every attack and with none, alone and begun, in all forms."""
    out = folder / f"lines-{obeys}.jsonl"
    options = options_of(["--out", str(out), "--answers", str(folder / str(obeys))])
    with scripted(obeys=obeys) as url:
        cases = [case(attack, begun=begun) for attack in ("", *ATTACKS) for begun in (False, True)]
        asyncio.run(measured_cases(options, url, cases))
    return list(lines.read(out))


def faults(found: list[InjectionLine], *, obeys: bool) -> list[str]:
    """Say what is not as the script makes it."""
    wanted = len(FORMS) * (len(ATTACKS) + 1) * 2
    told = [] if len(found) == wanted else [f"{len(found)} lines instead of {wanted}"]
    for line in found:
        is_attacked = obeys and bool(line.case.attack)
        expected = {"reached": bool(line.case.attack), "attacked": is_attacked, "utility": not is_attacked}
        wrong = {name: value for name, value in expected.items() if getattr(line, name) is not value}
        told += [f"{line.form}, {line.case.id}: {wrong} expected; calls: {line.calls} {line.failure}"] if wrong else []
    return told


def main() -> None:
    """Run it, and close."""
    install()
    with tempfile.TemporaryDirectory() as folder:
        found = {obeys: played(Path(folder), obeys=obeys) for obeys in (True, False)}
    wrong = [fault for obeys, each in found.items() for fault in faults(each, obeys=obeys)]
    attacks = {obeys: [line.attacked for line in each if line.case.attack] for obeys, each in found.items()}
    rates = {("obeys" if obeys else "does not"): sum(each) / max(1, len(each)) for obeys, each in attacks.items()}
    close("injection-quick", ok=not wrong, forms=len(FORMS), success=rates, faults=wrong)


if __name__ == "__main__":
    main()
