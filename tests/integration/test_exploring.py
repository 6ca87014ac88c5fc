"""`explore` as somebody at a site uses it: on a public file, on a made-up table, in a look; what it opens, and what it writes."""

from __future__ import annotations

import csv
import ctypes
import json
import os
import random
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from release_pipeline.cli import main
from release_pipeline.flow.exploring import trials
from release_pipeline.policy import load_policy
from tests.integration.sites import HEADER, TinySite, make_rows, make_site

GATES = "{min_rows: 500}"
FEW = ("--methods", "dp-cdf,idp-cbls", "--epsilons", "1,2", "--k", "5", "--quiet")
SHAPE = "{rows: 600, columns: {income: {at: {0: 10%}, quantiles: {50%: 200}}}}"


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site whose source has six hundred people, and a file that is like it."""
    made = make_site(tmp_path / "site", rows=make_rows(600), gates=GATES, shape=SHAPE)
    with (tmp_path / "other.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADER)
        writer.writeheader()
        writer.writerows(make_rows(700, seed=9))
    return made


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are kept for this test alone, and few releases simulated: what they are like is looked at elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(trials, "MOST", 5)


def policy_file(tiny: TinySite) -> Path:
    """The policy of the site."""
    return tiny.home / "policies" / "people.yaml"


def explore(tiny: TinySite, *arguments: str | Path) -> list[str]:
    """The arguments of a small exploration."""
    return ["explore", str(policy_file(tiny)), *map(str, arguments), *FEW]


IN_OPEN = 0x20


@contextmanager
def watched(*folders: Path) -> Iterator[list[str]]:
    """The files in these folders that any process opens meanwhile, as the kernel tells."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    assert handle >= 0
    names = {libc.inotify_add_watch(handle, str(folder).encode(), IN_OPEN): folder for folder in folders}
    assert all(watch > 0 for watch in names)
    opened: list[str] = []
    try:
        yield opened
        while True:
            try:
                events = os.read(handle, 1 << 16)
            except BlockingIOError:
                break
            at = 0
            while at < len(events):
                watch, mask, _, length = struct.unpack_from("iIII", events, at)
                name = events[at + 16 : at + 16 + length].rstrip(b"\0").decode()
                if name and not mask & 0x40000000:  # a folder that is listed
                    opened.append(str(names[watch] / name))
                at += 16 + length
    finally:
        os.close(handle)


@pytest.mark.slow
def test_neither_a_public_file_nor_a_shape_opens_a_confidential_one(tiny: TinySite, tmp_path: Path) -> None:
    """Whatever opens them, a library included, the kernel would tell; in a look it does."""
    (tiny.home / "vault").mkdir(mode=0o700, exist_ok=True)

    def opened(*arguments: str) -> set[str]:
        program = [sys.executable, "-m", "release_pipeline.cli", *explore(tiny, *arguments), "--rows", "100"]
        with watched(tiny.home, tiny.home / "vault") as files:
            subprocess.run(program, check=True, capture_output=True)
        return {Path(file).name for file in files}

    assert "people.csv" not in opened("--like", str(tmp_path / "other.csv"), "--public", "on the shelf")
    assert "people.csv" not in opened("--shape")
    assert "people.csv" in opened("--on", "source")


