"""dp-cdf through the whole pipeline: policy, noisy counts, candidate, package, and what an analyst gets from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import frictionless
import numpy as np
import pandas as pd
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.formats.package import COUNTS_FILE
from release_pipeline.masking.by_value import read_stages
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline import context, microaggregate
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from release_pipeline.policy.families.columns import ByValueFamily
from release_pipeline.policy.file.options import ByValueOptions
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.verification import verify
from release_pipeline.store.files import Probe
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE
from tests.integration.publishing import failures_of, make_trusted_site, publish_release, read_zip
from tests.integration.sites import PARTS, TinySite, make_rows, make_site, refusal
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
    return run_release(open_release(tiny.site, "people", release, probe=Probe(new_secret=lambda: SECRET))).facts


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
        made = declared.release(stages, ROWS).at(np.arange(ROWS))
        assert sorted(released[name]) == made.tolist()


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
    for module in (context, microaggregate):
        monkeypatch.setattr(module, "MECHANISM_VERSION", "another")
    tiny = make_site(tmp_path / "version", rows=make_rows(ROWS), protect=DP, cap=CAP)
    tiny.fix_key(SECRET)
    run(tiny)
    assert counts_of(tiny.folder())["count"].tolist() != counts["same"]


ASKED = [
    ("{method: dp-cdf, epsilon: 4, k: 5, scope: column}", "", "claims the list of a column"),
    ("{method: dp-cdf, k: 5}", "", "'epsilon' is missing"),
]


@pytest.mark.parametrize(("protect", "option", "words"), ASKED)
def test_what_a_policy_may_not_ask_for_is_told_in_words(tmp_path: Path, protect: str, option: str, words: str) -> None:
    columns = PARTS["columns"].replace("outside: fail, why: known}", f"outside: fail, why: known{', ' * bool(option)}{option}}}")
    tiny = site_of(tmp_path, protect=protect, columns=columns)
    assert words in refusal(lambda: load_policy(tiny.home / "policies" / "people.yaml"))


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
    assert "ranks alone" in " ".join(release.explain())
    assert not find_canaries(read_blobs(package), ["canary-remark", "name0007"])

    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip")
    assert not failures_of(verify(dossier, [str(tiny.site.officer)]))
    assert not any("counts" in name for name in read_zip(dossier))
    with (package / COUNTS_FILE).open("a") as file:
        file.write("income,2,0,0,5,Laplace 2\n")
    assert failures_of(verify(package, [str(tiny.site.officer)]))
