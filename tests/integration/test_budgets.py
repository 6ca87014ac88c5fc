"""Budgets follow people, renamed, split or merged: no file that is written anew gives them a fresh cap."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from release_pipeline.apps.cli import main as command
from release_pipeline.errors import Blocked, OverCap, PolicyInvalid
from release_pipeline.ledger.account import describe_exposure, describe_ledger, read_ledgers
from release_pipeline.ledger.exposure import describe_overlap, read_overlap, warn_by_name
from release_pipeline.ledger.policies import check_lineage, read_caps
from release_pipeline.pipeline.check import check_policy
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.mask import mask
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.publish.verification import verify
from release_pipeline.store.ledger import VaultDamaged
from tests.integration.publishing import failures_of
from tests.integration.sites import Row, TinySite, make_rows, make_site

IDP = "definition: idp, scope: column"
ROOMY = f"cap: {{epsilon: 4, {IDP}}}"
NO_GUARD = "{min_rows: 20, differencing_below: 0}"


def declare(tiny: TinySite, text: str) -> None:
    """Write populations.yaml."""
    (tiny.home / "populations.yaml").write_text(text)


def others(rows: list[Row], prefix: str) -> list[Row]:
    """The records of other people."""
    return [{**row, "person": f"{prefix}{row['person']}"} for row in rows]


def spent(tiny: TinySite) -> dict[str, str]:
    """What the ledger says is spent, by population."""
    return {ledger.account.population: ledger.account.spent for ledger in read_ledgers(tiny.site)}


@pytest.fixture(scope="module")
def charged_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose release 1 was charged 2 of 4 to folk; 2 of the release are others than 1."""
    rows = [*make_rows(releases=["1"]), *others(make_rows(releases=["2"]), "q")]
    tiny = make_site(tmp_path_factory.mktemp("budgets") / "site", rows=rows, gates=NO_GUARD)
    declare(tiny, f"folk: {{{ROOMY}}}\n")
    tiny.charge("1")
    return tiny.home


@pytest.fixture
def tiny(charged_once: Path, tmp_path: Path) -> TinySite:
    """A copy of it."""
    return TinySite(Path(shutil.copytree(charged_once, tmp_path / "site")))


def test_a_renamed_population_has_no_fresh_cap(tiny: TinySite) -> None:
    """The attack: another name in policy and populations.yaml. Whatever the file says, nothing is charged anew."""
    tiny.write_policy(population="adults", gates=NO_GUARD)
    declare(tiny, f"adults: {{{ROOMY}}}\n")
    for attempt in (
        lambda: ingest(tiny.flow("2")),
        lambda: revise_release(tiny.site, "people", "1", why="renamed"),
        lambda: check_policy(tiny.home / "policies" / "people.yaml", rows=None, home=None).headroom,
    ):
        with pytest.raises(PolicyInvalid, match=r"'folk' was charged and is not declared any more.*was: folk"):
            attempt()
    assert [ledger.account.spent for ledger in read_ledgers(tiny.site)] == ["0", "2"], "what was spent is hidden"
    [lines] = ["\n".join(describe_ledger(ledger)) for ledger in read_ledgers(tiny.site, "folk")]
    assert "forgotten" in lines
    assert "cap 4 (epsilon, iDP, column)" in lines
    declare(tiny, f"adults: {{{ROOMY}}}\nfolk: {{{ROOMY}}}\n")
    with pytest.raises(Blocked, match=r"people/1/r1 was charged to the population 'folk', and a correction is about the same"):
        revise_release(tiny.site, "people", "1", why="renamed")
    assert len(tiny.charges()) == 1


