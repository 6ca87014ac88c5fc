"""A limit on linkage, from the policy to the refusal: judged on simulated releases, and nothing is spent."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.errors import GateFailed
from release_pipeline.formats.evidence import load_evidence
from release_pipeline.pipeline.release import run_release
from tests.integration.sites import TinySite, make_rows, make_site

pytestmark = pytest.mark.slow
IDP = "{method: idp-cbls, epsilon: 4, k: 5}"
NAME = "linkage by all released columns"


def refuse(tiny: TinySite, policy: str = "people") -> tuple[GateFailed, dict[str, Any]]:
    """The refusal of a run, and what is in the vault of it."""
    with pytest.raises(GateFailed) as refused:
        run_release(tiny.flow(None if tiny.site.policy(policy).releases == "once" else "1", policy))
    [file] = (tiny.site.vault / "refused").glob(f"*{policy}*.json")
    return refused.value, json.loads(file.read_text())


def as_percent(share: float, rounding: str) -> str:
    return f"{(Decimal(share) * 100).quantize(Decimal('0.0001'), rounding=rounding):f}%"


def test_a_release_just_passes_and_just_does_not(tmp_path: Path) -> None:
    """At the limit and below it; the same figure each time, whatever else of the method is changed a bit."""
    tiny = make_site(tmp_path / "site", protect=IDP, gates="{min_rows: 20, linkage: 0.0001%}")
    tiny.fix_key(bytes(32))
    _, figures = refuse(tiny)
    first = figures["foreseen_ladder"][-1]["linked"]["value"]
    assert 0 < first < 1
    assert refuse(tiny)[1] == figures
    tiny.write_policy(protect=IDP, gates="{min_rows: 20, linkage: 100%}")
    run_release(tiny.flow())
    [gate] = [gate for gate in load_evidence(tiny.folder()).gates if gate.name == NAME]
    assert gate.value is not None
    highest = gate.value
    assert highest >= first, "the highest of several draws"

    other = make_site(
        tmp_path / "other", protect=IDP, gates=f"{{min_rows: 20, linkage: {as_percent(highest - 1e-6, ROUND_FLOOR)}}}"
    )
    other.fix_key(bytes(32))
    refuse(other)
    other.write_policy(protect=IDP, gates=f"{{min_rows: 20, linkage: {as_percent(highest, ROUND_CEILING)}}}")
    run_release(other.flow())
    assert not list((other.site.vault / "refused").glob("*"))
    assert [gate.value for gate in load_evidence(other.folder()).gates if gate.name == NAME] == [highest]


def test_what_is_judged_is_not_the_noise_that_is_released(tmp_path: Path) -> None:
    """The figure of the release is another one, and is on the page without a limit."""
    tiny = make_site(tmp_path / "site", rows=make_rows(400), protect=IDP, gates="{min_rows: 20, linkage: 100%}")
    judged, released = list[float](), list[float]()
    for release in ("1", "2"):
        run_release(tiny.flow(release))
        evidence = load_evidence(tiny.folder(release))
        found = evidence.read_audit()
        assert found.record_linkage is not None
        judged += [gate.value for gate in evidence.gates if gate.name == NAME]
        released.append(found.record_linkage.value)
    assert judged != released  # a share of 400 may come out twice by chance, hardly so in both releases
    assert len(judged) == len(released)
    assert [rung.masked for rung in found.linkage_ladder] == [0, 1, 2]
    assert found.record_linkage_by_chance == pytest.approx(found.linkage_ladder[0].linked.value)
