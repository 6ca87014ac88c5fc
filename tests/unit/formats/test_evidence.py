"""Evidence as types: what is read, what may be missing, and that nothing is quoted of what cannot be read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.audit.gates import EXPECTED
from release_pipeline.errors import StoreError
from release_pipeline.formats.evidence import EVIDENCE, Clamped, load_evidence, read_evidence
from release_pipeline.formats.versions import FormatNewer

SHARE = {"value": 0.5, "low": 0.4, "high": 0.6, "tried": 10, "among": None}
SPREAD = {"mean": 1, "deviation": None, "quantiles": [None, 2.5], "deciles": [None, 2]}
AUDIT: dict[str, Any] = {
    "error": {"income": 0.25},
    "absolute_error": {"income": 3},
    "ks": {"income": 0.1},
    "wasserstein": {"income": 2},
    "curves": {"income": {"places": [1, 2], "original": [None, 0.5], "released": [0.25, 1]}},
    "spread": {"income": {"original": SPREAD, "released": SPREAD}},
    "record_linkage": SHARE,
    "whatever": {"names": [], "original": [], "released": []},
}
GATE = {"name": "expected error of income", "value": 0.2, "limit": 1.0, "at_least": False, "basis": EXPECTED, "column": "income"}
DOCUMENT: dict[str, Any] = {
    "release": "people/1/r1",
    "salt": "what no type has",
    "gates": [GATE],
    "columns": {"income": {"error": 0.2, "at_atoms": [], "loss_column": 1.5}},
    "clamping": {"income": {"share": 0, "variance": None}},
    "audit": AUDIT,
    "checks_passed": {"schema": 3},
    "warnings": ["column income: 3 records"],
}


def test_everything_is_read_as_it_is() -> None:
    """Figures, what there is none of, and what no type has."""
    found = read_evidence(DOCUMENT, where="here")
    figures = found.read_audit()
    assert [gate.to_json() for gate in found.gates] == [GATE]
    assert (found.columns["income"].error, found.columns["income"].level, found.columns["income"].at_atoms) == (0.2, None, ())
    assert found.clamping == {"income": Clamped(0, None)}
    assert (found.budget, found.warnings) == (None, ("column income: 3 records",))
    assert figures.curves["income"].original == (None, 0.5)
    spread = figures.spread["income"].original
    assert (spread.mean, math.isnan(spread.deviation), math.isnan(spread.quantiles[0]), spread.quantiles[1]) == (
        1,
        True,
        True,
        2.5,
    )
    assert figures.record_linkage is not None
    assert (figures.record_linkage.value, figures.record_linkage.among) == (0.5, None)


@pytest.mark.parametrize("part", [{"gates": 7312}, {"columns": {"income": {"error": "7312"}, "rent": 7312}}, {"release": None}])
def test_what_cannot_be_read_is_not_quoted(part: dict[str, Any]) -> None:
    """Evidence is confidential, errors are not."""
    with pytest.raises(StoreError, match=r"vault/evidence.json: this is not what a version of release-pipeline wrote") as refused:
        read_evidence({**DOCUMENT, **part}, where="vault/evidence.json")
    assert "7312" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    """By its number, before anything is read of it."""
    (tmp_path / EVIDENCE).write_text(json.dumps({"format": 2, "everything": "else"}))
    with pytest.raises(FormatNewer, match="the evidence of a candidate here has the format 2"):
        load_evidence(tmp_path)
