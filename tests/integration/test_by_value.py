"""dp-cdf through the whole pipeline: policy, noisy counts, candidate, package, and what an analyst gets from it."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import frictionless
import numpy as np
import pandas as pd
import pytest

from release_pipeline.analyst import NoHonestAnswer, read_release, simulate
from release_pipeline.errors import GateFailed, InvalidArgument, OverCap, PolicyInvalid
from release_pipeline.flow import checkpoints
from release_pipeline.flow import release as flow_release
from release_pipeline.flow.opening import open_release
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.publication.withdrawal import retract
from release_pipeline.flow.secret_files import Probe
from release_pipeline.flow.status.check import check_policy, describe_check, view_check
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import load_policy
from release_pipeline.policy.families.by_value import ByValueFamily
from release_pipeline.policy.measured import MEDIAN_ERRORS
from release_pipeline.policy.options import ByValueOptions
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.views import plan_to_json
from release_pipeline.privacy import Grid, mask_column
from release_pipeline.privacy.catalogue import MECHANISM_VERSION
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.report.counts import COUNTS_FILE
from release_pipeline.stages.strategies.by_value import read_stages
from tests.integration.people import RELEASE
from tests.integration.publishing import failures_of, make_trusted_site, publish_release, read_zip
from tests.integration.sites import PARTS, ROOT, TinySite, make_rows, make_site
from tests.leaks import find_canaries, read_blobs

SECRET = b"c" * SECRET_BYTES
DP = "{method: dp-cdf, epsilon: 4, k: 5}"
CAP = "epsilon: 20, definition: dp, scope: column"
ROWS = 200
SURE = 1 - 1e-9  # secrets are random


def site_of(home: Path, **parts: str) -> TinySite:
    """A site with a policy that counts two columns by value."""
    tiny = make_site(home, rows=make_rows(ROWS), **{"protect": DP, "cap": CAP, **parts})
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    return tiny


def run(tiny: TinySite, release: str = "1") -> dict[str, Any]:
    """The facts of the candidate, its noise drawn with a secret that the test knows."""
    return open_release(tiny.site, "people", release, probe=Probe(new_secret=lambda: SECRET)).run().facts


def counts_of(folder: Path) -> pd.DataFrame:
    """The published counts."""
    return pd.read_csv(folder / COUNTS_FILE)


def test_released_values_follow_from_the_published_counts(tmp_path: Path) -> None:
    """Whoever has the counts of the candidate makes the same values of them: nothing else of the data is in them. The counts are
    those of the records, with noise that loses at most what was charged."""
    tiny = site_of(tmp_path)
    facts = run(tiny)
    assert (facts["method"], facts["definition"], facts["scope"], facts["k"], facts["epsilon"]) == (
        "dp-cdf",
        "dp",
        "column",
        5,
        4,
    )
    assert [(charge.loss.dp_column, charge.loss.dp_table) for charge in tiny.charges()] == [(4 * 10**9, None)]
    tables, counts = tiny.tables(), counts_of(tiny.folder())
    released = pd.read_csv(tiny.folder() / "data.csv")
    policy = tiny.site.policy("people")
    for name, column in policy.noise_columns.items():
        mine = counts[counts["column"] == name]
        units = column.exact_grid.quantise(tables["records"].column(name).to_numpy())
        stages = read_stages(tables["counts"], name)
        assert sum(stage.noise.loss for stage in stages) <= 2
        for number, stage in enumerate(stages, 1):
            of_stage = mine[mine["stage"] == number]
            assert of_stage["count"].tolist() == stage.counts.tolist()
            assert of_stage["first"].tolist() == column.exact_grid.restore(stage.edges[:-1].astype(float)).tolist()
            true = np.histogram(units, [*stage.edges[:-1], stage.edges[-1]])[0]
            assert 0 < np.abs(stage.counts - true).mean() < 4 * stage.noise.spread
        declared = ByValueFamily(ByValueOptions).declare(policy, name)
        made = np.repeat(declared.release(stages, ROWS), 5)
        assert sorted(released[name]) == made.tolist()


def test_a_library_call_draws_the_same_values(tmp_path: Path) -> None:
    """`mask_column` and the pipeline are one mechanism: the same secret and context give the same list."""
    tiny = site_of(tmp_path)
    run(tiny)
    records, released = tiny.tables()["records"], pd.read_csv(tiny.folder() / "data.csv")
    [charge] = tiny.charges()
    context = (tiny.site.policy("people").canonical_hash(), "people/1/r1", charge.source, MECHANISM_VERSION, "income")
    alone = mask_column(
        records.column("income").to_numpy(),
        domain=(0, 1000),
        grid=1,
        method="dp-cdf",
        epsilon=2,
        k=5,
        secret=SECRET,
        context=context,
    )
    assert sorted(alone.values) == sorted(released["income"])


def test_a_secret_that_is_used_twice_never_draws_the_same_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for other records, though their cells are the same, and not by another version of the mechanisms; a copy of the site
    with the same records draws the same."""
    counts: dict[str, list[int]] = {}
    for name, rows in {"same": make_rows(ROWS), "again": make_rows(ROWS), "in another order": make_rows(ROWS)[::-1]}.items():
        tiny = make_site(tmp_path / name, rows=rows, protect=DP, cap=CAP)
        tiny.fix_key(SECRET)
        run(tiny)
        counts[name] = counts_of(tiny.folder())["count"].tolist()
    assert counts["again"] == counts["same"] != counts["in another order"]
    for module in (checkpoints, flow_release):
        monkeypatch.setattr(module, "MECHANISM_VERSION", "another")
    tiny = make_site(tmp_path / "version", rows=make_rows(ROWS), protect=DP, cap=CAP)
    tiny.fix_key(SECRET)
    run(tiny)
    assert counts_of(tiny.folder())["count"].tolist() != counts["same"]


