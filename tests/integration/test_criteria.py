"""Limits on what attacks gain beyond their control groups, and on the error of the worst served group, through the pipeline."""

from __future__ import annotations

import json
import random
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.errors import GateFailed
from release_pipeline.formats.evidence import load_evidence
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import _judge_candidate  # pyright: ignore[reportPrivateUsage]
from tests.integration.sites import HEADER, TinySite, make_rows, make_site

pytestmark = pytest.mark.slow
CANARY = 773
MDAV = "{method: mdav, k: 3}"
ALL = "singling_out: {0}, linkability: {0}, inference: {0}"


def mdav_site(home: Path, gates: str, **parts: str) -> TinySite:
    """120 records in clusters of three, one of them a canary, and one column twice: half of the one tells the other."""
    rows = make_rows(120, releases=["1"])
    rows[7]["income"] = str(CANARY)
    chance = random.Random(3)  # noqa: S311
    for row in rows:
        row["rent"] = str(min(int(row["income"]) // 10 + chance.randrange(3) / 2, 100.0))
    tiny = make_site(home, rows=[], cap="releases: 2", protect=MDAV, gates=f"{{min_rows: 20, {gates}}}", **parts)
    tiny.write_rows(rows, header=HEADER)
    return tiny


def refuse(tiny: TinySite) -> tuple[GateFailed, dict[str, dict[str, Any]]]:
    """The refusal of a run, and what is in the vault of it, by attack."""
    with pytest.raises(GateFailed) as refused:
        run_release(tiny.flow())
    [file] = (tiny.site.vault / "refused").glob("*.json")
    return refused.value, {entry["attack"]: entry for entry in json.loads(file.read_text())["foreseen"]}


def as_percent(share: float, rounding: str) -> str:
    return f"{(Decimal(share) * 100).quantize(Decimal('0.0001'), rounding=rounding):f}%"


def test_a_release_just_passes_and_just_does_not(tmp_path: Path) -> None:
    """At the limit and above it, at no cost; the same figures each time, none of them in what is told, all in the evidence."""
    tiny = mdav_site(tmp_path / "site", ALL.format("0.0001%"))
    refused, foreseen = refuse(tiny)
    assert set(foreseen) == {
        "singling out by one column",
        "singling out by several columns",
        "linking",
        *(f"inferring {name}" for name in ("town", "sex", "income", "rent")),
    }
    linking = foreseen["linking"]
    assert linking["beyond"]["low"] > 0, "a centroid of three is near each of them"
    assert tiny.charges() == []
    told = " ".join([refused.in_full, *refused.findings, tiny.status().reason, str(tiny.events())])
    assert "the gain of linking beyond its control group is over the limit 1e-06 (the figure is in the vault)." in told
    drawn = re.compile(r"[0-9a-f]{16,}")  # hashes and the like have these digits by chance, and so have longer numbers
    assert not re.search(rf"(?<!\d){CANARY}(?!\d)", drawn.sub("", told))
    for entry in foreseen.values():
        assert all(
            f"{entry['beyond'][part]:.3g}" not in told for part in ("value", "low", "high") if 0 < entry["beyond"][part] < 1
        )

    tiny.write_policy(protect=MDAV, gates=f"{{min_rows: 20, linkability: {as_percent(linking['most'], ROUND_FLOOR)}}}")
    refused, again = refuse(tiny)
    assert again["linking"]["beyond"] == linking["beyond"]
    assert len(refused.findings) == 1
    assert tiny.charges() == []

    tiny.write_policy(protect=MDAV, gates=f"{{min_rows: 20, linkability: {as_percent(linking['most'], ROUND_CEILING)}}}")
    run_release(tiny.flow())
    assert len(tiny.charges()) == 1
    assert not list((tiny.site.vault / "refused").glob("*"))
    evidence = load_evidence(tiny.folder())
    [gate] = [gate for gate in evidence.gates if gate.name == "gain of linking beyond its control group"]
    assert (gate.passed, gate.value) == (True, linking["most"])
    assert not list(_judge_candidate(tiny.folder(), tiny.flow().policy, tiny.status()))
    published = b"".join(file.read_bytes() for file in tiny.folder().glob("data*"))
    assert f"{linking['most']:.6g}".encode() not in published


def test_publishing_judges_them_again(tmp_path: Path) -> None:
    """Evidence without what was foreseen does not pass."""
    tiny = mdav_site(tmp_path / "site", "linkability: 90%")
    run_release(tiny.flow())
    file = tiny.folder() / "evidence.json"
    evidence = json.loads(file.read_text())
    for entry in evidence["criteria"]:
        entry.pop("most", None)
    file.chmod(0o600)
    file.write_text(json.dumps(evidence))
    found = list(_judge_candidate(tiny.folder(), tiny.flow().policy, tiny.status()))
    assert any("the gain of linking beyond its control group" in fault for fault in found)
