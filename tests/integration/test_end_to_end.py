"""One release from its policy to a public package, in this process: the part of tests/integration that `make quick` has."""

from __future__ import annotations

from pathlib import Path

from release_pipeline.analyst import read_release
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.trust.keys import PrivateKey
from release_pipeline.verifier.command import verify_path
from tests.integration.people import RELEASE
from tests.integration.publishing import failures_of
from tests.integration.sites import TinySite


def test_a_release_becomes_a_package_that_verifies_and_can_be_analysed(
    published: Path, keys: dict[str, PrivateKey], tmp_path: Path
) -> None:
    """Charged once and drawn once, reviewed by two, published; package and dossier verify under the officer's fingerprint, and an
    analyst reads the released columns with the law of their noise."""
    tiny = TinySite(published)
    assert tiny.status().state == "published"
    assert [event for event in tiny.states() if event in ("reserved", "drawn", "candidate")] == ["reserved", "drawn", "candidate"]
    assert len(tiny.charges()) == 1
    package = tiny.site.package(str(RELEASE))
    fingerprint = keys["olga"].public.fingerprint
    assert failures_of(verify_path(package, fingerprint)) == []
    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip")
    assert failures_of(verify_path(dossier, fingerprint)) == []
    found = read_release(package)
    assert sorted(found.data) == ["income", "rent", "sex", "town"]
    assert (found.facts.rows_out, len(found.data["income"])) == (60, 60)
    assert len(set(found.data["income"])) <= 60 // 5
    assert found.noise_of("income").description