@pytest.mark.parametrize("epsilon", [1, 4])
def test_too_few_records_are_refused_before_the_charge(tmp_path: Path, epsilon: int) -> None:
    """By public facts: with another method and a k that it can have; the plan says it before."""
    tiny = site_of(tmp_path, protect=f"{{method: dp-cdf, epsilon: {epsilon}, k: 5}}")
    plan = make_plan(tiny.site.policy("people"))
    assert f"fewer than {200 // epsilon} records" in " ".join(" ".join(describe_plan(plan)).split())
    tiny.write_rows(make_rows(40))
    with pytest.raises(InvalidArgument, match=r"40 records are too few.*dp-um with k: "):
        tiny.flow().run()
    assert not tiny.charges()
    assert tiny.status().state == "blocked"


def test_expected_errors_are_those_of_the_method(tmp_path: Path) -> None:
    """About those of releases with other secrets; a limit on them stops a release before it costs anything."""
    tiny = site_of(tmp_path)
    run(tiny)
    expected = json.loads((tiny.folder() / "evidence.json").read_text())["columns"]["income"]
    numbers = tiny.tables()["records"].column("income").to_numpy()
    errors = [
        float(np.mean((mask_column(numbers, domain=(0, 1000), grid=1, method="dp-cdf", epsilon=2, k=5).values - numbers) ** 2))
        for _ in range(20)
    ]
    assert 0.5 < expected["error"] / (np.mean(errors) / np.var(numbers)) < 2
    assert expected["error_low"] <= expected["error"] <= expected["error_high"]
    strict = site_of(tmp_path / "strict", gates="{min_rows: 100, expected_error: {income: 0.0001}}")
    with pytest.raises(GateFailed, match="expected error of income"):
        strict.flow().run()
    assert not strict.charges()


ASKED = [
    ("{method: dp-cdf, epsilon: 4, k: 5, scope: column}", "", "claims the list of a column"),
    ("{method: dp-cdf, epsilon: 4, k: 5, clamp: no}", "", "no value leaves its domain"),
    ("{method: dp-cdf, epsilon: 4, consistency: isotonic}", "", "ascends by itself"),
    ("{method: dp-cdf, k: 5}", "", "'epsilon' is missing"),
]


