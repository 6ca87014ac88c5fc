"""Random parts of the records, in one release and one per release through the real ledger: what they cost, what is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from release_pipeline.errors import Blocked, OverCap, PolicyInvalid, SecretLost
from release_pipeline.flow.mask import mask_file
from release_pipeline.flow.opening import open_release, revise_release
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.secret_files import Probe
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import load_policy
from release_pipeline.policy.diff import describe_diff
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.privacy.amplification import amplified, prs20_bound
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.privacy.partition import largest_share
from release_pipeline.report.public import CARD_SCHEMA
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.vault import open_workspace
from tests.integration import test_k_epsilon as classes
from tests.integration.people import review
from tests.integration.publishing import failures_of, make_trusted_site
from tests.integration.sites import TinySite, make_rows, make_site
from tests.integration.test_vectors import KEPT, MASKED

NANO = 10**9
ONE_BY_ONE = {
    "source": "{path: people.csv}",
    "releases": '["1", "2", "3"]',
    "drop": "[name, year]",
    "columns": MASKED,
    "gates": "{min_rows: 60}",
}
IDP = "{method: idp-cbls, epsilon: 2, k: 5, partitions: 3, publish_parts: one per release}"
DP = "{method: dp-mdav, epsilon: 2, k: 5, order: hilbert, partitions: 3, publish_parts: one per release}"
AMPLIFIED = DP.replace("one per release", "one per release, amplification: sampling")
IN_DP = "epsilon: 2, definition: dp, scope: table"
IN_IDP = "epsilon: 2, definition: idp, scope: column"
METHODS = {
    "laplace": "{method: laplace, epsilon: 2, partitions: 4}",
    "dp-um": "{method: dp-um, epsilon: 2, k: 5, partitions: 4}",
    "idp-ls": "{method: idp-ls, epsilon: 2, k: 5, partitions: 4}",
    "idp-cbls": "{method: idp-cbls, epsilon: 2, k: 5, partitions: 4}",
    "mdav": "{method: mdav, k: 5, partitions: 4}",
    "dp-mdav": "{method: dp-mdav, epsilon: 2, k: 5, order: corner, partitions: 4}",
}


class Stopped(Exception):
    """Where a test stops an attempt."""


def make_parted(home: Path, protect: str = IDP, *, cap: str = IN_IDP, count: int = 61, **parts: str) -> TinySite:
    """A site whose three releases are the three parts of one table."""
    rows = make_rows(count, releases=("1",))
    return make_site(home, rows=rows, cap=cap, **{**ONE_BY_ONE, "protect": protect, **parts})


def released_of(tiny: TinySite, release: str) -> pd.DataFrame:
    return pd.read_csv(tiny.folder(release) / "data.csv")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_masks_each_part_on_its_own(tmp_path: Path, method: str) -> None:
    """Clusters have members of one part alone, of which there are equally many; the rows of the release show no part."""
    cap = "releases: 2" if method == "mdav" else "epsilon: 900, definition: idp, scope: column"
    tiny = make_site(
        tmp_path / "site", rows=make_rows(82), cap=cap, protect=METHODS[method], columns=MASKED, gates="{min_rows: 80}"
    )
    facts = tiny.flow().run().facts
    tables = tiny.tables()
    part = tables["parts"]["release_pipeline_part"].to_numpy()
    assert sorted(np.bincount(part)) == [20, 20, 21, 21]
    assert facts["rows_in"] == facts["rows_out"] == 82
    assert facts["parts"] == 4
    masked = tables["masked"].to_pandas()
    own = part[masked["release_pipeline_record"].to_numpy()]
    for name in ("income", "rent"):
        if method == "laplace":
            continue
        groups = masked.assign(part=own).groupby(["part", name]).size()
        assert groups.min() >= 5
    changes = int(np.count_nonzero(np.diff(own)))
    assert changes > 40  # parts one after the other would have 3
    assert list(released_of(tiny, "1").columns) == ["income", "rent"]
    expected = json.loads((tiny.folder() / "evidence.json").read_text())
    assert expected["columns"]["income"]["parts"] == 4
    assert expected["columns"]["income"]["error"] == pytest.approx(expected["audit"]["error"]["income"], rel=1.5, abs=0.5)


def test_classes_of_each_part_have_k_records_too(tmp_path: Path) -> None:
    """(k,epsilon)-anonymity grouped part by part. A label is one class over all parts: one scale, as wide as its numbers."""
    tiny = classes.site_of(
        tmp_path / "site",
        rows=classes.records(240),
        protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 2, partitions: 2}",
        suppress="{grouping_at_most: 20%, confidence: 95%, at_most: 90%}",
        gates="{min_rows: 200, differencing_below: 0}",
    )
    facts = classes.run(tiny)  # with a secret for which the parts come to the same levels
    table = classes.released_of(tiny)
    assert table.groupby(classes.QUASI).size().min() == facts["anonymity_k"] >= 4
    assert len(table) == facts["rows_out"] < facts["rows_in"] == 240
    made = {name: tiny.tables()[name].to_pandas() for name in ("membership", "labels", "statistics", "records", "suppressed")}
    part = tiny.tables()["parts"]["release_pipeline_part"].to_numpy()
    group = made["membership"]["release_pipeline_class"]
    assert np.bincount(part).tolist() == [120, 120]
    assert group[group >= 0].groupby([part[group >= 0], group[group >= 0]]).size().min() >= 4
    assert not made["labels"].duplicated().any()
    for name, share, step in (("income", 1, 1), ("rent", 1, 0.5)):
        units = (made["records"][name] / step).round()[group >= 0]
        wanted = [math.ceil((of.max() - of.min()) / share) for _, of in units.groupby(group[group >= 0])]
        assert made["statistics"].query("column_name == @name")["scale"].tolist() == wanted
    kept = made["suppressed"]
    assert kept.groupby(classes.QUASI)["release_pipeline_class"].nunique().max() == 1
    own = part[kept["release_pipeline_record"]]
    assert kept.assign(part=own).groupby(classes.QUASI).part.nunique().max() == 2
    assert np.count_nonzero(np.diff(own)) > 20
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    assert 0 <= evidence["audit"]["record_linkage"]["value"] <= 1
    assert evidence["audit"]["groups"]["smallest"] == facts["anonymity_k"]
    assert evidence["columns"]["income"]["parts"] == 2


def test_a_series_of_parts_spends_epsilon_once(tmp_path: Path) -> None:
    """Everybody is in exactly one release; the ledger is charged with the first part, and the cap is full with all of them."""
    tiny = make_parted(tmp_path / "site")
    members: list[int] = []
    for place, release in enumerate(("1", "2", "3")):
        facts = tiny.flow(release).run().facts
        assert facts["part"] == f"{place + 1} of 3"
        assert facts["rows_in"] == facts["rows_out"] == len(released_of(tiny, release)) in (20, 21)
        assert facts["series_epsilon"] == 2.0
        assert facts["population_spent"] == "2 of 2 (epsilon, iDP, column)"
        members += tiny.tables(release)["masked"]["release_pipeline_record"].to_pylist()
    assert sorted(members) == list(range(61))
    assert [charge.loss.idp_column for charge in tiny.charges()] == [2 * NANO, 0, 0]
    assert [charge.loss.releases for charge in tiny.charges()] == [1, 0, 0]
    assert [file.name for file in (tiny.site.vault / "secrets").iterdir()] == ["series.people"]  # until all are published


def test_with_amplification_the_charge_grows_to_epsilon(tmp_path: Path) -> None:
    """After r of P parts ln(1 + (r/P)(e^eps - 1)) is spent, at every scope, and with the last one epsilon exactly."""
    tiny = make_parted(tmp_path / "site", AMPLIFIED, cap=IN_DP)
    spent = 0
    for done, release in enumerate(("3", "1", "2"), start=1):  # the order of the calendar is free
        tiny.flow(release).run()
        spent += tiny.charges()[-1].loss.dp_table or 0
        assert spent == amplified(2 * NANO, largest_share(61, 3, done))  # the largest parts first: 21, 20, 20
    assert spent == 2 * NANO
    content = "\n".join(describe_plan(make_plan(load_policy(tiny.home / "policies" / "people.yaml"))))
    assert f"after 1 of 3: {amplified(2 * NANO, Fraction(1, 3)) / NANO:.9f}" in content  # for the 60 rows of min_rows
    assert f"(PRS20 Theorem 2: {prs20_bound(2 * NANO, Fraction(1, 3)):.3g})" in " ".join(content.split())


@pytest.mark.parametrize("change", ["another epsilon", "other records"])
def test_a_charge_that_is_no_part_of_the_series_saves_it_nothing(tmp_path: Path, change: str) -> None:
    """An attempt that stopped before the series was noted, and then another policy or table: that begins with a full charge."""
    rows = make_rows(61, releases=("1",))
    tiny = make_parted(tmp_path / "site", cap="epsilon: 9, definition: idp, scope: column")

    def stop(passed: str) -> None:
        if passed == "the loss is charged":
            raise Stopped

    with pytest.raises(Stopped):
        open_release(tiny.site, "people", "1", probe=Probe(reached=stop)).run()
    if change == "another epsilon":
        tiny.write_policy(**{**ONE_BY_ONE, "protect": IDP.replace("epsilon: 2", "epsilon: 5")})
    else:
        tiny.write_rows([{**row, "rent": "7"} if place < 5 else row for place, row in enumerate(rows)])
    for release in ("2", "3"):
        tiny.flow(release).run()
    wanted = 5 * NANO if change == "another epsilon" else 2 * NANO
    assert [charge.loss.idp_column for charge in tiny.charges()] == [2 * NANO, wanted, 0]


def test_a_part_that_is_made_once_more_is_charged_in_full(tmp_path: Path) -> None:
    """A correction publishes the data of the same people a second time."""
    tiny = make_parted(tmp_path / "site", cap="epsilon: 4, definition: idp, scope: column")
    tiny.flow("1").run()
    first = tiny.tables("1")["parts"]["release_pipeline_part"].to_pylist()
    revise_release(tiny.site, "people", "1", why="a wrong unit")
    tiny.flow("1").run()
    assert [charge.loss.idp_column for charge in tiny.charges()] == [2 * NANO, 2 * NANO]
    with open_workspace(tiny.site.vault, "folk", ReleaseId("people", "1", 2).workspace) as workspace:
        assert workspace.read("parts")["release_pipeline_part"].to_pylist() == first


@pytest.mark.parametrize("change", ["another number", "another order", "one record less"])
def test_the_table_of_a_series_is_frozen(tmp_path: Path, change: str) -> None:
    """Other records, or the same in another order, would put people into several parts: refused before anything is charged."""
    tiny = make_parted(tmp_path / "site", gates="{min_rows: 60, differencing_below: 0}")
    tiny.flow("1").run()
    rows = make_rows(61, releases=("1",))
    changed = {
        "another number": [{**rows[0], "income": "7"}, *rows[1:]],
        "another order": rows[::-1],
        "one record less": rows[:-1],
    }[change]
    tiny.write_rows(changed)
    with pytest.raises(Blocked) as caught:
        tiny.flow("2").run()
    assert "the series began with other records" in caught.value.what
    assert len(tiny.charges()) == 1
    tiny.write_rows(rows)
    tiny.flow("2").run()


def test_a_series_has_one_policy(tmp_path: Path) -> None:
    tiny = make_parted(tmp_path / "site", cap="epsilon: 9, definition: idp, scope: column")
    tiny.flow("1").run()
    tiny.write_policy(**{**ONE_BY_ONE, "protect": IDP.replace("k: 5", "k: 6")})
    with pytest.raises(Blocked) as caught:
        tiny.flow("2").run()
    assert "the series began under another policy" in caught.value.what
    assert len(tiny.charges()) == 1


@pytest.mark.parametrize("damage", ["removed", "replaced"])
def test_without_its_secret_a_series_cannot_go_on(tmp_path: Path, damage: str) -> None:
    """A new one would put people into other parts, some of them twice."""
    tiny = make_parted(tmp_path / "site")
    tiny.flow("1").run()
    file = tiny.site.vault / "secrets" / "series.people"
    assert file.stat().st_mode & 0o777 == 0o600
    if damage == "removed":
        file.unlink()
    else:
        file.write_bytes(b"x" * SECRET_BYTES)
    with pytest.raises(SecretLost) as caught:
        tiny.flow("2").run()
    assert "tells the parts of this series apart" in caught.value.what
    assert len(tiny.charges()) == 1


def test_when_every_part_is_published_nothing_can_be_made_anew(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """Until then a part may be made once more; then the secret is forgotten, and a correction is refused before it is opened."""
    rows, cap = make_rows(61, releases=("1",)), "epsilon: 9, definition: idp, scope: column"
    tiny = make_trusted_site(tmp_path / "site", keys, rows=rows, cap=cap, **{**ONE_BY_ONE, "protect": IDP})
    for release in ("1", "2", "3"):
        tiny.flow(release).run()
    revise_release(tiny.site, "people", "3", why="the reviewers want another")
    tiny.flow("3").run()
    secret = tiny.site.vault / "secrets" / "series.people"
    for name in (ReleaseId("people", "1"), ReleaseId("people", "2"), ReleaseId("people", "3", 2)):
        assert secret.exists()
        review(tiny, dict(keys), "ben", "cleo", release=name)
        publish(tiny.site, name, key=keys["robot"])
    assert not secret.exists()
    with pytest.raises(SecretLost) as caught:
        revise_release(tiny.site, "people", "2", why="a wrong unit")
    assert "forgotten when every part was published" in caught.value.what
    assert ReleaseId("people", "2", 2) not in tiny.statuses()
    assert len(tiny.charges()) == 4


BOUNDARIES = (
    "the loss is charged",
    "the secret is noted",
    "the series is noted",
    "the clusters are made, not yet committed",
    "the clusters are committed",
    "the noise is drawn, not yet committed",
    "the masked table is committed",
)


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_an_attempt_that_stops_anywhere_is_finished_by_the_next(tmp_path: Path, boundary: str) -> None:
    """The first part is charged once, its noise drawn once, and the next part has nobody of it."""
    tiny = make_parted(tmp_path / "site")

    def stop(passed: str) -> None:
        if passed == boundary:
            raise Stopped

    with pytest.raises(Stopped):
        open_release(tiny.site, "people", "1", probe=Probe(reached=stop)).run()
    tiny.flow("1").run()
    tiny.flow("2").run()
    members = [set(tiny.tables(release)["masked"]["release_pipeline_record"].to_pylist()) for release in ("1", "2")]
    assert not members[0] & members[1]
    assert [charge.loss.idp_column for charge in tiny.charges()] == [2 * NANO, 0]
    assert tiny.states("1").count("drawn") == 1


def test_a_cap_of_releases_counts_a_series_of_parts_once(tmp_path: Path) -> None:
    """Nobody is in two parts, so that a cap of one release has room for all of them; for no second series."""
    protect = "{method: mdav, k: 5, partitions: 3, publish_parts: one per release}"
    tiny = make_parted(tmp_path / "site", protect, cap="releases: 1")
    for release in ("1", "2", "3"):
        assert tiny.flow(release).run().facts["population_spent"] == "1 of 1 (releases)"
    tiny.write_policy(**{**ONE_BY_ONE, "policy": "again", "protect": protect})
    with pytest.raises(OverCap):
        tiny.flow("1", "again").run()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"protect": "{method: idp-cbls, epsilon: 1, k: 5, publish_parts: one per release}"}, "there are none. Add partitions"),
        ({"protect": DP.replace("partitions: 3", "partitions: 1")}, "The least allowed is 2."),
        ({"protect": IDP, "gates": "{min_rows: 29}"}, "min_rows is below 30, twice k in each of 3 parts."),
        ({"protect": IDP, "gates": "{}"}, "3 parts need gates.min_rows"),
        ({"protect": IDP, "releases": '["1", "2"]'}, "there are 3 parts, and one release is needed for each."),
        ({"protect": IDP, "releases": "once"}, "there are 3 parts, and one release is needed for each."),
        ({"protect": IDP, "releases": '{every: month, cron: "0 6 1 * *"}'}, "there are 3 parts"),
        ({"protect": IDP, "source": "{path: people.csv, release_column: year}", "drop": "[name]"}, "one and the same table"),
        ({"protect": IDP.replace("release}", "release, amplification: sampling}")}, "can show who is in a part"),
        ({"protect": AMPLIFIED.replace("hilbert", "hilbert, scope: centroid")}, "can show who is in a part"),
        ({"protect": AMPLIFIED.replace("hilbert", "hilbert, statistic: trimmed")}, "can show who is in a part"),
        ({"protect": AMPLIFIED.replace(", publish_parts: one per release", "")}, "all parts are in one release"),
        (
            {
                "protect": AMPLIFIED.replace("dp-mdav", "laplace").replace("k: 5, order: hilbert, ", ""),
                "columns": KEPT,
            },
            "the columns that are kept show who is in a part",
        ),
        ({"protect": AMPLIFIED, "person": "{column: person, records_per_release: 2}"}, "proved for one record per person"),
        ({"protect": IDP.replace("one per release", "all")}, "publish_parts"),
    ],
)
def test_what_a_policy_of_parts_may_not_ask_for(tmp_path: Path, parts: Mapping[str, str], words: str) -> None:
    tiny = make_parted(tmp_path / "site", **{"protect": IDP, **parts})
    with pytest.raises(PolicyInvalid) as caught:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert words in "\n".join(caught.value.problems)


def test_check_and_diff_tell_of_parts(tmp_path: Path) -> None:
    tiny = make_parted(tmp_path / "site")
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    content = " ".join(" ".join(describe_plan(make_plan(policy))).split())
    assert "3 random parts of 20 to 20 rows by the number of the row, each masked on its own" in content
    assert "2 with the first part, and nothing with the 2 others" in content
    waves = {"source": "{path: people.csv, release_column: year}", "drop": "[name]"}
    tiny.write_policy(**{**ONE_BY_ONE, **waves, "protect": IDP.replace(", partitions: 3, publish_parts: one per release", "")})
    other = load_policy(tiny.home / "policies" / "people.yaml")
    lines = list(describe_diff(other, policy))
    assert "lowers the series from epsilon 6 to 2" in lines
    assert "protect.partitions: nothing -> 3" in lines


def test_mask_makes_one_part_of_a_series(tmp_path: Path) -> None:
    """The tool for scripts: a part drawn at random, as large as that of the release."""
    tiny = make_parted(tmp_path / "site")
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    done = mask_file(policy, tiny.home / "people.csv", tmp_path / "out.csv", release="2")
    assert done.records in (20, 21)


def test_a_part_is_published_and_verified(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """Two parts with their cards, both bounds of amplification on them; the dossier of the later one adds up."""
    content = {**ONE_BY_ONE, "protect": AMPLIFIED}
    tiny = make_trusted_site(tmp_path / "site", keys, rows=make_rows(61, releases=("1",)), cap=IN_DP, **content)
    for release in ("1", "2"):
        tiny.flow(release).run()
        name = ReleaseId("people", release)
        review(tiny, dict(keys), "ben", "cleo", release=name)
        package = publish(tiny.site, name, key=keys["robot"])
        card = json.loads((package / "privacy-card.json").read_text())
        jsonschema.validate(card, CARD_SCHEMA)
        words = " ".join(card["parts"])
        assert f"part {release} of 3" in words
        assert "PRS20 Theorem 2" in words
        assert card["rows"]["in"] == card["rows"]["out"] in (20, 21)
        file = tmp_path / f"{release}.zip"
        write_dossier(tiny.site, name, file)
        for path in (package, file):
            assert not failures_of(verify(path, tiny.site.officer or ""))
    spent = amplified(2 * NANO, Fraction(41, 61)) / NANO
    assert card["series"]["epsilon"] == f"{spent:.9f}".rstrip("0")


def test_a_dossier_counts_a_series_of_mdav_once(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """The second part under a cap of one release: the verifier adds up what the events say."""
    protect = "{method: mdav, k: 5, partitions: 3, publish_parts: one per release}"
    rows = make_rows(61, releases=("1",))
    tiny = make_trusted_site(tmp_path / "site", keys, rows=rows, cap="releases: 1", **{**ONE_BY_ONE, "protect": protect})
    for release in ("1", "2"):
        tiny.flow(release).run()
    name = ReleaseId("people", "2")
    review(tiny, dict(keys), "ben", "cleo", release=name)
    publish(tiny.site, name, key=keys["robot"])
    write_dossier(tiny.site, name, tmp_path / "2.zip")
    findings = list(verify(tmp_path / "2.zip", tiny.site.officer or ""))
    assert not failures_of(findings)
    assert any("2 charges to folk add up to 1 of 1 (releases)" in finding.words for finding in findings)


def test_a_copy_of_the_site_goes_on_with_the_series(tmp_path: Path) -> None:
    """The secret lies in the vault, so that a site that was moved draws the same parts."""
    tiny = make_parted(tmp_path / "site")
    tiny.flow("1").run()
    shutil.copytree(tiny.home, tmp_path / "copy")
    copy = TinySite(tmp_path / "copy")
    tiny.flow("2").run()
    copy.flow("2").run()
    one, other = (site.tables("2")["parts"] for site in (tiny, copy))
    assert one == other
