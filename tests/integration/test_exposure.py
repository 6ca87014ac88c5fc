"""Who was exposed to how much, person by person, and the guard against two releases that differ by too few people."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from release_pipeline.errors import GateFailed
from release_pipeline.ledger.account import read_ledgers
from release_pipeline.ledger.exposure import Exposure, read_exposure
from release_pipeline.operate.overview import describe_status
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.in_place import list_person_keys
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.opening import revise_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.validate import validate
from release_pipeline.policy.plans.loss import Account
from release_pipeline.store.files import Probe
from release_pipeline.store.site import Site
from tests.integration.sites import Row, TinySite, make_rows, make_site

EPSILON = 2 * 10**9  # of one release of either site, in nano-epsilon
SERIES = '["1", "2", "3"]'
CANARY = "canary-of-a-person"


def charge(flow: StageContext) -> None:
    """Bring a release as far as its charge and its clusters."""
    ingest(flow)
    assert not validate(flow).refusal
    microaggregate(flow)


def people_rows(people: Iterable[int], release: str = "2") -> list[Row]:
    """The records of these people in one release."""
    numbers = list(people)
    rows = make_rows(max(numbers) + 1, releases=[release])
    return [rows[number] for number in numbers]


def account_of(tiny: TinySite) -> Account:
    """The account of the only population."""
    [ledger] = read_ledgers(tiny.site, "folk")
    return ledger.account


def hashes(vault: Path) -> dict[str, list[bytes]]:
    """The persons that a vault keeps of each release, in its order."""
    found: dict[str, list[bytes]] = {}
    with duckdb.connect(str(vault), read_only=True) as connection:
        for release, person in connection.execute("SELECT release, person FROM exposed").fetchall():
            found.setdefault(release, []).append(person)
    return found


def hash_of(site: Site, population: str, person: str) -> bytes:
    """The keyed hash of a person: AES of Python's own SHA-256 behind a block with the key."""
    keys = list_person_keys(site, population, "person")
    block = hashlib.sha256(keys.first.ljust(64, b"\0") + person.encode()).digest()[:16]
    return Cipher(algorithms.AES(keys.population), modes.CBC(bytes(16))).encryptor().update(block)


# the RAND Health Insurance Experiment: people come and go


# the guard on small sites