def test_a_signed_rename_carries_what_was_spent(tiny: TinySite) -> None:
    """The revision and the next release count with what was charged before; the old name is closed; and it stays so when the
    file says no more of it."""
    tiny.write_policy(population="adults", gates=NO_GUARD)
    declare(tiny, f"adults: {{{ROOMY}, was: folk}}\n")
    revise_release(tiny.site, "people", "1", why="renamed")
    tiny.charge("1")
    assert spent(tiny) == {"adults": "4", "folk": "2"}
    with pytest.raises(OverCap, match=r"adults has 0 left of 4"):
        ingest(tiny.flow("2"))
    [ledger] = read_ledgers(tiny.site, "adults")
    assert "  without what they were exposed to in folk: `ledger --overlap` adds that up" in describe_exposure(tiny.site, ledger)
    assert [charge.carries for charge in tiny.charges()] == [(), ("folk",)]
    declare(tiny, f"adults: {{{ROOMY}}}\nfolk: {{{ROOMY}}}\n")
    with pytest.raises(PolicyInvalid, match="'adults' no longer carries what 'folk' was charged"):
        ingest(tiny.flow("2"))
    tiny.write_policy(gates=NO_GUARD)
    declare(tiny, f"adults: {{{ROOMY}, was: folk}}\nfolk: {{cap: {{epsilon: 99, {IDP}}}}}\n")
    with pytest.raises(Blocked, match="'folk' is carried on by adults"):
        ingest(tiny.flow("2"))


@pytest.mark.slow
def test_an_older_registry_is_found_out_by_the_vaults_of_those_before(tiny: TinySite) -> None:
    """The attack: registry and head put back, the young vault of the population that carries another taken away. The vault of
    that other one is as it was, and knows a release that the registry does not."""
    older = {file: file.read_bytes() for file in (tiny.site.registry, tiny.site.vault / "registry.head")}
    tiny.charge("2")
    declare(tiny, f"folk: {{{ROOMY}}}\nadults: {{{ROOMY.replace('4', '6')}, was: folk}}\n")
    tiny.write_policy(population="adults", gates=NO_GUARD)
    for file, content in older.items():
        file.write_bytes(content)
    with pytest.raises(VaultDamaged, match="knows of the charged release people/2/r1, and the registry does not"):
        ingest(tiny.flow("2"))
    assert [str(each.id) for each in tiny.charges()] == ["people/1/r1"]
    words = "vault/folk.duckdb: people/2/r1: it was charged, and the registry does not know that: an older registry was put back"
    assert words in failures_of(verify(tiny.home))
    shutil.copy(tiny.site.vault / "folk.duckdb", tiny.site.vault / "strangers.duckdb")
    assert any(words.startswith("vault/strangers.duckdb: people/1/r1") for words in failures_of(verify(tiny.home)))


@pytest.mark.slow
def test_an_older_vault_of_those_before_is_found_out(tiny: TinySite) -> None:
    """The other direction: the registry knows a drawn release, and the vault of the population before does not."""
    mask(tiny.flow("1"))
    declare(tiny, f"folk: {{{ROOMY}}}\nadults: {{{ROOMY.replace('4', '6')}, was: folk}}\n")
    tiny.write_policy(population="adults", gates=NO_GUARD)
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb")) as vault:
        vault.execute("DELETE FROM charged")
    with pytest.raises(VaultDamaged, match="does not know of people/1/r1"):
        ingest(tiny.flow("2"))


@pytest.mark.slow
def test_a_vault_of_those_before_that_forgot_with_the_registry_is_found_out(tiny: TinySite) -> None:
    """Registry and head put back, and in the vault of the population before the release that they do not know deleted."""
    mask(tiny.flow("1"))
    older = {file: file.read_bytes() for file in (tiny.site.registry, tiny.site.vault / "registry.head")}
    tiny.charge("2")
    tiny.write_policy(population="adults", gates=NO_GUARD)
    for file, content in older.items():
        file.write_bytes(content)
    declare(tiny, f"folk: {{{ROOMY}}}\nadults: {{{ROOMY.replace('4', '6')}, was: folk}}\n")
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb")) as vault:
        vault.execute("DELETE FROM charged WHERE release = 'people/2/r1'")
    with pytest.raises(VaultDamaged, match="which releases were charged is not what was written"):
        ingest(tiny.flow("2"))
    assert len(tiny.charges()) == 1


