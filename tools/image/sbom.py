"""The image's bill of materials, as CycloneDX 1.6: every Debian package and every Python distribution in the root."""

import email
import json
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tools.image.debian import SUITE
from tools.image.python import PACKAGES_FOLDER

PLACE: Final = "usr/share/sbom/toolspeak.cdx.json"
"""The path of the document in the image."""


def bill(root: Path) -> dict[str, Any]:
    """Return the document, made from the packages installed in the root, not from the requested ones."""
    components = [*debian_packages(root), *distributions(root)]
    [ours] = [each for each in components if each["name"] == "toolspeak"]
    others = sorted((each for each in components if each is not ours), key=lambda each: str(each["bom-ref"]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**ours, "type": "application"}},
        "components": others,
        "dependencies": [{"ref": ours["bom-ref"], "dependsOn": [each["bom-ref"] for each in others]}],
    }


def debian_packages(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((root / "var/lib/dpkg/status.d").iterdir()):
        control = email.message_from_string(path.read_text(encoding="utf-8"))
        name, version, architecture = control["Package"], control["Version"], control["Architecture"]
        address = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={architecture}&distro={SUITE}"
        yield component(name, version, address)


def distributions(root: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((root / PACKAGES_FOLDER).glob("*.dist-info/METADATA")):
        metadata = email.message_from_string(path.read_text(encoding="utf-8"))
        name, version = metadata["Name"], metadata["Version"]
        found = component(name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{quote(version)}")
        yield {**found, "licenses": [licence]} if (licence := licence_of(metadata)) else found


def component(name: str, version: str, address: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": address, "name": name, "version": version, "purl": address}


def licence_of(metadata: Message) -> dict[str, Any] | None:
    """Return the licence of a distribution: an SPDX expression, or a short name."""
    if expression := metadata["License-Expression"]:
        return {"expression": expression}
    named = str(metadata["License"] or "")
    if named and "\n" not in named and len(named) < 60:
        return {"license": {"name": named}}
    classifiers = [each for each in metadata.get_all("Classifier", []) if each.startswith("License ::")]
    return {"license": {"name": classifiers[0].rpartition(" :: ")[2]}} if classifiers else None


def write(root: Path, *places: Path) -> int:
    """Write the document, and return how many components it has."""
    document = bill(root)
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return len(document["components"]) + 1