@pytest.fixture(scope="module")
def charged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose release 1 is charged, with the people 0 to 59; releases 2 and 3 are still to come."""
    tiny = make_site(tmp_path_factory.mktemp("charged") / "site", releases=SERIES)
    charge(tiny.flow())
    return tiny.home


@pytest.fixture
def tiny(charged: Path, tmp_path: Path) -> TinySite:
    """A copy of that site."""
    shutil.copytree(charged, tmp_path / "site")
    return TinySite(tmp_path / "site")


def held_words(release: str, *verbs: str, below: int = 10) -> str:
    """What the guard says."""
    return " ".join(f"since {release} fewer than {below} people {verb}, and not none." for verb in verbs)


@pytest.mark.parametrize(
    ("people", "verbs"),
    [
        (range(62), ["joined"]),
        (range(2, 60), ["left"]),
        (range(9, 69), ["joined", "left"]),
        ([*range(59), *range(80, 100)], ["left"]),
    ],
    ids=["two joiners", "two leavers", "nine of both", "one leaver among twenty joiners"],
)
def test_guard_holds_a_release_before_any_charge(tiny: TinySite, people: Iterable[int], verbs: list[str]) -> None:
    """Fewer than ten joined or left, and not none: refused with the reason in `status` and without a count of people, before a
    charge, a secret or an exposure; the release before it stands as it was."""
    tiny.write_rows(people_rows(people))
    before = tiny.status("1")
    with pytest.raises(GateFailed) as held:
        run_release(tiny.flow("2"))
    assert (held.value.what, held.value.where) == (held_words("people/1/r1", *verbs), "people/2/r1")
    assert [known.id.release for known in tiny.charges()] == ["1"]
    assert tiny.states("2") == ["opened", "blocked"]
    assert tiny.status("1") == before
    assert not list((tiny.site.vault / "secrets").glob("people~2*"))
    assert hashes(tiny.site.vault / "folk.duckdb").keys() == {"people/1/r1"}
    assert not {"membership", "statistics", "masked"} & tiny.tables("2").keys()
    reason = tiny.status("2").reason
    assert reason == f"{held_words('people/1/r1', *verbs)} {held.value.remedy}"
    assert set(re.findall(r"\d+", re.sub(r"people/\d/r\d", "", f"{held.value} {reason}"))) == {"10"}
    [line] = [line for line in describe_status(tiny.site) if line.startswith("people/2/r1")]
    assert line.split()[1] == "blocked"
    assert line.endswith(reason)


@pytest.mark.parametrize(
    ("people", "gates"),
    [
        (range(70), ""),
        (range(10, 60), ""),
        (range(60), ""),
        (range(100, 160), ""),
        (range(62), "differencing_below: 0"),
        (range(1, 61), "differencing_below: 1"),
    ],
    ids=["ten joiners", "ten leavers", "the same", "others", "off by 0", "off by 1"],
)
def test_guard_lets_pass(charged: Path, tmp_path: Path, people: Iterable[int], gates: str) -> None:
    """Exactly as many as the policy asks for, or nobody at all, or everybody; and whatever where it is switched off."""
    shutil.copytree(charged, tmp_path / "site")
    tiny = TinySite(tmp_path / "site")
    if gates:
        tiny.write_policy(releases=SERIES, gates=f"{{min_rows: 20, {gates}}}")
    tiny.write_rows([{**row, "person": f"  {row['person']} "} for row in people_rows(people)])
    charge(tiny.flow("2"))
    assert [known.id.release for known in tiny.charges()] == ["1", "2"]


def test_a_release_is_compared_with_every_earlier_one(tiny: TinySite) -> None:
    """Far from the one before it and two people from the one before that: held, with the name of that one."""
    tiny.write_rows([*people_rows(range(80)), *people_rows(range(62), "3")])
    charge(tiny.flow("2"))
    with pytest.raises(GateFailed) as held:
        run_release(tiny.flow("3"))
    assert held.value.what == held_words("people/1/r1", "joined")
    assert [known.id.release for known in tiny.charges()] == ["1", "2"]


def test_a_release_is_compared_with_later_ones_that_came_first(tiny: TinySite) -> None:
    """Release 3 was charged before release 2: whoever has both could subtract them in either order."""
    tiny.write_rows([*people_rows(range(30, 110)), *people_rows(range(80), "3")])
    charge(tiny.flow("3"))
    tiny.write_rows([*people_rows([*range(20), *range(23, 81)]), *people_rows(range(80), "3")])
    with pytest.raises(GateFailed) as held:
        run_release(tiny.flow("2"))
    assert held.value.findings == (
        held_words("people/1/r1", "left"),
        held_words("people/3/r1", "joined"),
        held_words("people/3/r1", "left"),
    )


# an attempt that was broken off


class Stopped(Exception):
    """The process ends here."""


@pytest.fixture
def broken(tmp_path: Path) -> TinySite:
    """A site whose release 1 was charged, and stopped before its clusters; release 2 with two people more was then charged."""
    tiny = make_site(tmp_path / "site", rows=[*people_rows(range(60), "1"), *people_rows(range(62))])

    def stop(boundary: str) -> None:
        if boundary == "the loss is charged":
            raise Stopped

    with pytest.raises(Stopped):
        charge(dataclasses.replace(tiny.flow(), probe=Probe(reached=stop)))
    assert [known.id.release for known in tiny.charges()] == ["1"]
    return tiny


def test_two_releases_that_differ_by_two_never_both_go_on_to_noise(broken: TinySite) -> None:
    """The second is held, or else the first when it goes on: whichever it is, clusters are made for one of them."""
    for release in ("2", "1", "2"):
        with suppress(GateFailed):
            charge(broken.flow(release))
    made = [release for release in ("1", "2") if "membership" in broken.tables(release)]
    assert len(made) == 1


# keyed hashes, and nobody's name


def test_persons_are_hashed_with_the_key_of_site_and_population(charged: Path, tmp_path: Path) -> None:
    """The same people at two sites, and in two populations of one: no hash in common; within one each once, by Python's HMAC."""
    one, two = TinySite(charged), make_site(tmp_path / "two", policy="others", population="strangers")
    (two.home / "populations.yaml").write_text("".join(f"{name}: {{cap: {{releases: 9}}}}\n" for name in ("folk", "strangers")))
    two.write_policy()
    charge(two.flow("1"))
    charge(two.flow("1", "others"))
    found = [
        hashes(one.site.vault / "folk.duckdb")["people/1/r1"],
        hashes(two.site.vault / "folk.duckdb")["people/1/r1"],
        hashes(two.site.vault / "strangers.duckdb")["others/1/r1"],
    ]
    persons = {row["person"] for row in make_rows(releases=["1"])}
    keys = [(one.site, "folk"), (two.site, "folk"), (two.site, "strangers")]
    assert [set(people) for people in found] == [{hash_of(*key, person) for person in persons} for key in keys]
    assert [len(people) for people in found] == [60, 60, 60]
    assert len(set().union(*found)) == 180


