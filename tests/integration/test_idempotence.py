"""Attacks on "charged once, drawn once": everything a release rests on is changed between two attempts, or put back.

Each is refused or found out in words, or changes nothing: the candidate then has the bits that it would have had.
"""

from __future__ import annotations

import hashlib
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pytest

from release_pipeline.errors import Blocked, NotPassed, OverCap, ReleasePipelineError, SecretLost, WrongUsage
from release_pipeline.ledger.account import read_ledgers
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline import validate as validate_stage
from release_pipeline.pipeline.candidate import freeze_candidate
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.mask import mask
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.opening import open_release, revise_release
from release_pipeline.pipeline.release import STAGES, run_release
from release_pipeline.pipeline.reservation import Reservation, reserve
from release_pipeline.pipeline.suppress import suppress
from release_pipeline.pipeline.validate import validate
from release_pipeline.rows.checks import Check
from release_pipeline.rows.validate import judge_suite
from release_pipeline.store.files import PLAIN, Probe
from release_pipeline.store.registry import ReleaseId
from tests.integration.sites import TinySite, make_rows, make_site

SECRET, OTHER = b"s" * SECRET_BYTES, b"o" * SECRET_BYTES
R2 = r"Only people/1/r2 can replace it.*release-pipeline run people --release 1 --revise 'REASON'"
IDP = "definition: idp, scope: column"
CHEAPER = "{method: idp-cbls, epsilon: 1, k: 5}"


def stop(boundary: str | None, secret: bytes = SECRET) -> Probe:
    """A probe that gives this secret and ends the attempt at this boundary."""

    def passed(name: str) -> None:
        if name == boundary:
            raise KeyboardInterrupt

    return Probe(reached=passed, new_secret=lambda: secret)


def flow_of(tiny: TinySite, release: str = "1", *, at: str | None = None, secret: bytes = SECRET) -> StageContext:
    """The flow of a release, with this secret, that ends at this boundary."""
    return open_release(tiny.site, "people", release, probe=stop(at, secret))


def run_until(tiny: TinySite, boundary: str, secret: bytes = SECRET) -> None:
    """Release 1, up to this boundary."""
    with pytest.raises(KeyboardInterrupt):
        run_release(flow_of(tiny, at=boundary, secret=secret))


def finish(tiny: TinySite) -> str:
    """Run release 1 to its candidate; another secret would be given to it, if it still asked for one."""
    return run_release(flow_of(tiny, secret=OTHER)).facts["candidate_hash"]


def copy_of(tiny: TinySite, home: Path) -> TinySite:
    """The same site elsewhere."""
    shutil.copytree(tiny.home, home)
    return TinySite(home)


def secret_of(tiny: TinySite, revision: int = 1) -> Path:
    """Where the secret of release 1 is while it is needed."""
    return tiny.site.vault / "secrets" / f"people~1~r{revision}"


def candidate_of(tiny: TinySite, revision: int = 1) -> dict[str, str]:
    """The hash of every file of a candidate; none where there is none."""
    folder = tiny.site.candidate(f"people/1/r{revision}")
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*")}


