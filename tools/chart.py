"""`just chart`: render the Helm chart in each variant of charts/toolspeak/ci, and check the manifests.

    python -m tools.chart [--save]

Each manifest must fit the schemas of the oldest and the newest supported Kubernetes. No container may keep
privileges, the gateway may not run as root or write to its root, and `toolspeak config check` must accept the
configuration. The programs are in .venv-packages.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from testkit.report import close

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "charts" / "toolspeak"
RESULT: Final = ROOT / "bench" / "results" / "chart.json"
PROGRAMS: Final = ROOT / ".venv-packages" / "bin"
VERSIONS: Final = ("1.30", "1.37")
ALWAYS: Final = {"ConfigMap", "Deployment", "Service"}
_TO_JSON: Final = "import json, sys, yaml; print(json.dumps([each for each in yaml.safe_load_all(sys.stdin) if each]))"


def render(values: Path) -> str:
    """Return the manifests of a variant. Raises CalledProcessError if Helm refuses the values."""
    command = [str(PROGRAMS / "helm"), "template", "gw", str(CHART), "--values", str(values)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def parse(manifests: str) -> list[dict[str, Any]]:
    command = [str(PROGRAMS / "python"), "-c", _TO_JSON]
    documents: list[dict[str, Any]] = json.loads(
        subprocess.run(command, check=True, input=manifests, stdout=subprocess.PIPE, text=True).stdout
    )
    return documents


def schema_faults(manifests: str) -> Iterator[str]:
    """Yield the errors that the schemas of Kubernetes report, unknown fields included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "manifests.yaml")
        path.write_text(manifests, encoding="utf-8")
        for version in VERSIONS:
            command = [str(PROGRAMS / "kubernetes-validate"), "--strict", "--kubernetes-version", version, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                yield f"Kubernetes {version}: {done.stdout}{done.stderr}"


def content_faults(documents: list[dict[str, Any]]) -> Iterator[str]:
    """Yield promises of docs/kubernetes.md that the manifests break."""
    workers = [each for each in documents if _app(each) == "toolspeak-worker"]
    kinds = {each["kind"]: each for each in documents if each not in workers}
    if missing := ALWAYS - set(kinds):
        yield f"missing: {', '.join(sorted(missing))}"
        return
    for deployment in (kinds["Deployment"], *(each for each in workers if each["kind"] == "Deployment")):
        yield from pod_faults(deployment)
    yield from worker_faults(workers, kinds)
    if "sk-" in json.dumps(kinds["ConfigMap"]):
        yield "a key is in the ConfigMap"
    yield from config_faults(kinds["ConfigMap"]["data"]["toolspeak.toml"])


def pod_faults(deployment: dict[str, Any]) -> Iterator[str]:
    """Yield privileges that a deployment of toolspeak must not have, and settings that it lacks."""
    pod = deployment["spec"]["template"]["spec"]
    own = pod["containers"][0]
    security = own["securityContext"]
    if not (security["runAsNonRoot"] and security["runAsUser"] and security["readOnlyRootFilesystem"]):
        yield f"{own['name']} may run as root, or write to its root"
    for container in pod["containers"]:
        rights = container["securityContext"]
        if rights["allowPrivilegeEscalation"] or rights["capabilities"] != {"drop": ["ALL"]}:
            yield f"{container['name']} keeps privileges"
    for probe, path in {"livenessProbe": "/live", "readinessProbe": "/ready"}.items():
        if own[probe]["httpGet"]["path"] != path:
            yield f"{probe} of {own['name']} does not ask {path}"


def worker_faults(workers: list[dict[str, Any]], kinds: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield mistakes of the workers of runs: pods that the gateway's Service selects, or a cell without a part."""
    deployments = [each for each in workers if each["kind"] == "Deployment"]
    for each in deployments:
        labels, selected = each["spec"]["template"]["metadata"]["labels"], kinds["Service"]["spec"]["selector"]
        if selected.items() <= labels.items():
            yield f"the Service sends requests to {each['metadata']['name']}"
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        count, wanted = sum(each["kind"] == kind for each in workers), len(deployments) if kind in kinds else 0
        if count != wanted:
            yield f"{count} of {len(deployments)} cells have a {kind}"


def _app(document: dict[str, Any]) -> str:
    name: str = document["metadata"].get("labels", {}).get("app.kubernetes.io/name", "")
    return name


def config_faults(text: str) -> Iterator[str]:
    """Yield the output of `toolspeak config check` for a configuration."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "toolspeak.toml")
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "toolspeak", "config", "check", str(path)]
        environment = {**os.environ, "ANA_KEY": "sk-example", "TOOLSPEAK_KEY": "sk-example"}
        environment["TOOLSPEAK_RUNS_DATABASE"] = "postgresql://runs@db/toolspeak"
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            yield f"the configuration: {done.stdout}{done.stderr}"


def refusal(*options: str) -> str:
    """Return how Helm refuses values that cannot work; empty if it accepts them."""
    command = [str(PROGRAMS / "helm"), "template", "gw", str(CHART), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="just chart")
    parser.add_argument("--save", action="store_true", help="write bench/results/chart.json")
    options = parser.parse_args()
    kinds: dict[str, list[str]] = {}
    faults: list[str] = []
    for values in sorted((CHART / "ci").glob("*.yaml")):
        manifests = render(values)
        documents = parse(manifests)
        kinds[values.stem] = sorted(each["kind"] for each in documents)
        faults += [f"{values.stem}: {each}" for each in (*schema_faults(manifests), *content_faults(documents))]
    if "needs a key" not in refusal():
        faults.append("the chart renders without a key")
    if "sidecar.image" not in refusal("--set", "sidecar.enabled=true,secret.existing=keys"):
        faults.append("the chart renders a sidecar without an image")
    for fault in faults:
        print(fault, file=sys.stderr)
    figures: dict[str, Any] = {"variants": kinds, "kubernetes": VERSIONS, "faults": len(faults)}
    if options.save:
        RESULT.write_text(json.dumps({"ok": not faults, **figures}, indent=2) + "\n", encoding="utf-8")
    close("chart", ok=not faults and len(kinds) == 6, **figures)


if __name__ == "__main__":
    main()
