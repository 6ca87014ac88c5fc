"""Attacks on "charged once, drawn once": everything a release rests on is changed between two attempts, or put back.

Each is refused or found out in words, or changes nothing: the candidate then has the bits that it would have had.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import duckdb
import pytest

from release_pipeline.errors import Blocked, OverCap, ReleasePipelineError, SecretLost, WrongUsage
from release_pipeline.flow import release as flow_release
from release_pipeline.flow.opening import open_release, revise_release
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.release import ReleaseFlow
from release_pipeline.flow.reservation import Reservation, reserve
from release_pipeline.flow.retention import prune
from release_pipeline.flow.secret_files import PLAIN, Probe
from release_pipeline.flow.status.ledger import read_ledgers
from release_pipeline.flow.status.overview import describe_status, list_releases
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.stages.checks import Check
from release_pipeline.stages.validate import judge_suite
from release_pipeline.store import registry as store_registry
from release_pipeline.store.registry import BEGIN, RegistryChanged, ReleaseId, canonical_json
from tests.integration.publishing import failures_of
from tests.integration.sites import TinySite, make_rows, make_site, policy_text

SECRET, OTHER = b"s" * SECRET_BYTES, b"o" * SECRET_BYTES
R2 = r"Only people/1/r2 can replace it.*release-pipeline run people --release 1 --revise 'REASON'"
IDP = "definition: idp, scope: column"
CHEAPER = "{method: idp-cbls, epsilon: 1, k: 5}"
HEAD = "registry.head"


def stop(boundary: str | None, secret: bytes = SECRET) -> Probe:
    """A probe that gives this secret and ends the attempt at this boundary."""

    def passed(name: str) -> None:
        if name == boundary:
            raise KeyboardInterrupt

    return Probe(reached=passed, new_secret=lambda: secret)


def flow_of(tiny: TinySite, release: str = "1", *, at: str | None = None, secret: bytes = SECRET) -> ReleaseFlow:
    """The flow of a release, with this secret, that ends at this boundary."""
    return open_release(tiny.site, "people", release, probe=stop(at, secret))


def run_until(tiny: TinySite, boundary: str, secret: bytes = SECRET) -> None:
    """Release 1, up to this boundary."""
    with pytest.raises(KeyboardInterrupt):
        flow_of(tiny, at=boundary, secret=secret).run()


def finish(tiny: TinySite) -> str:
    """Run release 1 to its candidate; another secret would be given to it, if it still asked for one."""
    return flow_of(tiny, secret=OTHER).run().facts["candidate_hash"]


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


# source and policy


def test_source_changed_before_the_draw(begun: TinySite, bits: str) -> None:
    """Refused, naming the revision and the command that opens it; with the source restored, the bits that it would have had."""
    begun.write_rows(make_rows(seed=1))
    with pytest.raises(Blocked, match=rf"charged for other data; its secret must not mask these.*{R2}"):
        flow_of(begun).run()
    assert "masked" not in begun.tables()
    assert candidate_of(begun) == {}
    assert "people/1/r2" in begun.status().reason
    begun.write_rows(make_rows())
    assert finish(begun) == bits
    assert charged(begun) == ONCE


@pytest.mark.parametrize("cell", [{"income": "1"}, {"town": "south"}], ids=["noise", "kept"])
def test_one_cell_changed_before_the_draw(begun: TinySite, cell: dict[str, str]) -> None:
    """One cell of a noise column, or of a kept one, is enough to be other data."""
    rows = make_rows()
    assert rows[0] | cell != rows[0]
    begun.write_rows([rows[0] | cell, *rows[1:]])
    with pytest.raises(Blocked, match=R2):
        flow_of(begun).run()


def test_order_of_the_source_changed_before_the_draw(begun: TinySite) -> None:
    """The same records in another order are other data: ties are broken by the row number."""
    begun.write_rows(make_rows()[::-1])
    with pytest.raises(Blocked, match=R2):
        flow_of(begun).run()


def test_source_changed_after_the_draw(drawn: TinySite, bits: str) -> None:
    """Refused, naming the revision; the candidate and its state stay untouched, and restored the same is served."""
    before, events = candidate_of(drawn), len(drawn.events())
    drawn.write_rows(make_rows(seed=1))
    with pytest.raises(Blocked, match=rf"noise was already drawn.*{R2}"):
        flow_of(drawn).run()
    assert (candidate_of(drawn), drawn.status().state, len(drawn.events())) == (before, "candidate", events)
    drawn.write_rows(make_rows())
    assert finish(drawn) == bits
    assert charged(drawn) == ONCE


EDITS = {
    "less epsilon": {"protect": CHEAPER},
    "other population": {"population": "others"},
    "other gate": {"gates": "{min_rows: 21}"},
}


@pytest.mark.parametrize("edit", EDITS)
def test_policy_edited_before_the_draw(begun: TinySite, bits: str, edit: str) -> None:
    """Refused, naming the revision; with the policy restored, the bits that it would have had. Charged once, to one account."""
    with (begun.home / "populations.yaml").open("a") as populations:
        populations.write(f"others: {{cap: {{epsilon: 10, {IDP}}}}}\n")
    begun.write_policy(**EDITS[edit])
    with pytest.raises(Blocked, match=rf"charged under another policy.*Restore that policy.*{R2}"):
        flow_of(begun).run()
    assert not any("masked" in begun.tables(population=name) for name in ("folk", EDITS[edit].get("population", "folk")))
    begun.write_policy()
    assert finish(begun) == bits
    assert charged(begun) == ONCE


def test_policy_edited_between_the_stages(begun: TinySite) -> None:
    """A step that is started alone, under another policy than the step before it, masks nothing."""
    begun.write_policy(protect=CHEAPER)
    with pytest.raises(Blocked, match="under another policy"):
        flow_of(begun).mask()
    assert "masked" not in begun.tables()


@pytest.mark.parametrize("edit", [name for name in EDITS if name != "other population"])
def test_policy_edited_after_the_draw(drawn: TinySite, bits: str, edit: str) -> None:
    """Refused, naming the revision; the candidate and its state stay untouched, and restored the same is served."""
    before = candidate_of(drawn)
    drawn.write_policy(**EDITS[edit])
    with pytest.raises(Blocked, match=rf"noise was already drawn.*{R2}"):
        flow_of(drawn).run()
    assert (candidate_of(drawn), drawn.status().state) == (before, "candidate")
    drawn.write_policy()
    assert finish(drawn) == bits
    assert charged(drawn) == ONCE


def test_policy_that_says_the_same_is_the_same(begun: TinySite, bits: str) -> None:
    """Comments and spaces are no edit."""
    (begun.home / "policies" / "people.yaml").write_text("# a word\n\n" + policy_text().replace("epsilon: 2,", "epsilon:   2.0,"))
    assert finish(begun) == bits


# the secret


def test_secret_copied_back_after_the_draw(begun: TinySite, bits: str) -> None:
    """Nothing is drawn with it: the same bits are served, and the file is gone again."""
    secret = secret_of(begun).read_bytes()
    assert finish(begun) == bits
    secret_of(begun).write_bytes(secret)
    assert finish(begun) == bits
    assert not secret_of(begun).exists()
    assert begun.states().count("drawn") == 1


def test_other_secret_laid_there_after_the_draw(drawn: TinySite, bits: str) -> None:
    """Nothing is drawn with it either."""
    secret_of(drawn).write_bytes(OTHER)
    assert finish(drawn) == bits
    assert not secret_of(drawn).exists()


@pytest.mark.parametrize("how", ["swapped", "deleted", "cut"])
def test_secret_not_the_same_before_the_draw(begun: TinySite, bits: str, how: str) -> None:
    """Refused at every stage that needs it, naming the revision; put back, the release has its bits. Charged once."""
    good = secret_of(begun).read_bytes()
    secret_of(begun).unlink()
    if how != "deleted":
        secret_of(begun).write_bytes(OTHER if how == "swapped" else good[:-1])
    words = "is lost" if how == "deleted" else "is not the one that was made for it"
    for step in (flow_of(begun).run, flow_of(begun).microaggregate, flow_of(begun).mask):
        with pytest.raises(SecretLost, match=rf"{words}.*{R2}"):
            step()
    assert "masked" not in begun.tables()
    assert begun.states().count("secret") == 1, "a new secret was noted"
    secret_of(begun).write_bytes(good)
    assert finish(begun) == bits
    assert charged(begun) == ONCE


@pytest.mark.parametrize("when", ["before the charge", "after the charge"])
def test_secret_laid_there_by_somebody(fresh: TinySite, bits: str, when: str) -> None:
    """Not used, not even when an attempt was stopped between the charge and its secret: the bits are those of our own."""
    if when == "after the charge":
        run_until(fresh, "the loss is charged")
    secret_of(fresh).write_bytes(OTHER)
    assert flow_of(fresh).run().facts["candidate_hash"] == bits


def test_other_secret_gives_other_bits(fresh: TinySite, bits: str) -> None:
    """What the test above rests on."""
    assert flow_of(fresh, secret=OTHER).run().facts["candidate_hash"] != bits


# the vault


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
    for step in (flow_of(drawn).run, flow_of(drawn).microaggregate, flow_of(drawn).mask):
        with pytest.raises(Blocked, match=rf"noise of this release was drawn, and the vault has no record.*{R2}"):
            step()
    assert "masked" not in drawn.tables()
    assert drawn.states() == states


EDITED = {
    "a number": "UPDATE masked SET income = CASE income WHEN 1 THEN 2 ELSE 1 END WHERE rowid = 0",
    "a row removed": "DELETE FROM masked WHERE rowid = 0",
    "the order": "CREATE OR REPLACE TABLE masked AS FROM masked ORDER BY release_pipeline_record",
    "a category": "UPDATE masked SET town = CASE town WHEN 'north' THEN 'south' ELSE 'north' END WHERE rowid = 0",
}


@pytest.mark.parametrize("edit", EDITED)
def test_masked_table_edited(fresh: TinySite, edit: str) -> None:
    """Found out before anything is made of it, whether or not the draw was noted: no candidate."""
    run_until(fresh, "the masked table is committed" if edit == "a number" else "the secret is forgotten")
    edit_vault(fresh, EDITED[edit])
    for step in (flow_of(fresh).suppress, flow_of(fresh).run):
        with pytest.raises(Blocked, match=rf"masked in the vault is not what was written.*{R2}"):
            step()
    assert candidate_of(fresh) == {}


BEFORE = {
    "statistics": "UPDATE statistics SET scale = 0 WHERE rowid = 0",
    "membership": "UPDATE membership SET income = income + 1 WHERE rowid = 0",
    "records": "UPDATE records SET town = CASE town WHEN 'north' THEN 'south' ELSE 'north' END WHERE rowid = 0",
    "notes": 'UPDATE notes SET note = replace(note, \'"epsilon":"1"\', \'"epsilon":"9"\') WHERE stage = \'microaggregated\'',
}


AFTERWARDS = {
    "mask": ("the clusters are committed", "records"),
    "suppress": ("the secret is forgotten", "masked"),
    "audit": ("suppressed", "records"),
    "freeze": ("audited", "suppressed"),
}


@pytest.mark.parametrize("stage", AFTERWARDS)
def test_what_a_stage_reads_is_what_was_written(fresh: TinySite, stage: str) -> None:
    """Another town of one record, in a table that it reads."""
    boundary, table = AFTERWARDS[stage]
    run_until(fresh, boundary)
    edit_vault(fresh, f"UPDATE {table} SET town = CASE town WHEN 'north' THEN 'south' ELSE 'north' END WHERE rowid = 0")  # noqa: S608
    with pytest.raises(Blocked, match=rf"the table {table} in the vault is not what was written.*{R2}"):
        getattr(flow_of(fresh), stage)()
    assert candidate_of(fresh) == {}


@pytest.mark.parametrize("edit", ["UPDATE records SET income = income + 1", "DELETE FROM people WHERE rowid = 0"])
def test_what_freeze_does_not_read_changes_nothing(fresh: TinySite, bits: str, edit: str) -> None:
    """The candidate is what it would have been; who looks at the whole vault finds what was changed."""
    run_until(fresh, "audited")
    edit_vault(fresh, edit)
    assert flow_of(fresh).freeze().facts["candidate_hash"] == candidate_of(fresh)["SHA256SUMS"] == bits
    told = " ".join(failures_of(verify(fresh.home, deep=True)))
    assert f"the table {edit.split()[1 if edit.startswith('U') else 2]} in the vault is not what was written" in told


WHILE_JUDGED = {
    "the persons": "UPDATE raw SET person = 'p0' || person WHERE rowid = 0",
    "a column taken away": "ALTER TABLE raw DROP COLUMN income",
    "a column beside the table": "CREATE TABLE raw_column_00000 AS SELECT person FROM raw; UPDATE raw SET person = 'p1'",
    "a view in its place": "CREATE TABLE kept AS FROM raw; DROP TABLE raw; CREATE VIEW raw AS FROM kept",
}


def edit_while_judged(monkeypatch: pytest.MonkeyPatch, tiny: TinySite, text: str) -> None:
    """Somebody changes the vault while checks are judged."""

    def judge(*arguments: Any, **options: Any) -> list[Check]:
        edit_vault(tiny, text)
        return judge_suite(*arguments, **options)

    monkeypatch.setattr(flow_release, "judge_suite", judge)


@pytest.mark.parametrize("edit", WHILE_JUDGED)
def test_raw_records_edited_while_they_are_judged(fresh: TinySite, edit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Persons are read once more: others are found out, and fewer, whatever is put beside or in the place of the table."""
    flow = flow_of(fresh)
    flow.ingest()
    edit_while_judged(monkeypatch, fresh, WHILE_JUDGED[edit])
    with pytest.raises(ReleasePipelineError, match=r"the table '?raw'? (in the vault is not what was written|is in .* twice)"):
        flow.validate()
    assert "people" not in fresh.tables()


