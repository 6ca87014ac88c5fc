"""rho through the whole pipeline: policies by zcdp, caps in rho or in an epsilon at a delta, and what is said of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.analyst import NoHonestAnswer, read_release, simulate
from release_pipeline.dagster_app.metadata import build_metadata
from release_pipeline.errors import OverCap, PolicyInvalid
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.status.candidates import describe_candidates
from release_pipeline.flow.status.ledger import describe_ledger, read_ledgers
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import load_policy, parse_policy
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.loss import release_loss
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.populations import load_populations
from release_pipeline.privacy.concentrated import epsilon_of, rho_within
from tests.integration.people import RELEASE
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import TinySite, make_rows, make_site, policy_text

NANO = 10**9
DELTA = Decimal("0.000001")
COUNTS = "{method: dp-cdf, definition: zcdp, epsilon: 4, delta: 0.000001, k: 5}"
SUMS = "{method: dp-um, definition: zcdp, epsilon: 4, delta: 0.000001, k: 10}"
AT_DELTA = "epsilon: 5, delta: 0.000001, definition: zcdp, scope: column"
RHO = rho_within(4 * NANO, DELTA)
ROWS = 200


def site_of(home: Path, **parts: str) -> TinySite:
    return make_site(home, rows=make_rows(ROWS), **{"protect": COUNTS, "cap": AT_DELTA, **parts})


def words_of(policy: str, **parts: str) -> str:
    """The plan of a policy, in a line."""
    plan = make_plan(parse_policy(policy_text(**parts), name=policy))
    return " ".join(" ".join(describe_plan(plan)).split())


@pytest.mark.parametrize("protect", [COUNTS, SUMS])
def test_a_release_by_rho_is_charged_published_and_verified(tmp_path: Path, keys: Mapping[str, PrivateKey], protect: str) -> None:
    """Its rho is what its epsilon and delta allow, split over the columns; every epsilon stands beside its delta; an old kit
    finds no epsilon to misread; the dossier adds rho up."""
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(ROWS), cap=AT_DELTA, protect=protect)
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
    if "dp-cdf" in protect:
        assert release.share("income", 0, 500).width < 0.6
        assert set(simulate({"income": [1.0] * 200, "rent": [2.0] * 200}, release).data) == {"income", "rent"}
    else:
        assert release.noise_of("income").kind == "none"
        with pytest.raises(NoHonestAnswer, match="discrete Gaussian"):
            release.mean("income")


def test_what_goes_over_a_cap_in_rho_is_refused(tmp_path: Path) -> None:
    """Rho adds up, and not epsilon: two releases of epsilon 4 at this delta are epsilon 5.9, and do not fit under 5.5."""
    tiny = site_of(tmp_path, cap="epsilon: 5.5, delta: 0.000001, definition: zcdp, scope: column")
    tiny.flow("1").run()
    lines = "\n".join(line for ledger in read_ledgers(tiny.site) for line in describe_ledger(ledger))
    assert "rho, zCDP, column" in lines
    assert "epsilon 3.999999" in lines or "epsilon 4 of 5.5 at delta 0.000001" in lines
    assert 5.5 * NANO < epsilon_of(2 * RHO, DELTA) < 8 * NANO
    with pytest.raises(OverCap, match="rho, zCDP, column"):
        tiny.flow("2").run()
    assert "4 at delta 0.000001, zCDP" in "\n".join(describe_candidates(tiny.site)).replace("3.999999989", "4")


@pytest.mark.parametrize(
    ("protect", "cap", "fits"),
    [
        ("{method: dp-um, epsilon: 0.2, k: 5}", "rho: 0.01, scope: column", True),  # 2 x 0.1^2 / 2
        ("{method: dp-um, epsilon: 0.21, k: 5}", "rho: 0.01, scope: column", False),
        ("{method: idp-cbls, epsilon: 0.01, k: 5}", "rho: 100, scope: column", False),
        ("{method: idp-cbls, epsilon: 0.01, k: 5}", AT_DELTA, False),
        (COUNTS, "epsilon: 100, definition: dp, scope: column", False),
        (COUNTS, "epsilon: 100, definition: idp, scope: column", False),
        (COUNTS, "rho: 100, scope: table", False),
        (COUNTS, "releases: 1", True),
    ],
)
def test_each_definition_under_each_cap(tmp_path: Path, protect: str, cap: str, fits: bool) -> None:
    """A pure release costs the sum of eps^2/2 over its columns; what bounds nothing is refused before anything is charged."""
    tiny = site_of(tmp_path, protect=protect, cap=cap)
    if fits:
        tiny.flow().run()
        assert len(tiny.charges()) == 1
        return
    with pytest.raises(OverCap):
        tiny.flow().run()
    assert not tiny.charges()


def test_people_with_several_records_cost_the_square(tmp_path: Path) -> None:
    text = policy_text(protect=COUNTS, person="{column: person, records_per_release: 3}", gates="{min_rows: 9000}")
    policy = parse_policy(text, name="people")
    assert release_loss(policy, records=9000).zcdp_column == 9 * RHO
    assert "times 3 squared records per person" in words_of(
        "people", protect=COUNTS, person="{column: person, records_per_release: 3}"
    )


def test_a_pure_loss_in_rho_is_that_of_its_columns() -> None:
    """Half the square of each, added up, which is less than half the square of their sum."""
    policy = parse_policy(policy_text(protect="{method: dp-um, epsilon: 2, k: 5}"), name="people")
    assert release_loss(policy, records=100).zcdp_column == NANO  # two columns of epsilon 1


CAPS = [
    ({"rho": "0.1", "scope": "column"}, {"rho": "0.1", "definition": "zcdp"}),
    ({"epsilon": 3, "delta": "0.000001", "definition": "zcdp", "scope": "table"}, {"rho": "0.18506984"}),
    ({"rho": "0.1"}, "rho and scope"),
    ({"rho": "0", "scope": "column"}, "must be above 0"),
    ({"rho": "0.1", "delta": "0.1", "scope": "column"}, "nothing else"),
    ({"rho": "0.1", "definition": "dp", "scope": "column"}, "nothing else"),
    ({"epsilon": 3, "definition": "zcdp", "scope": "column"}, "delta under zcdp"),
    ({"epsilon": 3, "delta": "0.000001", "definition": "dp", "scope": "column"}, "delta under zcdp"),
    ({"epsilon": 3, "delta": "0.000001", "rho": "0.5", "definition": "zcdp", "scope": "column"}, "leave it out"),
    ({"epsilon": "0.000001", "delta": "0.000001", "definition": "zcdp", "scope": "column"}, "nothing of rho"),
    ({"releases": 1, "rho": "1"}, "a cap of releases"),
]


@pytest.mark.parametrize(("cap", "found"), CAPS)
def test_caps_in_rho_are_read(tmp_path: Path, cap: dict[str, Any], found: dict[str, str] | str) -> None:
    """What is signed has the rho that an epsilon and a delta allow, and reads back as the same; the rest is told in words."""
    file = tmp_path / "populations.yaml"
    file.write_text(f"folk: {{cap: {{{', '.join(f'{name}: {value}' for name, value in cap.items())}}}}}\n")
    if isinstance(found, str):
        with pytest.raises(PolicyInvalid) as refused:
            load_populations(file)
        assert found in str(refused.value.problems)
        return
    population = load_populations(file)["folk"]
    canonical = population.canonical["cap"]
    assert {name: canonical[name] for name in found} == found
    again = tmp_path / "again.yaml"
    again.write_text(f"folk: {{cap: {{{', '.join(f'{name}: {value}' for name, value in canonical.items())}}}}}\n")
    assert load_populations(again)["folk"] == population


def test_what_is_missing_or_too_much_is_told_in_words(tmp_path: Path) -> None:
    for protect, words in (
        ("{method: dp-cdf, definition: zcdp, epsilon: 4}", "delta is missing"),
        ("{method: dp-cdf, delta: 0.000001, epsilon: 4}", "only definition: zcdp has a delta"),
        ("{method: laplace, definition: zcdp, delta: 0.000001, epsilon: 4}", "no claim of scope column"),
        ("{method: mdav, k: 5, definition: zcdp}", "has no claim by rho"),
        ("{method: dp-cdf, definition: dp, epsilon: 4}", "'dp' is not allowed"),
        ("{method: dp-cdf, definition: zcdp, epsilon: 4, delta: 1}", "less than 1"),
    ):
        tiny = site_of(tmp_path / words.replace(" ", "-").replace("'", ""), protect=protect)
        with pytest.raises(PolicyInvalid) as refused:
            load_policy(tiny.home / "policies" / "people.yaml")
        assert words in str(refused.value.problems)


def test_a_claim_that_says_less_and_costs_more_is_warned_of() -> None:
    """A delta near one over the records; and rho where pure epsilon would have less noise."""
    weak = "{method: dp-um, definition: zcdp, epsilon: 1, delta: 0.01, k: 5}"
    assert "delta 0.01 is more than a tenth of one over 20 records" in words_of("people", protect=weak)
    few = "{method: dp-um, definition: zcdp, epsilon: 1, delta: 0.000001, k: 5}"
    assert "under eps-DP, the stronger definition" in words_of("people", protect=few)


def test_a_change_of_definition_is_told() -> None:
    def policy(protect: str) -> Any:
        return parse_policy(policy_text(protect=protect), name="people")

    pure, by_rho, individual = (
        policy(one) for one in ("{method: dp-um, epsilon: 4, k: 10}", SUMS, "{method: idp-ls, epsilon: 4, k: 10}")
    )
    assert "a weaker definition" in "\n".join(describe_diff(pure, by_rho))
    assert "neither implies the other" in "\n".join(describe_diff(individual, by_rho))
    assert "the series was epsilon 8 and is rho" in "\n".join(describe_diff(pure, by_rho))


def test_rho_and_delta_may_stand_in_dagster(tmp_path: Path) -> None:
    tiny = site_of(tmp_path)
    shown = build_metadata(tiny.flow().run(), show_internal=False)
    assert (shown["delta"], shown["rho"]) == ("0.000001", RHO / NANO)