def test_a_split_carries_everything_into_each_and_other_units_count_anew(tiny: TinySite) -> None:
    """Both have what the people were charged before; a cap in releases counts the releases."""
    declare(tiny, f"men: {{{ROOMY}, was: folk}}\nwomen: {{cap: {{releases: 3}}, was: folk}}\n")
    assert spent(tiny) == {"men": "2", "women": "1", "folk": "2"}
    declare(tiny, f"men: {{{ROOMY}, was: folk}}\nwomen: {{{ROOMY}, was: folk}}\nall: {{{ROOMY}, from: [men, women]}}\n")
    assert spent(tiny)["all"] == "2", "what both come from was charged once"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"folk: {{{ROOMY}, was: poeple}}\n", "'folk' comes from 'poeple', which is not declared and was never charged"),
        (f"adults: {{{ROOMY}}}\n", "the population 'folk' was charged and is not declared any more"),
    ],
)
def test_what_the_registry_knows_is_asked(tiny: TinySite, text: str, words: str) -> None:
    """Unknown ancestors and forgotten populations."""
    declare(tiny, text)
    with pytest.raises(PolicyInvalid, match=words):
        check_lineage(read_caps(tiny.site), tiny.charges())


@pytest.fixture
def two(tmp_path: Path) -> TinySite:
    """Two populations by two policies; 20 people of 60 are in both."""
    tiny = make_site(tmp_path / "site", rows=make_rows(releases=["1"]), gates=NO_GUARD)
    tiny.write_policy(policy="health", population="sick", gates=NO_GUARD, source="{path: sick.csv, release_column: year}")
    rows = make_rows(releases=["1"])
    tiny.write_rows([*rows[:20], *others(rows[20:], "s")], name="sick.csv")
    declare(tiny, f"folk: {{{ROOMY}}}\nsick: {{{ROOMY}}}\n")
    tiny.charge("1")
    tiny.charge("1", "health")
    return tiny


def test_overlap_counts_who_is_in_two(two: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: 20 in both, of whom each was charged twice; the command says so, and that it is confidential."""
    overlap = read_overlap(two.site)
    assert overlap.populations == [("folk", "sick", 20)]
    assert overlap.policies == [("folk", "people", "sick", "health", 20)]
    assert overlap.worst["idp_column"] == 4 * 10**9
    assert overlap.worst["dp_column"] is None
    assert (overlap.unknown, dict(overlap.identifiers)) == ((), {"person": ("folk", "sick")})
    assert command(["ledger", "--overlap", "--home", str(two.home)]) == 0
    printed = capsys.readouterr().out
    assert "\n".join(describe_overlap(overlap)) in printed
    assert "folk and sick: 20 people in both" in printed
    assert "confidential" in printed
    assert command(["ledger", "--overlap", "--json", "--home", str(two.home)]) == 0
    assert '"people": 20' in capsys.readouterr().out


def test_the_same_people_elsewhere_are_told_of(two: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """By check and before an approval: which populations, and how many people to the next ten. It is no error."""
    words = "Up to 20 people of folk are in sick too. The ledger adds up each population separately."
    file = two.home / "policies" / "people.yaml"
    assert command(["check", str(file)]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert command(["check", str(file), "--no-source", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same_people"] == [words]
    assert command(["approve", str(file), "--key", str(two.home / "nobody"), "--home", str(two.home)]) == 2
    assert f"warning: {words}\n" in capsys.readouterr().err
    assert warn_by_name(two.site, "health") == [words.replace("folk are in sick", "sick are in folk")]
    (two.home / "site.yaml").write_text("looks: forbidden\n")
    assert warn_by_name(two.site, "people") == [words.replace("Up to 20", "Some")]
    declare(two, f"all: {{{ROOMY}, from: [folk, sick]}}\nfolk: {{{ROOMY}}}\nsick: {{{ROOMY}}}\n")
    two.write_policy(population="all", gates=NO_GUARD)
    assert warn_by_name(two.site, "people") == []  # which counts both