@pytest.mark.parametrize(("protect", "option", "words"), ASKED)
def test_what_a_policy_may_not_ask_for_is_told_in_words(tmp_path: Path, protect: str, option: str, words: str) -> None:
    columns = PARTS["columns"].replace("outside: fail, why: known}", f"outside: fail, why: known{', ' * bool(option)}{option}}}")
    tiny = site_of(tmp_path, protect=protect, columns=columns)
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert words in str(refused.value.problems)


def test_what_is_declared_of_a_column_is_counted_so(tmp_path: Path) -> None:
    """Atoms reach plan and cells; a policy without them has the hash without them."""
    plain = site_of(tmp_path / "plain").site.policy("people")
    assert "atoms" not in plain.canonical_json()
    more = PARTS["columns"].replace("outside: fail, why: known}", "outside: fail, why: known, atoms: [365]}")
    tiny = site_of(tmp_path / "more", columns=more)
    policy = tiny.site.policy("people")
    assert policy.canonical_hash() != plain.canonical_hash()
    words = " ".join(" ".join(describe_plan(make_plan(policy))).split())
    assert "income: cells are finest at 0; a cell of its own for 365; " in words
    assert plan_to_json(make_plan(policy))["columns"][0]["noise"] is None
    run(tiny)
    counts = counts_of(tiny.folder())
    first = counts[(counts["column"] == "income") & (counts["stage"] == 1)]
    alone = first[first["first"] == first["last"]]["first"].tolist()
    assert {0, 1, 365} <= set(alone)


def test_random_parts_have_counts_of_their_own(tmp_path: Path) -> None:
    """Which the analyst's kit does not put together; the charge is that of one table."""
    tiny = site_of(tmp_path, protect="{method: dp-cdf, epsilon: 4, k: 5, partitions: 2}", gates="{min_rows: 200}")
    run(tiny)
    counts = counts_of(tiny.folder())
    assert sorted(set(counts["part"])) == [1, 2]
    income = counts[(counts["column"] == "income") & (counts["stage"] == 1)]
    assert (income.groupby("part")["count"].sum() - 100).abs().max() < 60
    assert [charge.loss.dp_column for charge in tiny.charges()] == [4 * 10**9]