def edit_vault(tiny: TinySite, text: str) -> None:
    """Change the room of release 1 by hand."""
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb")) as connection:
        connection.execute(f'USE "{ReleaseId("people", "1").workspace}"')
        connection.execute(text)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site where release 2 is charged and nothing has been done for release 1; to be copied."""
    tiny = make_site(tmp_path_factory.mktemp("untouched") / "site")
    with tiny.site.open_registry():  # before the vault has anything, and then the vault before a charge: as a run does
        pass
    duckdb.connect(str(tiny.site.vault / "folk.duckdb")).close()
    reserve(tiny.site, Reservation(tiny.site.policy("people"), ReleaseId("people", "2"), 60, "source"), PLAIN)
    (tiny.site.vault / "secrets" / "people~2~r1").unlink()  # what is done to the secrets below is done to that of release 1
    return tiny


@pytest.fixture(scope="module")
def started(untouched: TinySite, tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """Release 1 was charged and its clusters are stored; to be copied."""
    tiny = copy_of(untouched, tmp_path_factory.mktemp("started") / "site")
    run_until(tiny, "the clusters are committed")
    return tiny


@pytest.fixture(scope="module")
def ended(started: TinySite, tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """Release 1 is a candidate; to be copied."""
    tiny = copy_of(started, tmp_path_factory.mktemp("ended") / "site")
    finish(tiny)
    return tiny


@pytest.fixture
def fresh(untouched: TinySite, tmp_path: Path) -> TinySite:
    """A copy where nothing has been done for release 1."""
    return copy_of(untouched, tmp_path / "fresh")


@pytest.fixture
def begun(started: TinySite, tmp_path: Path) -> TinySite:
    """A copy where release 1 was charged and not drawn."""
    return copy_of(started, tmp_path / "begun")


@pytest.fixture
def drawn(ended: TinySite, tmp_path: Path) -> TinySite:
    """A copy where release 1 is a candidate."""
    return copy_of(ended, tmp_path / "drawn")


@pytest.fixture(scope="module")
def bits(ended: TinySite) -> str:
    """The hash of the candidate that nobody attacked."""
    return candidate_of(ended)["SHA256SUMS"]


def charged(tiny: TinySite) -> list[str]:
    """Which releases were charged, in order."""
    return [str(charge.id) for charge in tiny.charges()]


ONCE = ["people/2/r1", "people/1/r1"]


def test_source_changed_before_the_draw(begun: TinySite, bits: str) -> None:
    """Refused, naming the revision and the command that opens it; with the source restored, the bits that it would have had."""
    begun.write_rows(make_rows(seed=1))
    with pytest.raises(Blocked, match=rf"charged for other data; its secret must not mask these.*{R2}"):
        run_release(flow_of(begun))
    assert "masked" not in begun.tables()
    assert candidate_of(begun) == {}
    assert "people/1/r2" in begun.status().reason
    begun.write_rows(make_rows())
    assert finish(begun) == bits
    assert charged(begun) == ONCE


def test_one_cell_or_the_order_changed_before_the_draw(begun: TinySite) -> None:
    """One cell of a kept column is enough to be other data; so is the order, for ties are broken by the row number."""
    rows = make_rows()
    assert rows[0]["town"] != "south"
    for changed in ([rows[0] | {"town": "south"}, *rows[1:]], rows[::-1]):
        begun.write_rows(changed)
        with pytest.raises(Blocked, match=R2):
            run_release(flow_of(begun))


def test_source_changed_after_the_draw(drawn: TinySite, bits: str) -> None:
    """Refused, naming the revision; the candidate and its state stay untouched, and restored the same is served."""
    before, events = candidate_of(drawn), len(drawn.events())
    drawn.write_rows(make_rows(seed=1))
    with pytest.raises(Blocked, match=rf"noise was already drawn.*{R2}"):
        run_release(flow_of(drawn))
    assert (candidate_of(drawn), drawn.status().state, len(drawn.events())) == (before, "candidate", events)
    drawn.write_rows(make_rows())
    assert finish(drawn) == bits
    assert charged(drawn) == ONCE


EDITS = {
    "less epsilon": {"protect": CHEAPER},
    "other population": {"population": "others"},
}


@pytest.mark.parametrize("edit", EDITS)
def test_policy_edited_before_the_draw(begun: TinySite, bits: str, edit: str) -> None:
    """Refused, naming the revision; with the policy restored, the bits that it would have had. Charged once, to one account."""
    with (begun.home / "populations.yaml").open("a") as populations:
        populations.write(f"others: {{cap: {{epsilon: 10, {IDP}}}}}\n")
    begun.write_policy(**EDITS[edit])
    with pytest.raises(Blocked, match=rf"charged under another policy.*Restore that policy.*{R2}"):
        run_release(flow_of(begun))
    assert not any("masked" in begun.tables(population=name) for name in ("folk", EDITS[edit].get("population", "folk")))
    begun.write_policy()
    assert finish(begun) == bits
    assert charged(begun) == ONCE


@pytest.mark.parametrize("stage", ["masked", "suppressed", "audited", "candidate"])
def test_policy_edited_between_the_stages(fresh: TinySite, stage: str) -> None:
    """A step that is started alone, under another policy than the step before it, does nothing."""
    states = list(STAGES)
    for name in states[: states.index(stage)]:
        STAGES[name](flow_of(fresh))
    fresh.write_policy(protect=CHEAPER)
    with pytest.raises((Blocked, NotPassed), match="under another policy"):
        STAGES[stage](flow_of(fresh))
    assert stage not in fresh.tables()
    assert candidate_of(fresh) == {}


def test_policy_edited_after_the_draw(drawn: TinySite, bits: str) -> None:
    """Refused, naming the revision; the candidate and its state stay untouched, and restored the same is served."""
    before = candidate_of(drawn)
    drawn.write_policy(protect=CHEAPER)
    with pytest.raises(Blocked, match=rf"noise was already drawn.*{R2}"):
        run_release(flow_of(drawn))
    assert (candidate_of(drawn), drawn.status().state) == (before, "candidate")
    drawn.write_policy()
    assert finish(drawn) == bits
    assert charged(drawn) == ONCE


def test_secret_copied_back_after_the_draw(begun: TinySite, bits: str) -> None:
    """Nothing is drawn with it: the same bits are served, and the file is gone again."""
    secret = secret_of(begun).read_bytes()
    assert finish(begun) == bits
    secret_of(begun).write_bytes(secret)
    assert finish(begun) == bits
    assert not secret_of(begun).exists()
    assert begun.states().count("drawn") == 1


@pytest.mark.parametrize("how", ["swapped", "deleted"])
def test_secret_not_the_same_before_the_draw(begun: TinySite, bits: str, how: str) -> None:
    """Refused at every stage that needs it, naming the revision; put back, the release has its bits. Charged once."""
    good = secret_of(begun).read_bytes()
    secret_of(begun).unlink()
    if how == "swapped":
        secret_of(begun).write_bytes(OTHER)
    words = "is lost" if how == "deleted" else "is not the one that was made for it"
    for step in (partial(run_release, flow_of(begun)), partial(microaggregate, flow_of(begun)), partial(mask, flow_of(begun))):
        with pytest.raises(SecretLost, match=rf"{words}.*{R2}"):
            step()
    assert "masked" not in begun.tables()
    assert begun.states().count("secret") == 1, "a new secret was noted"
    secret_of(begun).write_bytes(good)
    assert finish(begun) == bits
    assert charged(begun) == ONCE


def test_secret_laid_there_by_somebody(fresh: TinySite, bits: str) -> None:
    """Not used, not even when an attempt was stopped between the charge and its secret: the bits are those of our own."""
    run_until(fresh, "the loss is charged")
    secret_of(fresh).write_bytes(OTHER)
    assert run_release(flow_of(fresh)).facts["candidate_hash"] == bits


@pytest.mark.parametrize("what", ["the whole vault", "the population's file"])
def test_vault_put_back_from_before_the_draw(started: TinySite, drawn: TinySite, what: str) -> None:
    """With the secret copied back too, refused by the registry, which knows that it was drawn; nothing is drawn again."""
    states = drawn.states()
    if what == "the whole vault":
        shutil.rmtree(drawn.site.vault)
        shutil.copytree(started.site.vault, drawn.site.vault)
    else:
        shutil.copy2(started.site.vault / "folk.duckdb", drawn.site.vault / "folk.duckdb")
        shutil.copy2(secret_of(started), secret_of(drawn))
    assert secret_of(drawn).exists()
    for step in (partial(run_release, flow_of(drawn)), partial(microaggregate, flow_of(drawn)), partial(mask, flow_of(drawn))):
        with pytest.raises(Blocked, match=rf"noise of this release was drawn, and the vault has no record.*{R2}"):
            step()
    assert "masked" not in drawn.tables()
    assert drawn.states() == states


EDITED = {
    "a number": "UPDATE masked SET income = CASE income WHEN 1 THEN 2 ELSE 1 END WHERE rowid = 0",
    "the order": "CREATE OR REPLACE TABLE masked AS FROM masked ORDER BY release_pipeline_record",
}


@pytest.mark.parametrize("edit", EDITED)
def test_masked_table_edited(fresh: TinySite, edit: str) -> None:
    """Found out before anything is made of it, whether or not the draw was noted: no candidate."""
    run_until(fresh, "the masked table is committed" if edit == "a number" else "the secret is forgotten")
    edit_vault(fresh, EDITED[edit])
    for step in (partial(suppress, flow_of(fresh)), partial(run_release, flow_of(fresh))):
        with pytest.raises(Blocked, match=rf"masked in the vault is not what was written.*{R2}"):
            step()
    assert candidate_of(fresh) == {}


BEFORE = {
    "statistics": "UPDATE statistics SET scale = 0 WHERE rowid = 0",
    "membership": "UPDATE membership SET income = income + 1 WHERE rowid = 0",
    "notes": 'UPDATE notes SET note = replace(note, \'"epsilon":"1"\', \'"epsilon":"9"\') WHERE stage = \'microaggregated\'',
}
AFTERWARDS = {
    "masked": ("the clusters are committed", "records"),
    "suppressed": ("the secret is forgotten", "masked"),
    "audited": ("suppressed", "records"),
    "candidate": ("audited", "masked"),  # of which nothing was suppressed
}


@pytest.mark.parametrize("stage", AFTERWARDS)
def test_what_a_stage_reads_is_what_was_written(fresh: TinySite, stage: str) -> None:
    """Another town of one record, in a table that it reads."""
    boundary, table = AFTERWARDS[stage]
    run_until(fresh, boundary)
    edit_vault(fresh, f"UPDATE {table} SET town = CASE town WHEN 'north' THEN 'south' ELSE 'north' END WHERE rowid = 0")  # noqa: S608
    with pytest.raises(Blocked, match=rf"the table {table} in the vault is not what was written.*{R2}"):
        STAGES[stage](flow_of(fresh))
    assert candidate_of(fresh) == {}


WHILE_JUDGED = {
    "the persons": "UPDATE raw SET person = 'p0' || person WHERE rowid = 0",
    "a view in its place": "CREATE TABLE kept AS FROM raw; DROP TABLE raw; CREATE VIEW raw AS FROM kept",
}


def edit_while_judged(monkeypatch: pytest.MonkeyPatch, tiny: TinySite, text: str) -> None:
    """Somebody changes the vault while checks are judged."""

    def judge(*arguments: Any, **options: Any) -> list[Check]:
        edit_vault(tiny, text)
        return judge_suite(*arguments, **options)

    monkeypatch.setattr(validate_stage, "judge_suite", judge)


@pytest.mark.parametrize("edit", WHILE_JUDGED)
def test_raw_records_edited_while_they_are_judged(fresh: TinySite, edit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Persons are read once more: others are found out, and fewer, whatever is put beside or in the place of the table."""
    flow = flow_of(fresh)
    ingest(flow)
    edit_while_judged(monkeypatch, fresh, WHILE_JUDGED[edit])
    with pytest.raises(ReleasePipelineError, match=r"the table '?raw'? (in the vault is not what was written|is in .* twice)"):
        validate(flow)
    assert "people" not in fresh.tables()


