"""From a policy to the analyst: published packages of every method, read by the kit, whose words the card repeats."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from release_pipeline.analyst import NoHonestAnswer, Release, explain_kit, law_of, read_release
from release_pipeline.errors import Blocked
from tests.integration.publishing import Keys, make_trusted_site, publish_release
from tests.integration.sites import make_rows, make_site

DP = "epsilon: 10, definition: dp, scope: column"
IDP = "epsilon: 10, definition: idp, scope: column"
MASKED = """
  person: {role: identifier, do: drop}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
KEPT = MASKED + "\n  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}"
WAYS: dict[str, tuple[str, str, str, str]] = {  # protect, cap, columns, what a mean is
    "laplace": ("{method: laplace, epsilon: 2, clamp: no}", DP, KEPT, "law"),
    "dp-um": ("{method: dp-um, epsilon: 2, k: 7, consistency: none, clamp: no}", DP, KEPT, "law"),
    "dp-um-clamped": ("{method: dp-um, epsilon: 10, k: 10}", DP, KEPT, "bound"),
    "idp-cbls": ("{method: idp-cbls, epsilon: 10, k: 10, clamp: no}", IDP, KEPT, "bound"),
    "mdav": ("{method: mdav, k: 5}", "releases: 2", MASKED, "exact"),
    "dp-mdav": (
        "{method: dp-mdav, epsilon: 2, k: 10, order: corner}",
        "epsilon: 10, definition: dp, scope: table",
        MASKED,
        "declined",
    ),
}


@pytest.fixture(scope="module", params=list(WAYS))
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def package(way: str, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published package of each method."""
    protect, cap, columns, _ = WAYS[way]
    drop = "[town, name, remark]" if columns == KEPT else "[town, sex, name, remark]"
    tiny = make_trusted_site(tmp_path_factory.mktemp(way), keys, cap=cap, protect=protect, columns=columns, drop=drop)
    return publish_release(tiny, keys)


@pytest.fixture(scope="module")
def release(package: Path) -> Release:
    return read_release(package)


def card_of(package: Path) -> dict[str, Any]:
    return json.loads((package / "privacy-card.json").read_text())


def test_the_card_says_what_the_kit_says(package: Path, release: Release) -> None:
    """The law of each masked column word for word, in the card and on its page; nothing of it for kept ones."""
    card = card_of(package)
    page = html.unescape((package / "privacy-card.html").read_text())
    for column in card["columns"]:
        if column["done"] == "keep":
            assert column["law"] is None
        else:
            assert column["law"] == law_of(release.facts, column["name"]).words
            assert column["law"].rstrip(".") in page
    assert tuple(card["analysis"]) == release.explain() == tuple(explain_kit(release.facts))
    assert all(sentence in page for sentence in card["analysis"])


def test_a_mean_of_the_package_is_near_the_truth(way: str, release: Release) -> None:
    """Of the kind that the method allows; 99.99% intervals hold the confidential table's mean."""
    kind = WAYS[way][3]
    rows = [row for row in make_rows() if row["year"] == "1"]
    for name in ("income", "rent"):
        if kind == "declined":
            with pytest.raises(NoHonestAnswer):
                release.mean(name)
            continue
        mean = release.mean(name, level=0.9999)
        assert mean.kind == kind
        truth = float(np.mean([float(row[name]) for row in rows]))
        assert mean.low - 1e-9 <= truth <= mean.high + 1e-9


def test_values_lie_where_the_card_says(way: str, package: Path, release: Release) -> None:
    """Unclamped ones leave the domain, and then it is no constraint of the Data Package; all others stay inside."""
    from frictionless import validate

    free = "clamp: no" in WAYS[way][0]
    assert card_of(package)["method"]["values"] == ("anywhere" if free else "inside")
    outside = (release.data["income"] < 0).any() or (release.data["income"] > 1000).any()
    assert free or not outside
    assert outside or not free or way != "laplace"  # of few clusters none may lie outside
    fields = json.loads((package / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    income = next(field for field in fields if field["name"] == "income")
    assert ("minimum" in income.get("constraints", {})) != free
    assert ("beyond which released values may lie" in income["description"]) == free
    assert validate(str(package / "datapackage.json")).valid
    note = (package / "RELEASE_NOTE.md").read_text()
    assert ("anywhere: the noise left masked values" in note) == free


def test_the_gate_on_the_expected_error_knows_that_nothing_is_moved_back(tmp_path: Path) -> None:
    """At epsilon 1 the noise of a value is as wide as its domain: unclamped its square is some 24 times the variance, clamped a
    fifth of that. A limit between them lets one release through and stops the other before the charge."""
    gates = "{min_rows: 20, expected_error: {income: 10}}"
    sites = {
        clamp: make_site(tmp_path / clamp, cap=DP, protect=f"{{method: laplace, epsilon: 2, clamp: {clamp}}}", gates=gates)
        for clamp in ("yes", "no")
    }
    assert sites["yes"].flow().run().facts["rows_out"] == 60
    with pytest.raises(Blocked, match="expected error of income"):
        sites["no"].flow().run()
    assert sites["no"].charges() == []