def test_a_package_has_its_counts_and_answers_from_them(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """Described to programs, verified, and gone with the data when it is retracted; an analyst gets shares, quantiles and means
    that hold for the confidential table, and nothing of it leaks."""
    rows = make_rows(ROWS)
    rows[7]["income"], rows[7]["remark"], rows[7]["name"] = "987", "canary-remark", "name0007"
    tiny = make_trusted_site(tmp_path / "site", keys, rows=rows, cap=CAP, protect=DP)
    package = publish_release(tiny, keys)
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    described = frictionless.Package(str(package / "datapackage.json"))
    assert "data.counts" in described.resource_names
    card = json.loads((package / "privacy-card.json").read_text())
    assert [column["centre"] for column in card["columns"] if column["done"] == "noise"] == ["0", "0"]
    release = read_release(package)
    numbers = tiny.tables()["records"].column("income").to_numpy()
    share = release.share("income", 0, 250, level=SURE)
    assert share.low <= (numbers <= 250).mean() <= share.high
    assert share.width < 0.9
    median = release.quantile("income", 0.5, level=SURE)
    assert median.low <= np.median(numbers) <= median.high
    mean = release.mean("income", level=SURE)
    assert mean.low <= numbers.mean() <= mean.high
    assert release.noise_of("income").kind == "counts"
    with pytest.raises(NoHonestAnswer, match="ranks alone"):
        release.slope("rent", ["income"])
    again = simulate({"income": numbers, "rent": np.round(numbers / 10)}, release, secret=SECRET)
    assert set(again.data) == {"income", "rent"}
    assert not find_canaries(read_blobs(package), ["canary-remark", "name0007"])

    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip")
    assert not failures_of(verify(dossier, [str(tiny.site.officer)]))
    assert not any("counts" in name for name in read_zip(dossier))
    with (package / COUNTS_FILE).open("a") as file:
        file.write("income,2,0,0,5,Laplace 2\n")
    assert failures_of(verify(package, [str(tiny.site.officer)]))


def test_a_retraction_takes_the_counts_away(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(ROWS), cap=CAP, protect=DP)
    package = publish_release(tiny, keys)
    retract(tiny.site, RELEASE, key=keys["olga"], why="a test")
    assert not (package / COUNTS_FILE).exists()
    assert all("RETRACTED" in words for words in failures_of(verify(package, [str(tiny.site.officer)])))


def test_a_second_release_adds_up_and_the_cap_refuses_a_third(tmp_path: Path) -> None:
    tiny = site_of(tmp_path, cap="epsilon: 7, definition: dp, scope: column")
    run(tiny)
    with pytest.raises(OverCap, match="has 3 left of 7"):
        run(tiny, "2")


def test_a_retry_serves_what_was_counted(tmp_path: Path) -> None:
    """Noise that is drawn stays: a run that stopped after it goes on with the same counts and the same table."""
    tiny = site_of(tmp_path)

    def stop(place: str) -> None:
        if place == "the masked table is committed":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_release(tiny.site, "people", "1", probe=Probe(reached=stop)).run()
    before = tiny.tables()
    tiny.flow().run()
    after = tiny.tables()
    assert before["counts"].equals(after["counts"])
    text = (tiny.folder() / COUNTS_FILE).read_text()
    assert len(list(csv.reader(text.splitlines()))) == before["counts"].num_rows + 1


def test_two_records_of_a_person_cost_twice(tmp_path: Path) -> None:
    tiny = site_of(tmp_path, person="{column: person, records_per_release: 2}", protect="{method: dp-cdf, epsilon: 4}")
    run(tiny)
    assert [charge.loss.dp_column for charge in tiny.charges()] == [8 * 10**9]
    noise = {Fraction(2, int(words.split()[1])) for words in counts_of(tiny.folder())["noise"]}
    assert max(noise) <= 2  # noise is for one record


def test_the_grid_of_half_units_is_written_exactly(tmp_path: Path) -> None:
    tiny = site_of(tmp_path)
    run(tiny)
    counts = counts_of(tiny.folder())
    rent = counts[(counts["column"] == "rent") & (counts["stage"] == 2)]
    grid = Grid.declare((0, 100), "0.5")
    assert (np.diff(grid.quantise(rent["first"].to_numpy())) >= 1).all()
    assert rent["last"].iloc[-1] == 100


def test_check_counts_with_the_last_release_and_says_what_was_measured(tmp_path: Path) -> None:
    """Before the first release with the fewest rows that the policy lets through, then with as many as the last one had."""
    tiny = site_of(tmp_path, gates="{min_rows: 150}")
    file = tiny.home / "policies" / "people.yaml"

    def said() -> str:
        return " ".join(" ".join(describe_check(check_policy(file, rows=None, home=tiny.home))).split())

    assert "rows 150, the fewest that the policy lets through" in said()
    measured = "public columns with records times epsilon from 300 to 1,000 had an error of 0.0353 by dp-cdf, 0.233 by dp-um"
    assert f"measured {measured}, 0.17 by idp-cbls (iDP) in the median" in said()
    run(tiny)
    assert "rows 200, as people/1/r1 had" in said()
    assert view_check(check_policy(file, rows=170, home=tiny.home)).rows == 170


def test_what_check_says_was_measured_is_what_the_page_has() -> None:
    """The figures of docs/reproduction.md."""
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    lines = page.partition("### Error by records times epsilon")[2].split("\n\n")[1].splitlines()[2:]
    found = {method: tuple(map(float, figures)) for method, *figures in map(_cells, lines)}
    assert found == MEDIAN_ERRORS


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]