def test_what_was_judged_is_not_read_again(fresh: TinySite, bits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another raw income changes nothing: what was typed is what was judged."""
    flow = flow_of(fresh)
    ingest(flow)
    edit_while_judged(monkeypatch, fresh, "UPDATE raw SET income = income || '0' WHERE rowid = 0")
    validate(flow)
    for name in ("microaggregated", "masked", "suppressed", "audited"):
        STAGES[name](flow)
    assert freeze_candidate(flow).facts["candidate_hash"] == candidate_of(fresh)["SHA256SUMS"] == bits


@pytest.mark.parametrize("table", BEFORE)
def test_vault_edited_before_the_draw(begun: TinySite, table: str) -> None:
    """What the noise would be drawn from is what was stored, or nothing is drawn: no smaller scale, and no other record."""
    edit_vault(begun, BEFORE[table])
    with pytest.raises(Blocked, match=rf"{table[:4]}.* in the vault is not what was written.*{R2}"):
        mask(flow_of(begun))
    assert "masked" not in begun.tables()


def make_laplace(home: Path) -> TinySite:
    """A site where every record is masked by itself."""
    tiny = make_site(home, rows=make_rows(60), protect="{method: laplace, epsilon: 2}")
    tiny.fix_key(bytes(range(SECRET_BYTES)))
    return tiny


def test_no_other_record_is_masked_than_was_charged(tmp_path: Path) -> None:
    """Of a method that stores no clusters the records alone decide what noise is put on."""
    tiny = make_laplace(tmp_path / "site")
    run_until(tiny, "the clusters are committed")
    assert not tiny.tables().keys() & {"membership", "statistics"}
    edit_vault(tiny, "UPDATE records SET income = income + 1 WHERE rowid = 0")
    with pytest.raises(Blocked, match=rf"records in the vault is not what was written.*{R2}"):
        mask(flow_of(tiny))
    assert "masked" not in tiny.tables()


def test_masked_table_of_another_draw(fresh: TinySite, drawn: TinySite, bits: str) -> None:
    """A vault where the same release was drawn with another secret, under the same key, is not the one of this registry."""
    assert run_release(flow_of(fresh, secret=OTHER)).facts["candidate_hash"] != bits
    before = candidate_of(drawn)
    shutil.copy2(fresh.site.vault / "folk.duckdb", drawn.site.vault / "folk.duckdb")
    with pytest.raises(Blocked, match="another masked table than the one that the registry noted"):
        run_release(flow_of(drawn))
    assert candidate_of(drawn) == before


def revise(tiny: TinySite) -> ReleaseId:
    """Open the next revision of release 1."""
    return revise_release(tiny.site, "people", "1", why="the source was wrong")


def test_revision_of_a_drawn_release(drawn: TinySite, bits: str) -> None:
    """Opened with its reason and charged anew; with the same secret it has other noise, and the first candidate stays."""
    before = candidate_of(drawn)
    assert str(revise(drawn)) == "people/1/r2"
    assert drawn.status(revision=2).why == "the source was wrong"
    assert charged(drawn) == ONCE, "opening it charges nothing yet"
    flow = flow_of(drawn, secret=SECRET)
    assert str(flow.id) == "people/1/r2"
    assert run_release(flow).facts["candidate_hash"] != bits
    assert charged(drawn) == [*ONCE, "people/1/r2"]
    assert candidate_of(drawn) == before
    assert candidate_of(drawn, 2).keys() == before.keys()
    data = [name for name in before if name.startswith("data.")]
    assert not any(candidate_of(drawn, 2)[name] == before[name] for name in data)
    assert list((drawn.site.vault / "secrets").iterdir()) == []


def test_revision_gives_an_undrawn_one_up(begun: TinySite) -> None:
    """The secret of r1 is gone at once; r1 is not even ingested any more, let alone drawn, by a flow that was opened before, nor
    with the secret copied back; both charges stand."""
    flow, secret = flow_of(begun, at="ingested"), secret_of(begun).read_bytes()
    revise(begun)
    assert not secret_of(begun).exists()
    for left in (None, secret):
        if left is not None:
            secret_of(begun).write_bytes(left)
        for step in (partial(run_release, flow), partial(microaggregate, flow), partial(mask, flow)):
            with pytest.raises(Blocked, match="it was given up for people/1/r2"):
                step()
    assert "masked" not in begun.tables()
    run_release(flow_of(begun, secret=OTHER))
    assert charged(begun) == [*ONCE, "people/1/r2"]
    assert read_ledgers(begun.site)[0].account.spent == "6"
    assert begun.states().count("drawn") == 0


def test_given_up_revision_is_refused_by_name(begun: TinySite, drawn: TinySite) -> None:
    """r1 is not run once r2 is opened, drawn or not; r1's candidate stays."""
    before = candidate_of(drawn)
    for tiny in (begun, drawn):
        revise(tiny)
        with pytest.raises(Blocked, match=r"people/1/r1: it was given up for people/1/r2\. Run"):
            open_release(tiny.site, "people", "1/r1")
    assert candidate_of(drawn) == before


def test_revision_is_not_opened_twice_without_a_charge(begun: TinySite) -> None:
    """The second --revise is refused and opens nothing; after r2 is charged, the next one opens r3."""
    revise(begun)
    events = begun.events()
    with pytest.raises(WrongUsage, match="people/1/r2: nothing is charged for it yet"):
        revise(begun)
    with pytest.raises(WrongUsage):
        revise_release(begun.site, "people", "1/r1", why="a test")
    assert begun.events() == events
    with pytest.raises(KeyboardInterrupt):
        run_release(flow_of(begun, at="the loss is charged"))
    assert str(revise(begun)) == "people/1/r3"
    run_release(flow_of(begun, secret=OTHER))
    assert charged(begun) == [*ONCE, "people/1/r2", "people/1/r3"]
    assert list((begun.site.vault / "secrets").iterdir()) == []


def test_revision_that_was_not_opened_is_not_run(drawn: TinySite) -> None:
    """Nobody gets a fresh revision by naming it, nor opens one without a reason: refused with the command that opens one."""
    events = drawn.events()
    with pytest.raises(WrongUsage, match=r"people/1/r3: it has not been opened.*--revise 'REASON' opens r2"):
        open_release(drawn.site, "people", "1/r3")
    with pytest.raises(WrongUsage, match=r"a reason is one line|needs its reason"):
        revise_release(drawn.site, "people", "1", why=" ")
    assert drawn.events() == events


def test_revision_over_the_cap_opens_nothing(begun: TinySite, bits: str) -> None:
    """Refused by the ledger with what is left; no event, no charge, and r1 with its secret goes on."""
    begun.write_cap(f"epsilon: 5, {IDP}")
    events = begun.events()
    with pytest.raises(
        OverCap, match=r"people/1/r2: the ledger refuses: folk has 1 left of 5.*would take 2\. .*populations\.yaml"
    ):
        revise(begun)
    assert begun.events() == events
    assert secret_of(begun).exists()
    finish(begun)
    assert candidate_of(begun)["data.csv"]
    assert charged(begun) == ONCE