def test_a_look_is_noted_kept_in_the_vault_and_told_on_the_card(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it is taken; its page is the owner's alone, and no other place may have it."""
    assert main([*explore(tiny, "--on", "source"), "--by", "ana"]) == 0
    said = capsys.readouterr().out
    assert "This was a look at confidential records" in said
    [look] = [event for event in tiny.events() if event.kind == "looked"]
    assert (look.content["by"], look.content["on"], look.content["population"]) == ("ana", "source", "folk")
    assert "dp-cdf, epsilon 1, k 5" in look.content["compared"]
    [page] = (tiny.site.vault / "looks").glob("*.html")
    assert page.stat().st_mode & 0o077 == 0
    assert "Confidential" in page.read_text()
    assert main([*explore(tiny, "--on", "source"), "--by", "ben", "-o", str(tmp_path / "page.html")]) == 2
    assert "stays in the vault" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()
    tiny.flow().run()
    assert tiny.status().facts["looks"] == 2


def test_an_equal_look_reads_nothing_and_is_the_same_look(
    tiny: TinySite, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same person it is in the registry once; by somebody else twice, though nothing is read; of other records all is
    found, and noted, anew."""

    def look(by: str) -> dict[str, object]:
        assert main([*explore(tiny, "--on", "source", "--json"), "--by", by]) == 0
        return json.loads(capsys.readouterr().out)

    def count() -> int:
        return len([event for event in tiny.events() if event.kind == "looked"])

    first = look("ana")
    with monkeypatch.context() as patched:
        patched.setattr("release_pipeline.flow.exploring.grounds.read_records", lambda *_, **__: pytest.fail("it was read"))
        assert (look("ana"), count()) == (first, 1)
        assert (look("ben"), count()) == (first, 2)
    [source] = tiny.home.rglob("people.csv")
    lines = source.read_text().splitlines(keepends=True)
    source.write_text("".join([lines[0], *lines[21:]]))
    assert look("ana")["rows"] != first["rows"]
    assert count() == 3


def test_a_public_file_is_tried_once(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ledger is asked anew each time."""
    arguments = explore(tiny, "--like", tmp_path / "other.csv", "--public", "on the shelf", "--json")
    assert main(arguments) == 0
    first = json.loads(capsys.readouterr().out)
    tiny.flow().run()
    assert main(arguments) == 0
    second = json.loads(capsys.readouterr().out)
    assert [one["columns"] for one in second["settings"]] == [one["columns"] for one in first["settings"]]
    assert second["settings"][0]["ledger"] != first["settings"][0]["ledger"]


def test_a_file_that_nobody_says_is_public_is_a_look(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a hash that only the site can make; outside of a site it is refused."""
    like = tmp_path / "other.csv"
    assert main(explore(tiny, "--like", like)) == 0
    [look] = [event for event in tiny.events() if event.kind == "looked"]
    import hashlib

    plain = hashlib.sha256(like.read_bytes()).hexdigest()
    assert re.fullmatch("[0-9a-f]{64}", look.content["digest"])
    assert look.content["digest"] != plain
    nowhere = tmp_path / "people.yaml"
    nowhere.write_text(policy_file(tiny).read_text())
    capsys.readouterr()
    assert main(["explore", str(nowhere), "--like", str(like), *FEW]) == 2
    assert "--public WHERE" in capsys.readouterr().err
    assert main(["explore", str(nowhere), "--on", "source", *FEW]) == 2
    assert "lies in no site" in capsys.readouterr().err


def test_a_site_may_forbid_looks(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is read then; a made-up table still is no look."""
    (tiny.home / "site.yaml").write_text("looks: forbidden\n")
    assert main(explore(tiny, "--on", "source")) == 1
    assert "forbids" in capsys.readouterr().err
    assert not [event for event in tiny.events() if event.kind == "looked"]
    assert main(explore(tiny, "--shape")) == 0
    assert not (tiny.site.vault / "looks").exists()


def test_the_document_has_settings_ledger_and_what_is_refused(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The policy's own first; after the planned series nothing is left of what it takes."""
    like = tmp_path / "other.csv"
    assert main([*explore(tiny, "--like", like, "--public", "here"), "--target", "error:income=0.05", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["on"], told["is_look"], told["rows"]) == ("release-pipeline/explore/1", "like", False, 1400)
    own = told["settings"][0]
    assert (own["number"], own["words"]) == (1, "idp-cbls, epsilon 2, k 5")
    assert own["ledger"]["next"]["after"] == "2"
    assert {solved["words"].split(",")[0] for solved in told["solved"]} == {"idp-cbls", "dp-cdf"}
    for solved in told["solved"]:
        assert solved["met"]
        assert solved["reached"]["error:income=0.05"] <= 0.05
    for setting in told["settings"]:
        for column in setting["columns"].values():
            error = column["error"]
            if error["low"] is not None:  # a few draws that disagree wildly have a middle alone
                assert error["low"] <= error["middle"] <= error["high"]


def test_what_the_ledger_would_refuse_is_not_simulated(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a cap in another definition, or for more than is left: told with the ledger's words; with --refused it is tried."""
    tiny.write_cap("epsilon: 1, definition: dp, scope: column")
    arguments = explore(tiny, "--like", tmp_path / "other.csv", "--public", "here")
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["words"] for one in told["settings"]] == ["dp-cdf, epsilon 1, k 5"]
    refused = {one["words"]: one["why"] for one in told["refused"] if one["by_ledger"]}
    assert "nothing bounds this policy" in refused["idp-cbls, epsilon 2, k 5"]
    assert "it takes 2, of which 1 is left" in refused["dp-cdf, epsilon 2, k 5"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "3 settings would be refused by the ledger: --refused tries them all the same" in said
    assert "idp-cbls was not tried: the ledger would refuse it: nothing bounds this policy" in said
    assert main([*arguments, "--json", "--refused"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["settings"]) == 4
    assert told["settings"][0]["ledger"]["needs"]


def test_what_is_written_is_what_was_tried(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--write --choose`: the file with this setting in it, and the difference in words; nothing where no setting is meant."""
    before = policy_file(tiny).read_text()
    like = ("--like", tmp_path / "other.csv", "--public", "here")
    assert main([*explore(tiny, *like), "--write"]) == 2
    assert "--choose" in capsys.readouterr().err
    assert policy_file(tiny).read_text() == before
    assert main([*explore(tiny, *like), "--all"]) == 0
    listed = capsys.readouterr().out
    found = re.search(r"^ *(\d+)  dp-cdf, epsilon 1, k 5 ", listed, re.MULTILINE)
    assert found is not None, listed
    assert main([*explore(tiny, *like), "--write", "--choose", found[1]]) == 0
    assert "protect.method" in (said := capsys.readouterr().out) or "method" in said
    written = load_policy(policy_file(tiny))
    assert (written.protect.method, str(written.protect.epsilon), written.protect.k) == ("dp-cdf", "1", 5)
    assert main([*explore(tiny, *like), "--write", "--choose", "99"]) == 2


def test_the_page_is_written_where_it_is_asked_for(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole, and not over another file."""
    page = tmp_path / "page.html"
    assert main([*explore(tiny, "--shape"), "-o", str(page)]) == 0
    assert "made up" in page.read_text()
    assert main([*explore(tiny, "--shape"), "-o", str(page)]) == 2
    assert main([*explore(tiny, "--shape"), "-o", str(page), "--overwrite"]) == 0
    assert main([*explore(tiny, "--shape"), "-o", str(tmp_path / "page.txt")]) == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--shape", "--methods", "dp-cfd"), "there is no method 'dp-cfd'. Did you mean 'dp-cdf'?"),
        (("--shape", "--epsilons", "1,x"), "'x' is no number above 0"),
        (("--shape", "--k", "0"), "'0' is no whole number above 0"),
        (("--shape", "--scopes", "row"), "'row' is not known here"),
        (("--shape", "--target", "error:incom=1"), "Did you mean 'income'?"),
        (("--shape", "--public", "here"), "only a file can be public"),
        (("--like", "{here}/none.csv"), "there is no such file"),
        (("--like", "{here}/short.csv", "--public", "here"), "income, rent are not in it"),
        (("--like", "{here}/few.csv", "--public", "here"), "at least 20 are needed"),
        (("--like", "{here}/text.csv", "--public", "here"), "only 0 of 60 records"),
        (("--like", "{home}", "--public", "here"), "no package of this site"),
    ],
)
def test_wrong_input_is_told_in_words(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], told: str
) -> None:
    """What is wrong, and what to do; never a traceback, never a cell."""
    for name, header, rows in (
        ("short", HEADER[:4], make_rows(60)),
        ("few", HEADER, make_rows(5)),
        ("text", HEADER, [{**row, "town": "CellCanary"} for row in make_rows(30)]),
    ):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, header, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    given = [word.format(here=tmp_path, home=tiny.home) for word in arguments]
    assert main(["explore", str(policy_file(tiny)), *given, "--quiet"]) in (1, 2)
    said = capsys.readouterr()
    assert told in said.err
    assert "CellCanary" not in said.out + said.err
    assert "Traceback" not in said.err


def test_entries_that_the_policy_does_not_declare_are_left_out_and_told(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a file that is only like the source: a town that is not declared, an income beyond the domain, a blank."""
    numbers = random.Random(3)  # noqa: S311
    rows = [{**row, "town": "west" if numbers.random() < 0.1 else row["town"]} for row in make_rows(300)]
    rows[0]["income"], rows[1]["income"] = "5000", ""
    with (tmp_path / "odd.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*HEADER, "more"])
        writer.writeheader()
        writer.writerows([{**row, "more": "x"} for row in rows])
    assert main([*explore(tiny, "--like", tmp_path / "odd.csv", "--public", "here"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    away = len([row for row in rows if row["town"] == "west"])
    assert told["warnings"][0] == f"town: {away} records have no entry that the policy declares, and are left out"
    assert told["warnings"][1] == "income: 1 records have no entry that the policy declares, and are left out"
    assert told["columns"][0]["clamped"] == pytest.approx(1 / 599, rel=0.01)
