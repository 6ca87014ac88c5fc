"""rho through the whole pipeline: policies by zcdp, caps in rho or in an epsilon at a delta, and what is said of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from release_pipeline.analyst import NoHonestAnswer, read_release
from release_pipeline.errors import OverCap
from release_pipeline.ledger.account import describe_ledger, read_ledgers
from release_pipeline.mechanisms.accounting.budget import epsilon_of, rho_within
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.verification import verify
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import TinySite, make_rows, make_site

NANO = 10**9
DELTA = Decimal("0.000001")
COUNTS = "{method: dp-cdf, definition: zcdp, epsilon: 4, delta: 0.000001, k: 5}"
SUMS = "{method: dp-um, definition: zcdp, epsilon: 4, delta: 0.000001, k: 10}"
AT_DELTA = "epsilon: 5, delta: 0.000001, definition: zcdp, scope: column"
RHO = rho_within(4 * NANO, DELTA)
ROWS = 200


def site_of(home: Path, **parts: str) -> TinySite:
    return make_site(home, rows=make_rows(ROWS), **{"protect": COUNTS, "cap": AT_DELTA, **parts})


def test_a_release_by_rho_is_charged_published_and_verified(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """Its rho is what its epsilon and delta allow, split over the columns; every epsilon stands beside its delta; an old kit
    finds no epsilon to misread; the dossier adds rho up."""
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(ROWS), cap=AT_DELTA, protect=SUMS)
    package = publish_release(tiny, keys)
    [charge] = tiny.charges()
    assert (charge.loss.zcdp_column, charge.loss.dp_column, charge.loss.idp_column) == (RHO, None, None)
    assert charge.unit == "rho, zCDP, column"
    facts = json.loads((tiny.folder() / "evidence.json").read_text())["facts"]
    assert (facts["definition"], facts["delta"], facts["rho"]) == ("zcdp", "0.000001", RHO / NANO)
    assert facts["epsilon"] == epsilon_of(RHO, DELTA) / NANO == pytest.approx(4)
    card = json.loads((package / "privacy-card.json").read_text())
    assert card["claim"]["epsilon"]["delta"] == "0.000001"
    assert Decimal(card["claim"]["epsilon"]["rho"]) == Decimal(RHO) / NANO
    assert [column["epsilon"] for column in card["columns"]] == [None] * len(card["columns"])
    assert sum(Decimal(column["rho"] or 0) for column in card["columns"]) == Decimal(RHO) / NANO
    assert "delta 0.000001" in (package / "RELEASE_NOTE.md").read_text()
    assert "0.000001" in (package / "privacy-card.html").read_text()
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip")
    assert not failures_of(verify(dossier, [str(tiny.site.officer)]))
    release = read_release(package)
    assert release.noise_of("income").kind == "none"
    with pytest.raises(NoHonestAnswer, match="discrete Gaussian"):
        release.mean("income")


def test_what_goes_over_a_cap_in_rho_is_refused(tmp_path: Path) -> None:
    """Rho adds up, and not epsilon: two releases of epsilon 4 at this delta are epsilon 5.9, and do not fit under 5.5."""
    tiny = site_of(tmp_path, cap="epsilon: 5.5, delta: 0.000001, definition: zcdp, scope: column")
    run_release(tiny.flow("1"))
    lines = "\n".join(line for ledger in read_ledgers(tiny.site) for line in describe_ledger(ledger))
    assert "rho, zCDP, column" in lines
    assert "epsilon 3.999999" in lines or "epsilon 4 of 5.5 at delta 0.000001" in lines
    assert 5.5 * NANO < epsilon_of(2 * RHO, DELTA) < 8 * NANO
    with pytest.raises(OverCap, match="rho, zCDP, column"):
        run_release(tiny.flow("2"))


@pytest.mark.parametrize(
    ("protect", "cap", "fits"),
    [
        ("{method: dp-um, epsilon: 0.2, k: 5}", "rho: 0.01, scope: column", True),
        ("{method: dp-um, epsilon: 0.21, k: 5}", "rho: 0.01, scope: column", False),
        ("{method: idp-cbls, epsilon: 0.01, k: 5}", "rho: 100, scope: column", False),
        (COUNTS, "epsilon: 100, definition: dp, scope: column", False),
        (COUNTS, "rho: 100, scope: table", False),
    ],
)
def test_each_definition_under_each_cap(tmp_path: Path, protect: str, cap: str, fits: bool) -> None:
    """A pure release costs the sum of eps^2/2 over its columns; what bounds nothing is refused before anything is charged."""
    tiny = site_of(tmp_path, protect=protect, cap=cap)
    if fits:
        run_release(tiny.flow())
        assert len(tiny.charges()) == 1
        return
    with pytest.raises(OverCap):
        run_release(tiny.flow())
    assert not tiny.charges()
