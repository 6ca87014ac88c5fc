"""Write the bill of materials of the image, in CycloneDX 1.6 as JSON: what deploy/requirements.lock pins, with hashes, licences
and who needs whom.

    python deploy/make_sbom.py -o FILE

It asks no network, only the lock and what is installed from it. The same lock gives the same bytes: no moment stands in it, and
its serial number follows from what it lists.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from locked import (
    IMAGE_EXTRAS,
    ROOT,
    Pin,
    list_own_requirements,
    list_packages,
    list_requirements,
    read_licence,
    read_lock,
    read_version,
)

OWN = ("release-pipeline", "release-pipeline-analyst")
EXTRAS = {OWN[0]: IMAGE_EXTRAS, OWN[1]: ()}
IMAGE = ROOT / "deploy" / "requirements.lock"


def make_sbom(pins: Sequence[Pin]) -> dict[str, Any]:
    """The document. Where the lock has several versions of a package, each stands there with the Python that takes it."""
    version = read_version()
    known = {name: [_reference(pin) for pin in group] for name, group in list_packages(pins)}
    known |= {name: [_own_reference(name, version)] for name in OWN}
    product = _own(OWN[0], version, "application")
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": product, "lifecycles": [{"phase": "build"}]},
        "components": [_own(OWN[1], version, "library"), *(_component(pin) for pin in pins)],
        "dependencies": [
            *({"ref": known[name][0], "dependsOn": _find(known, list_own_requirements(name, EXTRAS[name]))} for name in OWN),
            *({"ref": _reference(pin), "dependsOn": _find(known, list_requirements(pin.name))} for pin in pins),
        ],
    }
    digest = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).digest()
    return {**document, "serialNumber": f"urn:uuid:{uuid.UUID(bytes=digest[:16], version=5)}"}


def _component(pin: Pin) -> dict[str, Any]:
    """A package. Its hashes are those of every file that the lock allows, wheels and source, of which one is installed."""
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": _reference(pin),
        "name": pin.name,
        "version": pin.version,
        "purl": _reference(pin),
        "externalReferences": [
            {
                "type": "distribution",
                "url": _reference(pin),
                "comment": "any one of these files",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.hashes],
            }
        ],
    }
    if pin.marker:
        found["properties"] = [{"name": "release-pipeline:marker", "value": pin.marker}]
    licence, expression = read_licence(pin.name)
    if licence:
        found["licenses"] = [{"expression": licence}] if expression else [{"license": {"name": licence}}]
    return found


def _own(name: str, version: str, kind: str) -> dict[str, Any]:
    reference = _own_reference(name, version)
    licence = [{"license": {"id": "Apache-2.0"}}]
    return {"type": kind, "bom-ref": reference, "name": name, "version": version, "purl": reference, "licenses": licence}


def _own_reference(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _reference(pin: Pin) -> str:
    return _own_reference(pin.name, pin.version)


def _find(known: Mapping[str, list[str]], names: Iterable[str]) -> list[str]:
    """The references of these packages; what only other machines need is not in the lock."""
    return sorted({one for name in names for one in known.get(name, [])})


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where to write")
    options = parser.parse_args(arguments)
    options.output.write_text(f"{json.dumps(make_sbom(read_lock(IMAGE)), indent=2)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
