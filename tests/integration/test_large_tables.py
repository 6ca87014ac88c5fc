"""A large table is read, stored and written in parts: the same release comes of it, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.store.files import Probe
from tests.integration.sites import Row, TinySite, make_rows, make_site

SECRET = bytes(range(SECRET_BYTES))


def make(home: Path) -> TinySite:
    """A site whose towns differ in size, so that some cells are blanked."""
    rows: list[Row] = make_rows(90)
    for number, row in enumerate(rows):
        if number % 17 == 0:
            row["town"] = "east"
    parts = {"gates": "{min_rows: 30, differencing_below: 0}", "suppress": "{quasi_groups_below: 9, at_most: 100%}"}
    tiny = make_site(home, rows=rows, **parts)
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    return tiny


def run(tiny: TinySite) -> dict[str, Any]:
    """The files of the candidate, but what is drawn or sealed with a key that each site has for itself."""
    run_release(open_release(tiny.site, "people", "1", probe=Probe(new_secret=lambda: SECRET)))
    found: dict[str, Any] = {
        file.name: file.read_bytes() for file in tiny.folder().iterdir() if file.suffix in (".csv", ".parquet")
    }
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    audit = {
        name: evidence["audit"][name] for name in ("error", "ks", "wasserstein", "spread", "correlations", "share_suppressed")
    }
    return {**found, "audit": audit, "loss": evidence["columns"]}


PLACES = ("pipeline.reading.PART", "pipeline.in_place.PART", "rows.columns.PART", "store.vault._BATCH")


def test_the_same_release_comes_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of seven rows, in place of a million."""
    whole = run(make(tmp_path / "whole"))
    tiny = make(tmp_path / "parts")
    with monkeypatch.context() as patched:
        for place in PLACES:
            patched.setattr(f"release_pipeline.{place}", 7)
        patched.setattr("release_pipeline.audit.columns.HELD", 0)
        in_parts = run(tiny)
    for part in whole["loss"].values():  # what is expected is simulated with the site's own key
        for figure in [figure for figure in part if figure.startswith(("error", "ks", "atom", "at_atoms", "served"))]:
            del part[figure]
    for column, part in whole["loss"].items():
        assert {figure: in_parts["loss"][column][figure] for figure in part} == part
    assert {**in_parts, "loss": None} == {**whole, "loss": None}