def test_what_was_judged_is_not_read_again(fresh: TinySite, bits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another raw income changes nothing: what was typed is what was judged."""
    flow = flow_of(fresh)
    flow.ingest()
    edit_while_judged(monkeypatch, fresh, "UPDATE raw SET income = income || '0' WHERE rowid = 0")
    flow.validate()
    for stage in (flow.microaggregate, flow.mask, flow.suppress, flow.audit):
        stage()
    assert flow.freeze().facts["candidate_hash"] == candidate_of(fresh)["SHA256SUMS"] == bits


@pytest.mark.parametrize("table", BEFORE)
def test_vault_edited_before_the_draw(begun: TinySite, table: str) -> None:
    """What the noise would be drawn from is what was stored, or nothing is drawn: no smaller scale, and no other record."""
    edit_vault(begun, BEFORE[table])
    with pytest.raises(Blocked, match=rf"{table[:4]}.* in the vault is not what was written.*{R2}"):
        flow_of(begun).mask()
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
        flow_of(tiny).mask()
    assert "masked" not in tiny.tables()


def test_masked_table_of_another_draw(fresh: TinySite, drawn: TinySite, bits: str) -> None:
    """A vault where the same release was drawn with another secret, under the same key, is not the one of this registry."""
    assert flow_of(fresh, secret=OTHER).run().facts["candidate_hash"] != bits
    before = candidate_of(drawn)
    shutil.copy2(fresh.site.vault / "folk.duckdb", drawn.site.vault / "folk.duckdb")
    with pytest.raises(Blocked, match="another masked table than the one that the registry noted"):
        flow_of(drawn).run()
    assert candidate_of(drawn) == before


def test_pruned_release_is_not_drawn_again(fresh: TinySite) -> None:
    """Its tables are gone as its policy says: with the secret copied back, refused, and the candidate stays."""
    fresh.write_policy(retain="1 day")
    run_until(fresh, "the clusters are committed")
    secret = secret_of(fresh).read_bytes()
    flow_of(fresh).run()
    before = candidate_of(fresh)
    assert [str(id) for pruned in prune(fresh.site, now=in_days(2)) for id in pruned.releases] == ["people/1/r1"]
    secret_of(fresh).write_bytes(secret)
    with pytest.raises(Blocked, match=r"tables were pruned.*A correction is people/1/r2"):
        flow_of(fresh).run()
    assert candidate_of(fresh) == before
    assert charged(fresh) == ONCE


# the clock


def in_days(days: int) -> datetime:
    """So many days from now."""
    return datetime.now().astimezone() + timedelta(days=days)


def set_clock(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    """The registry's clock is so many days off."""

    class Clock(datetime):
        """Off by a fixed time."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + timedelta(days=days)

    monkeypatch.setattr(store_registry, "datetime", Clock)


@pytest.mark.parametrize("boundary", ["the loss is charged", "drawn is noted"])
def test_clock_set_back_between_attempts(fresh: TinySite, bits: str, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a release follows from the clock: the same bits, charged once; and whoever asks for the state is told of it."""
    run_until(fresh, boundary)
    assert list_releases(fresh.site)[1] == []
    set_clock(monkeypatch, -400)
    assert flow_of(fresh).run().facts["candidate_hash"] == bits
    assert charged(fresh) == ONCE
    [payload] = list_releases(fresh.site)[1]
    assert "the clock was set back" in payload
    assert fresh.states() == ["opened", "reserved", "secret", "drawn", "candidate"]


def test_clock_ahead_of_the_registry_is_told(fresh: TinySite, bits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release made by a clock that is ahead has its bits; when the clock is right again, people are told."""
    with monkeypatch.context() as patch:
        set_clock(patch, 400)
        assert flow_of(fresh).run().facts["candidate_hash"] == bits
    [payload] = list_releases(fresh.site)[1]
    assert "the clock is behind the registry" in payload
    assert finish(fresh) == bits
    assert charged(fresh) == ONCE


# the registry


@dataclass
class Attacked:
    """A site whose registry is attacked, and an older copy of the registry."""

    tiny: TinySite
    older: Path

    def execute(self, text: str, values: list[Any] | None = None) -> None:
        """Change the registry by hand."""
        with duckdb.connect(str(self.tiny.site.registry)) as connection:
            connection.execute(text, values)

    def rewrite(self, change: Callable[[list[dict[str, Any]]], None]) -> None:
        """Another chain of events, with right numbers and hashes throughout; who has no key keeps the seals that were there."""
        rows = self.tiny.query(self.tiny.site.registry, "SELECT * FROM events ORDER BY number")
        events = [json.loads(row["body"]) for row in rows]
        change(events)
        previous = BEGIN
        self.execute("DELETE FROM events")
        for number, event in enumerate(events, start=1):
            body = canonical_json({**event, "number": number, "previous": previous})
            previous = hashlib.sha256(body.encode()).hexdigest()
            self.insert({**rows[min(number, len(rows)) - 1], "number": number, "body": body, "hash": previous})
        self.execute("UPDATE head SET number = ?, hash = ?", [len(events), previous])

    def insert(self, row: dict[str, Any]) -> None:
        """Put an event into its table."""
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.execute(f"INSERT INTO events ({names}) VALUES ({marks})", list(row.values()))  # noqa: S608


def edit_row(at: Attacked) -> None:
    """The loss of a charge made smaller."""
    at.execute("UPDATE events SET body = replace(body, ':2000000000', ':1000000000') WHERE body LIKE '%reserved%'")


def edit_date(at: Attacked) -> None:
    """A date of the last event changed, with the right hash for it."""
    edit_row_with_its_hash(at, "(SELECT max(number) FROM events)")


def edit_row_with_its_hash(at: Attacked, which: str = "3") -> None:
    """An event changed, with the right hash for it; the next one still names the old."""
    at.execute(f'UPDATE events SET body = replace(body, \'"noted":"2\', \'"noted":"1\') WHERE number = {which}')  # noqa: S608
    at.execute(f"UPDATE events SET hash = sha256(body) WHERE number = {which}")  # noqa: S608


def edit_last_and_head(at: Attacked) -> None:
    """The last event changed, with the right hash in every place of the database."""
    edit_date(at)
    at.execute("UPDATE head SET hash = (SELECT hash FROM events ORDER BY number DESC LIMIT 1)")


def delete_last(at: Attacked) -> None:
    """The last event removed."""
    at.execute("DELETE FROM events WHERE number = (SELECT max(number) FROM events)")


def delete_last_and_move_head(at: Attacked) -> None:
    """The last event removed, and the database's own head moved back."""
    delete_last(at)
    at.execute("UPDATE head SET number = number - 1, hash = (SELECT hash FROM events ORDER BY number DESC LIMIT 1)")


def delete_charge_with_all_after(at: Attacked) -> None:
    """The charge and everything after it rewritten away, hashes right."""
    at.rewrite(lambda events: events.__delitem__(slice(-2, None)))


def delete_in_the_middle(at: Attacked) -> None:
    """An event removed from the middle."""
    at.execute("DELETE FROM events WHERE number = 2")


def delete_in_the_middle_and_renumber(at: Attacked) -> None:
    """An event removed from the middle, and the others moved up."""
    delete_in_the_middle(at)
    at.execute("UPDATE events SET number = number - 1 WHERE number > 2")
    at.execute("UPDATE head SET number = number - 1")


def delete_all_events(at: Attacked) -> None:
    """No event is left."""
    at.execute("DELETE FROM events")


def delete_everything_inside(at: Attacked) -> None:
    """No event is left, and the head is that of a new registry."""
    for table in ("events", "head", "budgets"):
        at.execute(f"DELETE FROM {table}")  # noqa: S608


def double_event(at: Attacked) -> None:
    """An event is there twice."""
    at.execute("INSERT INTO events FROM events WHERE number = 3")


def add_event(at: Attacked) -> None:
    """An event that follows from the last one, with right hashes in every place; only its seal cannot be made without the key."""
    at.rewrite(lambda events: events.append({**events[1], "content": {**events[1]["content"], "hash": "another"}}))


def open_revision(at: Attacked) -> None:
    """A revision that nobody has opened with a reason, with right hashes in every place."""
    at.rewrite(
        lambda events: events.append({**events[1], "kind": "opened", "release": ["people", "1", 2], "content": {"why": ""}})
    )


def delete_registry(at: Attacked) -> None:
    """The file is gone."""
    at.tiny.site.registry.unlink()


def restore_older(at: Attacked) -> None:
    """A copy from before the charge of release 1 is put back."""
    shutil.copy2(at.older, at.tiny.site.registry)


def rewrite_smaller(at: Attacked) -> None:
    """Another chain with right hashes, where a charge is smaller."""

    def change(events: list[dict[str, Any]]) -> None:
        for event in events:
            if event["kind"] == "reserved":
                event["content"]["loss"]["idp_column"] = 1

    at.rewrite(change)


def rewrite_longer(at: Attacked) -> None:
    """Another chain with right hashes, without the charge of release 1, and longer than the true one."""

    def change(events: list[dict[str, Any]]) -> None:
        events[:] = [event for event in events if event["release"] != ["people", "1", 1]]
        events += [events[0]] * 9

    at.rewrite(change)


def write_on_from_older(at: Attacked) -> None:
    """From an older copy on, other events written by the program itself, with the key: right seals, and a longer chain."""
    head, registry = (at.tiny.site.vault / HEAD), at.tiny.site.registry
    newest = head.read_bytes()
    shutil.copy2(at.older, registry)
    shutil.copy2(at.older.parent / "vault" / HEAD, head)
    with at.tiny.site.open_registry() as opened:
        for place in range(9):
            opened.add("policy", policy="people", hash=str(place), population="folk")
    head.write_bytes(newest)


def edit_head_row(at: Attacked) -> None:
    """The database's own head changed."""
    at.execute("UPDATE head SET hash = 'another'")


def edit_head_file(at: Attacked) -> None:
    """The vault's head moved back to an event that is there, without the key for its seal."""
    file, event = at.tiny.site.vault / HEAD, at.tiny.events()[0]
    _, _, seal = file.read_text().split()
    file.write_text(f"{event.number} {event.hash} {seal}\n")


def empty_head_file(at: Attacked) -> None:
    """The vault's head emptied."""
    (at.tiny.site.vault / HEAD).write_text("")


def delete_head_file(at: Attacked) -> None:
    """The vault's head gone."""
    (at.tiny.site.vault / HEAD).unlink()


def delete_head_file_and_restore_older(at: Attacked) -> None:
    """The vault's head gone, and a copy of the registry from before the charge of release 1 put back."""
    delete_head_file(at)
    restore_older(at)


def delete_head_file_and_registry(at: Attacked) -> None:
    """The vault's head gone, and the registry too: as if nothing had ever been charged."""
    delete_head_file(at)
    delete_registry(at)


def drop_events(at: Attacked) -> None:
    """The table of the events is gone."""
    at.execute("DROP TABLE events")


def drop_head(at: Attacked) -> None:
    """The table of the head is gone."""
    at.execute("DROP TABLE head")


def drop_all_tables(at: Attacked) -> None:
    """Every table is gone."""
    for table in ("events", "head", "budgets"):
        at.execute(f"DROP TABLE {table}")


ATTACKS = (
    edit_row,
    edit_date,
    edit_row_with_its_hash,
    edit_last_and_head,
    delete_last,
    delete_last_and_move_head,
    delete_charge_with_all_after,
    delete_in_the_middle,
    delete_in_the_middle_and_renumber,
    delete_all_events,
    delete_everything_inside,
    double_event,
    add_event,
    open_revision,
    delete_registry,
    restore_older,
    rewrite_smaller,
    rewrite_longer,
    write_on_from_older,
    edit_head_row,
    edit_head_file,
    empty_head_file,
    delete_head_file,
    delete_head_file_and_restore_older,
    delete_head_file_and_registry,
    drop_events,
    drop_head,
    drop_all_tables,
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_registry_attacked(untouched: TinySite, begun: TinySite, attack: Callable[[Attacked], None]) -> None:
    """Found out by readers and by whoever would write, in words with a remedy, and again by the next reader: nothing is opened,
    charged or drawn. Restored as it was, it is good again, and the secret is still there."""
    flow = flow_of(begun)
    kept = {file: file.read_bytes() for file in (begun.site.registry, begun.site.vault / HEAD)}
    events = begun.events()
    attack(Attacked(begun, untouched.site.registry))
    for act in (
        begun.events,
        lambda: list(describe_status(begun.site)),
        lambda: revise_release(begun.site, "people", "1", why="a test"),
        flow.run,
        flow.mask,
        begun.events,
    ):
        with pytest.raises(RegistryChanged, match=r"registry.*Restore"):
            act()
    assert "masked" not in begun.tables()
    assert candidate_of(begun) == {}
    for file, content in kept.items():
        file.write_bytes(content)
    assert begun.events() == events
    assert secret_of(begun).exists()


def test_attacks_change_what_they_say(untouched: TinySite, started: TinySite, tmp_path: Path) -> None:
    """The rewriting by itself, with nothing changed, gives the very same chain: so it is the change that is found out."""
    tiny = copy_of(started, tmp_path / "site")
    before = tiny.events()
    Attacked(tiny, untouched.site.registry).rewrite(lambda _: None)
    assert tiny.events() == before


@pytest.mark.parametrize("spent", [0, 2 * 10**9, 10**10])
def test_row_of_the_cap_edited(fresh: TinySite, spent: int) -> None:
    """Readers count the events and say what is spent; whoever would charge is refused, and neither charged nor given a secret."""
    reserve(fresh.site, Reservation(fresh.site.policy("people"), ReleaseId("people", "1"), 60, "source"), PLAIN)
    secret_of(fresh).unlink()
    Attacked(fresh, fresh.site.registry).execute("UPDATE budgets SET spent = ?", [spent])
    assert read_ledgers(fresh.site)[0].account.spent == "4"
    fresh.write_policy(policy="more", releases='["1"]')
    with pytest.raises(RegistryChanged, match=r"do not agree on what is spent.*Restore the registry"):
        fresh.flow("1", "more").run()
    assert charged(fresh) == ["people/2/r1", "people/1/r1"]
    assert list((fresh.site.vault / "secrets").iterdir()) == []


def test_row_of_the_cap_removed(fresh: TinySite) -> None:
    """Without the row, the events still say what is spent: there is no more room than before."""
    fresh.write_cap(f"epsilon: 3, {IDP}")
    Attacked(fresh, fresh.site.registry).execute("DELETE FROM budgets")
    with pytest.raises(ReleasePipelineError):
        flow_of(fresh).run()
    assert charged(fresh) == ["people/2/r1"]


# revisions


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
    assert flow.run().facts["candidate_hash"] != bits
    assert charged(drawn) == [*ONCE, "people/1/r2"]
    assert candidate_of(drawn) == before
    assert candidate_of(drawn, 2).keys() == before.keys()
    data = [name for name in before if name.startswith("data.")]
    assert not any(candidate_of(drawn, 2)[name] == before[name] for name in data)
    assert list((drawn.site.vault / "secrets").iterdir()) == []


def test_revision_with_the_changed_source(begun: TinySite) -> None:
    """What refuses the changed source names the way, and the way works: the other data are masked with another secret."""
    begun.write_rows(make_rows(seed=1))
    with pytest.raises(Blocked, match=R2):
        flow_of(begun).run()
    revise(begun)
    flow_of(begun, secret=OTHER).run()
    assert charged(begun) == [*ONCE, "people/1/r2"]
    assert [begun.status(revision=n).state for n in (1, 2)] == ["blocked", "candidate"]


def test_revision_gives_an_undrawn_one_up(begun: TinySite) -> None:
    """The secret of r1 is gone at once; r1 is not even ingested any more, let alone drawn, by a flow that was opened before, nor
    with the secret copied back; both charges stand."""
    flow, secret = flow_of(begun, at="ingested"), secret_of(begun).read_bytes()
    revise(begun)
    assert not secret_of(begun).exists()
    for left in (None, secret):
        if left is not None:
            secret_of(begun).write_bytes(left)
        for step in (flow.run, flow.microaggregate, flow.mask):
            with pytest.raises(Blocked, match="it was given up for people/1/r2"):
                step()
    assert "masked" not in begun.tables()
    flow_of(begun, secret=OTHER).run()
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
        flow_of(begun, at="the loss is charged").run()
    assert str(revise(begun)) == "people/1/r3"
    flow_of(begun, secret=OTHER).run()
    assert charged(begun) == [*ONCE, "people/1/r2", "people/1/r3"]
    assert list((begun.site.vault / "secrets").iterdir()) == []


@pytest.mark.parametrize("boundary", [None, "ingested", "validated"])
def test_uncharged_release_is_not_revised(fresh: TinySite, boundary: str | None) -> None:
    """There is nothing to correct: refused with the right command, and no revision is opened."""
    if boundary is not None:
        run_until(fresh, boundary)
    events = fresh.events()
    with pytest.raises(WrongUsage, match=r"people/1/r1: nothing is charged for it yet.*Run it without --revise"):
        revise(fresh)
    assert fresh.events() == events


@pytest.mark.parametrize("revision", [2, 3, 999_999])
def test_revision_that_was_not_opened_is_not_run(drawn: TinySite, revision: int) -> None:
    """Nobody gets a fresh revision by naming it: refused with the command that opens one with a reason."""
    events = drawn.events()
    with pytest.raises(WrongUsage, match=rf"people/1/r{revision}: it has not been opened.*--revise 'REASON' opens r2"):
        open_release(drawn.site, "people", f"1/r{revision}")
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


@pytest.mark.parametrize("why", ["", "  ", "two\nlines", "x" * 201])
def test_revision_needs_a_reason(drawn: TinySite, why: str) -> None:
    """One line that says something; without it nothing is opened."""
    events = drawn.events()
    with pytest.raises(WrongUsage, match=r"a reason is one line|needs its reason"):
        revise_release(drawn.site, "people", "1", why=why)
    assert drawn.events() == events