def test_a_person_with_several_records_is_one_person(tmp_path: Path) -> None:
    """Kept once, and exposed to what all the records of a release cost together."""
    rows = people_rows(range(60), "1")
    more = [{**row, "income": "500", "rent": "50"} for row in rows[:20]]
    parts = {"person": "{column: person, records_per_release: 2}", "protect": "{method: dp-um, epsilon: 2, k: 5}"}
    tiny = make_site(tmp_path / "site", rows=[*rows, *more], **parts)
    charge(tiny.flow())
    found = hashes(tiny.site.vault / "folk.duckdb")["people/1/r1"]
    assert found == sorted({hash_of(tiny.site, "folk", row["person"]) for row in rows})
    assert read_exposure(tiny.site, account_of(tiny)) == Exposure({2 * EPSILON: 60})


def canary_site(home: Path) -> TinySite:
    """A site whose people are canaries."""
    rows = [{**row, "person": f"{CANARY}-{i:06}"} for i, row in enumerate(make_rows(300, releases=["1"]))]
    return make_site(home, rows=rows)


def tables_with_canary(tiny: TinySite) -> list[str]:
    """The tables of the vault with a canary in any cell."""
    found: list[str] = []
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb"), read_only=True) as vault:
        for workspace, name in vault.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall():
            if CANARY in repr(vault.execute(f'FROM "{workspace}"."{name}"').fetchall()):
                found.append(name)
    return found


def files_with_canary(tiny: TinySite) -> list[str]:
    """The files outside the source and the vault's databases that have a canary's bytes."""
    files = [file for file in tiny.home.rglob("*") if file.is_file() and file.suffix != ".csv"]
    return [file.name for file in files if file.name != "folk.duckdb" and CANARY.encode() in file.read_bytes()]


def test_nobody_is_in_the_vault_by_name_after_validation(tmp_path: Path) -> None:
    """The plain identifiers are in a table while the checks need them (so the canary can be seen), and in none afterwards.
    (What was dropped stays in the file's free pages until `prune` writes it anew: test_retention.py.)"""
    tiny = canary_site(tmp_path / "site")
    flow = tiny.flow()
    ingest(flow)
    assert tables_with_canary(tiny) == ["raw"]
    assert not validate(flow).refusal
    assert tables_with_canary(tiny) == []


def test_nobody_is_in_any_file_by_name_at_the_end(tmp_path: Path) -> None:
    """Registry, candidate, notes: a finished release has no plain identifier in a table, or outside the vault's database."""
    tiny = canary_site(tmp_path / "site")
    run_release(tiny.flow())
    assert (tables_with_canary(tiny), files_with_canary(tiny)) == ([], [])


# sums over releases that differ


def test_exposure_adds_what_each_release_cost(charged: Path, tmp_path: Path) -> None:
    """Releases of another epsilon, people who come and go, a revision that was given up before its noise: exactly the sum of the
    charges that each person is in; under a cap of releases, how many; what is infinite in the cap's unit is infinity."""
    shutil.copytree(charged, tmp_path / "site")
    tiny = TinySite(tmp_path / "site")
    tiny.write_policy(releases=SERIES, protect="{method: idp-cbls, epsilon: 0.700000001, k: 5}")
    tiny.write_rows([*people_rows(range(30, 90)), *people_rows(range(10, 60), "3")])
    charge(tiny.flow("2"))
    charge(tiny.flow("3"))
    revise_release(tiny.site, "people", "3", why="given up")
    charge(tiny.flow("3"))
    less = 700_000_001
    parts = {"1": (range(60), EPSILON), "2": (range(30, 90), less), "3": (range(10, 60), less), "3/r2": (range(10, 60), less)}
    by_hand = Counter(sum(cost for people, cost in parts.values() if person in people) for person in range(90))
    assert read_exposure(tiny.site, account_of(tiny)).people == by_hand
    assert read_exposure(tiny.site, account_of(tiny)).worst == EPSILON + 3 * less
    tiny.write_cap("releases: 9")
    times = Counter(sum(person in people for people, _ in parts.values()) for person in range(90))
    assert read_exposure(tiny.site, account_of(tiny)).people == times
    tiny.write_cap("epsilon: 9, definition: dp, scope: column")
    assert read_exposure(tiny.site, account_of(tiny)) == Exposure({None: 90})
    assert read_exposure(tiny.site, account_of(tiny)).worst is None


def test_persons_are_one_in_several_populations_only_by_one_column(tiny: TinySite) -> None:
    """Names of two columns are two identifiers, which nobody can compare; within a population the name is none."""
    one, other, elsewhere = (
        list_person_keys(tiny.site, *named) for named in (("folk", "person"), ("folk", "name"), ("town", "person"))
    )
    assert one.everywhere == elsewhere.everywhere != other.everywhere
    assert one.population == other.population != elsewhere.population
    assert len({one.first, one.population, one.everywhere}) == 3
