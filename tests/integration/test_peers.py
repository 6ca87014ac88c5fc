"""`python -m experiments.peers`, without any peer: a script of a few lines takes the place of one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.peers import __main__ as peers
from experiments.peers.synthetic import read_whole

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


def test_each_case_is_in_a_table_of_medians(small: peers.Whole, fake: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--tables", "rand-hie", "--epsilons", "3", "--seeds", "1", "--methods", "mst", "--seen", "groups"]
    peers.main([*asked, *fake])
    found = capsys.readouterr().out
    assert "'margins': True" in found
    assert "| mst on groups |" in found
    assert "| 1.5 | 1 |" in found
    peers.main(asked)
    assert "No peer is measured" in capsys.readouterr().out
