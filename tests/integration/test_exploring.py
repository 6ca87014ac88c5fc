"""`explore` as somebody at a site uses it: on a public file and on a made-up table; what it opens, and what it writes."""

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
from typing import Any

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.explore import simulating
from release_pipeline.ledger.looks import find_looks_before
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from release_pipeline.rows.checks import round_up
from release_pipeline.store.registry import ReleaseId
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
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few releases are simulated: what they are like is looked at elsewhere."""
    monkeypatch.setattr(simulating, "MOST", 5)


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
    """Whatever opens them, a library included, the kernel would tell."""
    (tiny.home / "vault").mkdir(mode=0o700, exist_ok=True)

    def opened(*arguments: str) -> set[str]:
        program = [
            sys.executable,
            "-m",
            "release_pipeline.apps.cli",
            *explore(tiny, *arguments),
            "--rows",
            "100",
            "--methods",
            "laplace",
            "--epsilons",
            "1",
        ]
        with watched(tiny.home, tiny.home / "vault") as files:
            subprocess.run(program, check=True, capture_output=True)
        return {Path(file).name for file in files}

    assert "people.csv" not in opened("--like", str(tmp_path / "other.csv"), "--public", "on the shelf")
    assert "people.csv" not in opened("--shape")


def test_the_document_has_settings_and_the_ledger(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The policy's own first; after the planned series nothing is left of what it takes."""
    like = tmp_path / "other.csv"
    assert main([*explore(tiny, "--like", like, "--public", "here"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["format"], told["on"]) == ("release-pipeline/explore/1", "like")
    assert told["rows"] == 1400
    own = told["settings"][0]
    assert (own["number"], own["words"]) == (1, "idp-cbls, epsilon 2, k 5")
    assert own["ledger"]["next"]["after"] == "2"


def test_what_the_ledger_would_refuse_is_not_simulated(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a cap in another definition, or for more than is left: told with the ledger's words; with --refused it is tried."""
    tiny.write_cap("epsilon: 1, definition: dp, scope: column")
    arguments = explore(tiny, "--like", tmp_path / "other.csv", "--public", "here")
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["words"] for one in told["settings"]] == ["dp-cdf, epsilon 1, k 5"]
    assert [one["number"] for one in (*told["settings"], *told["refused"])] == [2, 1, 3, 4]
    refused = {one["words"]: one["why"] for one in told["refused"] if one["by_ledger"]}
    assert "Nothing bounds this policy" in refused["idp-cbls, epsilon 2, k 5"]
    assert "it takes 2, of which 1 is left" in refused["dp-cdf, epsilon 2, k 5"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "3 settings would be refused by the ledger: --refused tries them all the same" in said
    assert "idp-cbls was not tried: the ledger would refuse it: Nothing bounds this policy" in said
    assert main([*arguments, "--all"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not tried: idp-cbls, epsilon 2, k 5: ")]
    assert len(lines) == 1
    assert "it needs a cap in its own definition and scope, another method" in lines[0]
    assert main([*arguments, "--json", "--refused"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["settings"]) == 4
    assert told["settings"][0]["ledger"]["needs"]


def test_the_printed_line_is_what_was_tried(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under the table each setting has the line of a policy file; the file with it is one that `check` accepts, and was not
    changed by exploring."""
    before = policy_file(tiny).read_text()
    assert main([*explore(tiny, "--like", tmp_path / "other.csv", "--public", "here"), "--all"]) == 0
    listed = capsys.readouterr().out
    assert policy_file(tiny).read_text() == before
    found = re.search(r"^ *(\d+)  dp-cdf, epsilon 1, k 5 ", listed, re.MULTILINE)
    assert found is not None, listed
    line = re.search(rf"^to take {found[1]}: (protect: .*)$", listed, re.MULTILINE)
    assert line is not None, listed
    policy_file(tiny).write_text(re.sub(r"^protect: .*$", line[1], before, flags=re.MULTILINE))
    written = load_policy(policy_file(tiny))
    assert (written.protect.method, str(written.protect.epsilon), written.protect.k) == ("dp-cdf", "1", 5)
    assert main(["check", str(policy_file(tiny))]) == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--shape", "--methods", "dp-cfd"), "there is no method 'dp-cfd'. Did you mean 'dp-cdf'?"),
        (("--shape", "--epsilons", "1,x"), "'x' is no number above 0"),
        (("--shape", "--k", "0"), "Invalid value for '--k': 0 is not in the range"),
        ((), "it is not said what settings are tried on"),
        (("--shape", "--public", "here"), "only a file can be public"),
        (("--like", "{here}/few.csv"), "settings are tried on public files only"),
        (("--like", "{here}/none.csv"), "there is no such file"),
        (("--like", "{here}/short.csv", "--public", "here"), "income, rent are not in it"),
        (("--like", "{here}/few.csv", "--public", "here"), "at least 20 are needed"),
        (("--like", "{here}/text.csv", "--public", "here"), "too few of 60 records"),
        (("--like", "{home}", "--public", "here"), "this is a directory, not a file"),
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
    assert told["warnings"][0] == f"town: up to {round_up(away)} records have no entry that the policy declares, and are left out"
    assert told["warnings"][1] == "income: up to 10 records have no entry that the policy declares, and are left out"
    assert told["warnings"][2] == "income: 0.2% of the records lie outside the domain, and are moved to its ends"


def kinds_of(tiny: TinySite) -> list[str]:
    """What is noted of looks, and of files that are public."""
    return [event.kind for event in tiny.events() if event.kind in ("looked", "public")]


def copy_to(path: Path, source: Path) -> Path:
    """A copy."""
    path.write_bytes(source.read_bytes())
    return path


@pytest.mark.parametrize("how", ["source", "link", "hard link", "copy", "vault", "of a broken policy", "gone, and masked before"])
def test_a_source_is_not_public_whatever_anybody_says(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """Under any name, and under the policy of another place; what the site may forbid is not had so."""
    source, other = tiny.home / "people.csv", tmp_path / "innocent.csv"
    policy = copy_to(tmp_path / "people.yaml", policy_file(tiny)) if how == "source" else policy_file(tiny)
    match how:
        case "source":
            other = source
        case "link":
            other.symlink_to(source)
        case "hard link":
            other.hardlink_to(source)
        case "vault":
            (tiny.home / "vault" / "looks").mkdir(parents=True)
            other = copy_to(tiny.home / "vault" / "looks" / "innocent.csv", tmp_path / "other.csv")
        case "of a broken policy":
            policy = tiny.home / "policies" / "mine.yaml"
            policy.write_text(
                policy_file(tiny).read_text().replace("policy: people", "policy: mine").replace("people.csv", "my.csv")
            )
            policy_file(tiny).write_text(policy_file(tiny).read_text().replace("idp-cbls", "no-method"))
            copy_to(other, source)
        case "gone, and masked before":
            assert mask(tiny, source, tmp_path / "out.csv") == 0
            source.rename(other)
        case _:
            copy_to(other, source)
    (tiny.home / "site.yaml").write_text("looks: forbidden\n")
    before = kinds_of(tiny)
    assert main(["explore", str(policy), "--like", str(other), "--public", "on the shelf", *FEW]) == 2
    assert "this file is not public: it " in capsys.readouterr().err
    assert kinds_of(tiny) == before


def test_what_is_called_public_is_noted_and_told_if_it_is_the_source_after_all(tiny: TinySite, tmp_path: Path) -> None:
    """Once for the same words: no look, until a release is charged for that very file."""
    like = tmp_path / "other.csv"
    for _ in range(2):
        assert main([*explore(tiny, "--like", like, "--public", "on the shelf"), "--by", "ana"]) == 0
    assert kinds_of(tiny) == ["public"]
    assert find_looks_before(tiny.events(), ReleaseId("people", "1")) == ()
    run_release(tiny.flow())
    assert "looks" not in tiny.status().facts
    copy_to(tiny.home / "people.csv", like)
    run_release(tiny.flow("2"))
    [told] = find_looks_before(tiny.events(), ReleaseId("people", "2"))
    assert (told.by, told.on, told.where) == ("ana", "public", "on the shelf")
    assert tiny.status("2").facts["looks"] == 1


def test_a_source_of_another_site_is_not_public(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever site is made for it: that of the file knows it."""
    other = make_site(tmp_path / "throw-away", rows=make_rows(600), gates=GATES, shape=SHAPE)
    assert main(explore(other, "--like", tiny.home / "people.csv", "--public", "x")) == 2
    assert "this file is not public" in capsys.readouterr().err
    assert kinds_of(tiny) == kinds_of(other) == []
    assert main(explore(tiny, "--shape", "--home", other.home)) == 0


def mask(tiny: TinySite, source: Path, out: Path, *arguments: str, policy: Path | None = None) -> int:
    """What `mask` gives for a file under the policy of the site, or another."""
    given = ["mask", str(source), "--policy", str(policy or policy_file(tiny)), "--release", "1", "-o", str(out), "--unaccounted"]
    return main([*given, "--quiet", *arguments])


def test_masking_a_source_is_a_look(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under the policy of the site or one of elsewhere; it is told on the card, and refused where looks are."""
    out, source = tmp_path / "out.csv", tiny.home / "people.csv"
    elsewhere = copy_to(tmp_path / "people.yaml", policy_file(tiny))
    assert mask(tiny, source, out, "--by", "ana", "--evidence", str(tmp_path / "out.json")) == 0
    assert mask(tiny, copy_to(tmp_path / "copy.csv", source), out, "--overwrite", "--by", "ben") == 0
    assert mask(tiny, source, out, "--overwrite", "--by", "cleo", policy=elsewhere) == 0
    looks = [event.content for event in tiny.events() if event.kind == "looked"]
    assert [(look["by"], look["on"]) for look in looks] == [("ana", "mask"), ("ben", "mask"), ("cleo", "mask")]
    assert looks[0]["compared"] == ["masked by idp-cbls, epsilon 2, k 5, with exact scales and errors"]
    assert looks[1]["compared"] == ["masked by idp-cbls, epsilon 2, k 5"]
    run_release(tiny.flow())
    assert tiny.status().facts["looks"] == 3
    assert "which was masked without an account" in (tiny.folder() / "report.html").read_text()
    (tiny.home / "site.yaml").write_text("looks: forbidden\n")
    out.unlink()
    for file, policy in ((source, None), (tmp_path / "copy.csv", None), (source, elsewhere)):
        assert mask(tiny, file, out, policy=policy) == 1
        assert "forbids to look" in capsys.readouterr().err
    assert not out.exists()


def test_nothing_that_is_told_or_kept_has_a_cell(tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every income is a canary, and every person and town. Lines, page, document and events have none."""
    canaries = [730_000 + 7 * number for number in range(1, 701)]
    rows = [{**row, "income": str(canary)} for row, canary in zip(make_rows(700, releases=["1"]), canaries, strict=True)]
    tiny.write_rows(rows)
    text = policy_file(tiny).read_text()
    policy_file(tiny).write_text(
        text.replace("domain: [0, 1000]", "domain: [700000, 800000]")
        .replace("{50%: 200}", "{50%: 760000}")
        .replace("at: {0: 10%}, ", "")
    )
    like = copy_to(tmp_path / "like.csv", tiny.home / "people.csv")
    tiny.write_rows(make_rows(600))  # the file is the source no more
    arguments = explore(tiny, "--like", like, "--public", "here")
    assert main([*arguments, "--json"]) == 0
    assert main([*arguments, "--all"]) == 0
    said = capsys.readouterr()
    for told in (said.out, said.err, *(str(event.content) for event in tiny.events())):
        assert not re.search(r"(?<![\w.])73\d{4}(?!\w)", told)
        assert not re.search(rf"\b{rows[5]['person']}\b", told)


def test_what_is_read_is_what_was_hashed(
    tiny: TinySite, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another takes the place of in between is refused."""
    from release_pipeline.explore import data

    like, found = tmp_path / "other.csv", data.read_file

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        copy_to(like, tiny.home / "people.csv")
        return found(*arguments, **named)

    monkeypatch.setattr(data, "read_file", meanwhile)
    assert main(explore(tiny, "--like", like, "--public", "here")) == 1
    assert "changed while it was read" in capsys.readouterr().err
