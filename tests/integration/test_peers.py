"""`python -m benchmarks peers`, without any peer: a script of a few lines takes the place of one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import peers
from release_pipeline.experiments.synthetic import read_whole

RECORDS = 1_500
FAKE = """
import json, sys
import numpy as np

given = dict(np.load(sys.argv[1]))
codes = np.random.default_rng(int(given["seed"])).permuted(given["codes"], axis=0)
notes = json.dumps({"rho": float(given["rho"]), "margins": "margins" in given})
np.savez(sys.argv[2], codes=codes, cpu=1.5, peak=2**20, notes=notes)
"""
OURS = {"pairs": 0.02, "triples": 0.03, "spearman": 0.02, "group_means": 0.03, "auc": 0.9, "cpu": 2.0, "peak": 2.0**28}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> peers.Whole:
    """A part of RAND HIE, in the place of all of it; dp-table's own rows are not made."""
    whole = read_whole(Path(), "rand-hie")
    part = replace(whole, entries=tuple(own[:RECORDS] for own in whole.entries))
    monkeypatch.setattr(peers, "read_whole", lambda *_: part)
    monkeypatch.setattr(peers, "measure_ours", lambda case, of: (peers.measure(case, of), dict(OURS)))
    return part


@pytest.fixture
def fake(tmp_path: Path) -> list[str]:
    """The options that run it."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE, encoding="utf-8")
    return ["--interpreter", sys.executable, "--script", str(script)]


@pytest.mark.parametrize("seen", peers.SEEN)
def test_what_a_peer_sees_becomes_entries_of_its_cells_again(small: peers.Whole, seen: str) -> None:
    measured = peers.measure(peers.Case("rand-hie", 3, 0, "mst", seen), small)
    shown = peers.show(measured, small, seen)
    entries = peers.enter(shown.codes, measured, shown, np.random.default_rng(1))
    for place, (cells, own) in enumerate(zip(measured.cells, entries, strict=True)):
        found = shown.groups[place][cells.find(own)]
        assert np.array_equal(found, shown.codes[:, place])
        assert int(own.min()) >= 0
        assert int(own.max()) <= small.columns[place].width


def test_a_peer_pays_for_the_cuts_and_in_groups_for_the_margins(small: peers.Whole) -> None:
    measured = peers.measure(peers.Case("rand-hie", 1, 0, "mst"), small)
    cells, groups = (peers.show(measured, small, seen) for seen in peers.SEEN)
    design = measured.design
    assert cells.rho - groups.rho == design.margins.loss * len(design.columns)
    assert 0 < groups.rho < cells.rho < design.budget.amount
    assert groups.margins is not None
    assert groups.margins[0].sum() == pytest.approx(sum(margin.sum() for margin in measured.margins))


def test_what_a_peer_made_is_kept_and_taken_again(
    small: peers.Whole, fake: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(peers.INTERPRETER, raising=False)
    asked = ["--tables", "rand-hie", "--epsilons", "3", "--seeds", "1", "--methods", "mst", "--keep", str(tmp_path / "kept")]
    peers.main([*asked, *fake, "--seen", "groups"])
    first = capsys.readouterr().out
    assert "'margins': True" in first
    assert "| mst on groups |" in first
    assert "holds   ahead of MST on pairs" in first
    assert "| 1.5 | 1 |" in first
    peers.main([*asked, "--seen", "groups", "--json", str(tmp_path / "figures.json")])
    second = capsys.readouterr().out
    assert "No peer is measured" in second
    assert second.partition("| method")[2] == first.partition("| method")[2]


def test_claims_are_judged_against_the_better_way_to_run_a_peer() -> None:
    worse: dict[str, Any] = {**OURS, "pairs": 0.05, "triples": 0.05, "spearman": 0.05, "auc": 0.8, "cpu": 90.0}
    medians = {"dp-table": OURS, "aim on cells": worse, "aim on groups": worse | {"pairs": 0.0195, "cpu": 15.0}}
    assert dict(peers.judge(medians)) == {
        "ahead of AIM on triples": True,
        "ahead of AIM on spearman": True,
        "ahead of AIM on auc": True,
        "within 5% of AIM on pairs": True,
        "at a tenth of AIM's CPU or less": False,
    }
