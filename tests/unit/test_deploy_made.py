"""What is made of the lock: the image's lock, its bill of materials, the list of licences; and what wheels say of themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.scripts import DEPLOY, load

MADE_ON = (3, 11)  # the lock's oldest Python: what is installed from it has the versions that made files name


@pytest.fixture(scope="module")
def locked() -> ModuleType:
    """deploy/locked.py."""
    return load("deploy/locked.py")


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info[:2] != MADE_ON, reason="made files name what the lock has for its oldest Python")
@pytest.mark.parametrize("script", ["deploy/make_lock.py", "docs/make_licences.py"])
def test_made_files_are_as_they_are_made(script: str) -> None:
    """The locks of the image, and the list of licences."""
    assert load(script).main(["--check"]) == 0, f"run {script}"


@pytest.mark.slow
def test_the_bill_of_materials_lists_the_image(locked: ModuleType, tmp_path: Path) -> None:
    """Every pin with every hash, references that lead somewhere, no moment, and the same bytes twice."""
    maker = load("deploy/make_sbom.py")
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    assert [maker.main(["-o", str(file)]) for file in files] == [0, 0]
    assert files[0].read_bytes() == files[1].read_bytes()
    document = json.loads(files[0].read_text())
    pins = locked.read_lock(DEPLOY / "requirements.lock")
    parts = {part["bom-ref"]: part for part in document["components"]}
    assert len(parts) == len(pins) + 1  # and the analyst's distribution
    for pin in pins:
        part = parts[f"pkg:pypi/{pin.name}@{pin.version}"]
        assert [one["content"] for one in part["externalReferences"][0]["hashes"]] == list(pin.hashes)
    known = {*parts, document["metadata"]["component"]["bom-ref"]}
    assert {one["ref"] for one in document["dependencies"]} == known
    assert {name for one in document["dependencies"] for name in one["dependsOn"]} < known
    assert "timestamp" not in document["metadata"]
