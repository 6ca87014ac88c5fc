"""Bad input at the command line: one message in words, the right exit code, nothing left behind, and never a cell of the data.

Every input holds canaries in every column, the offending cell included where it can. Whatever a command says, logs or writes
is searched for them by `assert_private`, which all tests share; the last test shows that a leak would be found.
"""

from __future__ import annotations

import csv
import datetime as dt
import errno
import io
import json
import logging
import os
import re
import shlex
import signal
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from release_pipeline.apps.cli import main
from release_pipeline.pipeline import mask_file as flow_mask

WORD = "zyxCANARYzyx"
NUMBER = "735184629"
DAY = dt.date(7351, 8, 4)
HEADER = ("id", "site", "income", "score", "note")
POLICY = f"""\
policy: people
steward: ana
population: people
source: {{path: people.csv}}
person: {{column: id}}
releases: once
protect: {{method: idp-cbls, epsilon: 2, k: 3}}
columns:
  id: {{role: identifier, do: drop}}
  site: {{role: quasi, do: keep, values: [{WORD} north, {WORD} south, other], why: known sites}}
  income: {{role: confidential, do: noise, domain: [0, 1000000000], grid: 0.01, outside: fail, missing: fail, why: known}}
  score: {{role: confidential, do: noise, domain: [0, 1000000000], grid: 0.01, outside: fail, missing: fail, why: known}}
drop: [note]
gates: {{min_rows: 10}}
"""
WAVES = (("{path: people.csv}", "{path: people.csv, release_column: wave}"), ("releases: once", 'releases: ["1", "2", "3"]'))
EXPLICIT_SITES = (f"[{WORD} north, {WORD} south, other]", "[north, south, other]")
Changes = tuple[tuple[str, str], ...]
Rows = list[list[str]]


@dataclass(frozen=True)
class Outcome:
    """What one command returned, said (standard output, error and log) and changed in its folder."""

    code: int
    said: dict[str, str]
    changed: dict[str, bytes | None]  # None: removed

    @property
    def errors(self) -> str:
        return self.said["standard error"]


class Runner:
    """Runs commands in a folder of its own, of which every byte is known before and after."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        self.folder = folder
        self._capfd = capfd
        self._caplog = caplog

    def __call__(self, command: str | Sequence[str]) -> Outcome:
        before = self._files()
        code = main(shlex.split(command) if isinstance(command, str) else command)
        out, err = self._capfd.readouterr()
        after = self._files()
        changed = {name: after.get(name) for name in before | after if before.get(name) != after.get(name)}
        return Outcome(code, {"standard output": out, "standard error": err, "log": self._caplog.text}, changed)

    def write(self, name: str, content: str | bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def _files(self) -> dict[str, bytes]:
        paths = (path for path in self.folder.rglob("*") if path.is_file() and os.access(path, os.R_OK))
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[Runner]:
    """A runner whose working and temporary folder is watched; the handler that `main` sets is put back."""
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    caplog.set_level(logging.DEBUG)
    yield Runner(tmp_path, capfd, caplog)
    signal.signal(signal.SIGTERM, handler)


def has_canary(text: str) -> bool:
    """Whether a canary is in `text`, whatever separators, exponents or capitals it was written with."""
    plain = re.sub(r"[^a-z0-9]", "", text.casefold())
    return WORD.casefold() in plain or NUMBER in plain or re.search(r"7351\W+0?8\W", text) is not None


def assert_private(outcome: Outcome, *, released: Sequence[str] = ()) -> None:
    """No canary was said, logged or written, file names included; `released` files are not searched."""
    for where, text in outcome.said.items():
        assert not has_canary(text), f"a canary is on {where}"
    for name, content in outcome.changed.items():
        assert not has_canary(name), "a canary is in the name of a file"
        if name not in released:
            assert not has_canary((content or b"").decode("latin-1")), f"a canary is in the file {name}"


def assert_refused(outcome: Outcome, *, code: int, phrase: str) -> None:
    """The command ended with `code` and said `phrase`; it changed no file, left none behind, and told no cell."""
    assert_private(outcome)
    assert "Traceback" not in outcome.errors
    assert "internal error" not in outcome.errors
    assert (outcome.code, outcome.changed) == (code, {}), outcome.errors
    assert phrase in outcome.errors


def change(text: str, *changes: tuple[str, str]) -> str:
    """`text` with the first of each old part replaced; every one must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def records(count: int = 12) -> Rows:
    """Good records of different people, half of them in each site."""
    return [
        [
            f"{WORD} {i}",
            f"{WORD} {'north' if i % 2 else 'south'}",
            f"{NUMBER}.{i:02d}",
            f"{NUMBER}.{7 * i % 100:02d}",
            f"{WORD} note",
        ]
        for i in range(count)
    ]


def as_csv(header: Sequence[str] = HEADER, rows: Rows | None = None, *, separator: str = ",") -> bytes:
    """Lines of texts, exactly as they are: no quoting."""
    return "".join(separator.join(row) + "\n" for row in [header, *(records() if rows is None else rows)]).encode()


def with_cell(name: str, text: str, *more: str) -> bytes:
    """The good table with other texts in one column of the sixth and the following records."""
    rows = records()
    for row, cell in zip(rows[5:], (text, *more), strict=False):
        row[HEADER.index(name)] = cell
    return as_csv(rows=rows)


def with_column(name: str, texts: Callable[[int], str]) -> bytes:
    """The good table with another text in one column of every record."""
    return as_csv(
        rows=[
            [texts(i) if place == HEADER.index(name) else cell for place, cell in enumerate(row)]
            for i, row in enumerate(records())
        ]
    )


def with_extra(name: str) -> bytes:
    """The good table with one more column."""
    return as_csv([*HEADER, name], [[*row, WORD] for row in records()])


def as_parquet(*, drop: Sequence[str] = (), **columns: Any) -> bytes:
    """The good table as Parquet, its numbers as doubles, with some columns replaced."""
    texts = dict(zip(HEADER, map(list, zip(*records(), strict=True)), strict=True))
    typed = texts | {name: [float(text) for text in texts[name]] for name in ("income", "score")} | columns
    return parquet_bytes(pa.table({name: values for name, values in typed.items() if name not in drop}))


def parquet_bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def numbers(*first: float | None) -> list[float | None]:
    """Twelve numbers that start with these."""
    return [*first, *(float(f"{NUMBER}.{i:02d}") for i in range(12 - len(first)))]


def not_utf8() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 12, pa.array([f"{WORD} {i}".encode() + b"\xff" for i in range(12)]).buffers())


def damaged(content: bytes) -> bytes:
    """Parquet with its footer whole and its first pages overwritten."""
    return content[:40] + b"\xff" * 400 + content[440:]


def bad(id: str, content: bytes, phrase: str, *changes: tuple[str, str], name: str = "people.csv") -> Any:
    return pytest.param(name, content, changes, phrase, id=id)


def bad_parquet(id: str, content: bytes, phrase: str, *changes: tuple[str, str]) -> Any:
    return bad(f"parquet-{id}", content, phrase, *changes, name="people.parquet")


NOT_A_NUMBER = "column income: up to 10 records where something else than a number stands"
CONSTANT = "column income: on its domain and grid all records are the same"
LATE = as_csv(rows=records(20_000))  # over a megabyte: what comes after is not seen with the header
CELLS = [
    bad("null", with_cell("income", ""), "column income: up to 10 records without a value, and missing is fail"),
    bad("null-category", with_cell("site", ""), "column site: up to 10 records without a value, and missing is fail"),
    bad("null-person", with_cell("id", ""), "column id: up to 10 records without a person"),
    bad("nan", with_cell("income", "nan"), NOT_A_NUMBER),
    bad("beyond-double", with_cell("income", f"{NUMBER}e400"), "column income: up to 10 records with NaN or an infinite number"),
    bad("text-in-numbers", with_cell("income", WORD), NOT_A_NUMBER),
    bad("decimal-comma", with_cell("income", f'"{NUMBER},25"'), NOT_A_NUMBER),
    bad(
        "below-domain",
        with_cell("income", f"-{NUMBER}"),
        "column income: up to 10 records outside the declared domain (up to 10 below, none above)",
    ),
    bad("person-twice", with_cell("id", f"{WORD} 1"), "column id: up to 10 persons have more than the 1 declared record"),
    bad(
        "undeclared-category",
        with_cell("site", f"{WORD} east"),
        "column site: up to 10 records with a category that values does not list",
    ),
]
TABLES = [
    bad("below-min-rows", as_csv(rows=records(9)), "9 records are fewer than the 10 that the policy asks for"),
    bad("below-two-clusters", as_csv(), "12 records are fewer than the 14", ("k: 3", "k: 7"), ("gates: {min_rows: 10}\n", "")),
    bad("constant", with_column("income", lambda _: f"{NUMBER}.25"), CONSTANT),
    bad(
        "constant-once-clamped",
        as_csv(),
        CONSTANT,
        ("[0, 1000000000], grid: 0.01, outside: fail", "[0, 9], grid: 1, outside: clamp"),
        ("min_rows: 10", "min_rows: 10, clamped_at_most: 100%"),
    ),
    bad("constant-category", with_column("site", lambda _: f"{WORD} north"), "column site: all records have the same value"),
    bad("header-twice", with_extra("income"), "column income: stands in the header twice"),
    bad("look-alike-width", with_extra("\uff49ncome"), "columns income and \uff49ncome: look alike"),
    bad("column-without-name", with_extra(""), "for one reason.\n  column number 6 has no name"),
    bad("no-header", as_csv(records()[0], records()[1:]), "5 of 5 declared columns are not in the file"),
    bad("column-missing", as_csv(HEADER[:4], [row[:4] for row in records()]), "column note: declared, but not in the file"),
    bad("column-undeclared", with_extra("more"), "column more: in the file, but not declared"),
    bad("empty", b"", "the file is empty"),
    bad("header-only", as_csv(rows=[]), "there are no records"),
    bad("field-too-many", with_cell("note", f"{WORD},{WORD}"), "line 7 cannot be read: it has another number of fields"),
    bad("quote-open", with_cell("note", f'"{WORD}'), "line 7 cannot be read: a quoted field does not end"),
    bad(
        "quote-of-header-ends-in-a-cell",
        as_csv([*HEADER[:4], '"note'], [[*row[:4], f'{WORD}"'] for row in records()]),
        "people.csv: ",
    ),
    bad("not-utf8", as_csv() + f"{WORD} 12,é,1,1,x\n".encode("latin-1"), "the file is not UTF-8 text"),
    bad(
        "not-utf8-late",
        LATE + f"{WORD} é,{WORD} north,1,1,x\n".encode("latin-1"),
        "line 20002 cannot be read: it is not UTF-8 text",
    ),
    bad("utf16", as_csv().decode().encode("utf-16"), "the file is not UTF-8 text"),
    bad("nul-late", LATE + f"{WORD},{WORD} north,{NUMBER}\0,1,x\n".encode(), NOT_A_NUMBER),
    bad("parquet-named-csv", as_parquet(), "the file is not UTF-8 text"),
]
PARQUET = [
    bad_parquet(
        "nan", as_parquet(income=numbers(float("nan"))), "column income: up to 10 records with NaN or an infinite number"
    ),
    bad_parquet(
        "null-person", as_parquet(id=[None, *(f"{WORD} {i}" for i in range(11))]), "column id: up to 10 records without a person"
    ),
    bad_parquet("nan-category", as_parquet(site=[float("nan"), *[float(NUMBER)] * 11]), "column site: "),
    bad_parquet("text", as_parquet(income=[WORD, *map(str, numbers()[1:])]), NOT_A_NUMBER),
    bad_parquet("boolean", as_parquet(income=[True, False] * 6), "column income: is of type BOOLEAN, not a number"),
    bad_parquet("list", as_parquet(income=[[float(NUMBER)]] * 12), "not a number"),
    bad_parquet(
        "decimal-outside", as_parquet(income=[Decimal(f"{NUMBER}{i:02d}.25") for i in range(12)]), "up to 20 records outside"
    ),
    bad_parquet("not-utf8", as_parquet(id=not_utf8()), "cannot be read"),
    bad_parquet(
        "header-twice",
        parquet_bytes(pa.table([pa.array([WORD] * 12)] * 6, names=[*HEADER, "note"])),
        "column note: stands in the header twice",
    ),
    bad_parquet("no-records", parquet_bytes(pq.read_table(io.BytesIO(as_parquet())).slice(0, 0)), "there are no records"),
    bad_parquet("truncated", as_parquet()[:-100], "the file is no readable Parquet; it may be truncated"),
    bad_parquet("damaged", damaged(as_parquet()), "cannot be read"),
    bad_parquet("csv-renamed", as_csv(), "the file is no readable Parquet"),
]


@pytest.mark.parametrize(("name", "content", "changes", "phrase"), [*CELLS, *TABLES, *PARQUET])
def test_mask_refuses_bad_data(run: Runner, name: str, content: bytes, changes: Changes, phrase: str) -> None:
    """Bad data give exit code 1 and one message; an output that was there before stays as it was."""
    run.write(name, content)
    run.write("people.yaml", change(POLICY, *changes))
    run.write("out.json", "{}\n")
    options = "--unaccounted --evidence out.json --overwrite"
    assert_refused(run(f"mask {name} --policy people.yaml -o out.csv {options}"), code=1, phrase=phrase)


MASK = "mask people.csv --policy people.yaml --unaccounted"
WAVE = "mask waves.csv --policy waves.yaml --unaccounted -o out.csv"
LONG = "x" * 300
COMMANDS = [
    ("input-missing", "mask nowhere.csv --policy people.yaml --unaccounted -o out.csv", 2, "there is no such file"),
    ("input-directory", "mask folder --policy people.yaml --unaccounted -o out.csv", 2, "this is a directory, not a file"),
    ("input-name-too-long", f"mask {LONG}.csv --policy people.yaml --unaccounted -o out.csv", 2, f"{LONG}.csv: "),
    ("input-wrong-ending", "mask people.yaml --policy people.yaml --unaccounted -o out.csv", 2, "such a file is not read"),
    ("release-unknown", f"{WAVE} --release 7", 2, "policy people has no release 7. Name one with --release: 1, 2, 3"),
    ("release-not-named", WAVE, 2, "policy people has several releases. Name one with --release: 1, 2, 3"),
    ("release-without-records", f"{WAVE} --release 3", 1, "there are no records of release 3"),
    ("output-exists", f"{MASK} -o taken.csv", 2, "the file exists already"),
    ("output-is-input", f"{MASK} -o people.csv", 2, "people.csv: the file exists already"),
    ("output-links-to-input", f"{MASK} -o link.csv --overwrite", 2, "the output would replace the input"),
    ("output-shares-the-input", f"{MASK} -o hard.csv --overwrite", 2, "the output would replace the input"),
    ("output-in-missing-folder", f"{MASK} -o nowhere/out.csv", 2, "its folder does not exist"),
    ("output-wrong-ending", f"{MASK} -o out.xlsx", 2, "the output must end in .csv or .parquet"),
    ("evidence-wrong-ending", f"{MASK} -o out.csv --evidence out.txt", 2, "must end in .json"),
    ("evidence-exists", f"{MASK} -o out.csv --evidence taken.json", 2, "taken.json: the file exists already"),
    ("not-unaccounted", "mask people.csv --policy people.yaml -o out.csv", 2, "Add --unaccounted if this is not a release"),
    ("no-policy-named", "mask people.csv -o out.csv --unaccounted", 2, "--policy"),
    ("mask-policy-missing", "mask people.csv --policy nowhere.yaml --unaccounted -o out.csv", 2, "there is no such file"),
    ("mask-policy-is-the-data", "mask people.csv --policy people.csv --unaccounted -o out.csv", 1, "a policy is a mapping"),
    ("check-policy-directory", "check folder", 2, "folder: this is a directory"),
    ("check-the-parquet", "check people.parquet", 1, "this is not UTF-8 text"),
    ("init-file-missing", "init people --from nowhere.csv", 2, "there is no such file"),
    ("init-a-first-person", "init people --from first.csv", 1, "the first line may be a record and no header"),
    ("init-quote-of-header-ends-in-a-cell", "init people --from swallow.csv", 1, "swallow.csv: "),
    ("check-no-rows", "check people.yaml --rows 0", 2, "Invalid value for '--rows': 0 is not in the range"),
]


@pytest.mark.parametrize(("command", "code", "phrase"), [row[1:] for row in COMMANDS], ids=[row[0] for row in COMMANDS])
def test_commands_refuse_wrong_usage(run: Runner, command: str, code: int, phrase: str) -> None:
    """Wrong usage gives exit code 2, what only the data can show 1; every file stays as it was."""
    run.write("people.csv", as_csv())
    run.write("people.parquet", as_parquet())
    run.write("people.yaml", POLICY)
    waves = [["1", *row] for row in records()] + [["2", *row] for row in records(9)] + [[WORD, *row] for row in records()]
    run.write("waves.csv", as_csv(["wave", *HEADER], waves))
    run.write("waves.yaml", change(POLICY, *WAVES))
    run.write("swallow.csv", as_csv([*HEADER[:4], '"note'], [[*row[:4], f'{WORD}"'] for row in records()]))
    run.write("first.csv", as_csv([WORD, "b"], [["a", "c"], ["d", "e"]]))
    run.write("taken.csv", "what was there\n")
    run.write("taken.json", "{}\n")
    run.write("folder/inner", "")
    (run.folder / "link.csv").symlink_to("people.csv")
    (run.folder / "hard.csv").hardlink_to(run.folder / "people.csv")
    assert_refused(run(command), code=code, phrase=phrase)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize(
    ("locked", "mode", "code", "phrase"),
    [
        ("data/people.csv", 0o000, 2, "cannot be read"),
        ("policies/people.yaml", 0o000, 2, "the policy cannot be read"),
        ("releases", 0o500, 2, "its folder cannot be written to"),
    ],
    ids=["input", "policy", "read-only-folder"],
)
def test_mask_refuses_what_it_has_no_permission_for(run: Runner, locked: str, mode: int, code: int, phrase: str) -> None:
    """A file or folder that the user may not open is refused in words, and nothing is left in it."""
    run.write("data/people.csv", as_csv())
    run.write("policies/people.yaml", POLICY)
    (run.folder / "releases").mkdir()
    path = run.folder / locked
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        outcome = run("mask data/people.csv --policy policies/people.yaml -o releases/out.csv --unaccounted")
    finally:
        path.chmod(before)
    assert_refused(outcome, code=code, phrase=phrase)
    assert not list((run.folder / "releases").iterdir())


@pytest.mark.parametrize("existing", [False, True], ids=["new", "over"])
def test_a_full_disk_leaves_neither_output_nor_evidence(run: Runner, monkeypatch: pytest.MonkeyPatch, existing: bool) -> None:
    """Output and evidence appear together or not at all."""

    def fill(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pyarrow.csv, "CSVWriter", fill)
    run.write("people.csv", as_csv())
    run.write("people.yaml", POLICY)
    if existing:
        run.write("out.csv", "what was there\n")
        run.write("out.json", "{}\n")
    outcome = run(f"{MASK} -o out.csv --evidence out.json --overwrite")
    assert_refused(outcome, code=1, phrase="out.csv: the disk is full, or this account may write no more to it. Make room.")


def changed_policy(*changes: tuple[str, str]) -> bytes:
    return change(POLICY, *changes).encode()


BAD_POLICIES = [
    ("not-yaml", b"policy: [people\n", "this is not readable as YAML"),
    ("not-utf8", "policy: é\n".encode("latin-1"), "this is not UTF-8 text"),
    ("two-errors", changed_policy(("epsilon: 2, ", ""), ("min_rows: 10", "min_rows: 5")), "the policy has 2 errors"),
]


@pytest.mark.parametrize(("content", "phrase"), [row[1:] for row in BAD_POLICIES], ids=[row[0] for row in BAD_POLICIES])
@pytest.mark.parametrize("command", ["check people.yaml", f"{MASK} -o out.csv"], ids=["check", "mask"])
def test_bad_policies_are_refused(run: Runner, content: bytes, phrase: str, command: str) -> None:
    """A policy with errors gives exit code 1 and names the file and the place; the data are not touched."""
    run.write("people.csv", as_csv())
    run.write("people.yaml", content)
    outcome = run(command)
    assert_refused(outcome, code=1, phrase=phrase)
    assert "people.yaml" in outcome.errors


def quoted(rows: Rows) -> bytes:
    """Every field in quotes, the notes with a delimiter, a quote and a line break in them."""
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([HEADER, *([*row[:4], f'{row[4]}, "so"\nsaid'] for row in rows)])
    return buffer.getvalue().encode()


def good(id: str, content: bytes, *changes: tuple[str, str], name: str = "people.csv") -> Any:
    return pytest.param(name, content, changes, id=id)


DECOMPOSED = (("  income:", "  cafe\u0301:"),)
GOOD = [
    good("semicolon", as_csv(separator=";")),
    good("byte-order-mark", b"\xef\xbb\xbf" + as_csv()),
    good("crlf", as_csv().replace(b"\n", b"\r\n")),
    good("blank-lines-at-end", as_csv() + b"\n\n"),
    good("quoted", quoted(records())),
    good("other-order", as_csv(HEADER[::-1], [row[::-1] for row in records()])),
    good("upper-case-ending", as_csv(), name="PEOPLE.CSV"),
    good("nfc-header-nfd-policy", as_csv([name.replace("income", "caf\u00e9") for name in HEADER]), *DECOMPOSED),
    good("name-with-stars", as_csv(), name="pe*ple?.csv"),
    good("folder-named-like-a-column", as_csv(), name="site=other/people.csv"),
    good("parquet-uint64", as_parquet(income=pa.array(range(735184625, 735184637), pa.uint64())), name="people.parquet"),
    good("parquet-decimal", as_parquet(income=[Decimal(f"{NUMBER}.{i:02d}") for i in range(12)]), name="people.parquet"),
    good("parquet-float32", as_parquet(income=pa.array([7351846.5 + i for i in range(12)], pa.float32())), name="people.parquet"),
    good(
        "parquet-booleans",
        as_parquet(site=[True, False] * 6),
        (f"[{WORD} north, {WORD} south, other]", "[true, false]"),
        name="people.parquet",
    ),
]


@dataclass(frozen=True)
class Released:
    """A released table as texts and numbers by column, and the evidence beside it."""

    columns: dict[str, list[Any]]
    evidence: dict[str, Any]
    outcome: Outcome

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[name]


def release(run: Runner, name: str, content: bytes, *changes: tuple[str, str], options: str = "") -> Released:
    """Mask `content`; what leaves says nothing of the input beyond the released table, and is private where it must be."""
    run.write(name, content)
    run.write("people.yaml", change(POLICY, *changes))
    command = ["mask", name, "--policy", "people.yaml", "-o", "out.csv", "--evidence", "out.json", "--unaccounted"]
    outcome = run([*command, "--overwrite", *options.split()])
    assert outcome.code == 0, outcome.errors
    assert outcome.changed.keys() == {"out.csv", "out.json"}
    assert_private(outcome, released=["out.csv"])
    assert stat.S_IMODE((run.folder / "out.json").stat().st_mode) == 0o600
    evidence = json.loads(outcome.changed["out.json"] or b"")
    assert evidence["stamp"] == "not a release"
    header, *rows = csv.reader(io.StringIO((outcome.changed["out.csv"] or b"").decode()))
    return Released({column: [row[i] for row in rows] for i, column in enumerate(header)}, evidence, outcome)


@pytest.mark.parametrize(("name", "content", "changes"), GOOD)
def test_mask_accepts_the_same_table_in_many_forms(run: Runner, name: str, content: bytes, changes: Changes) -> None:
    """Columns and their order are the policy's, no record is lost, noise stays in the domain, kept columns are the same bag."""
    decoy = [[f"{WORD} decoy {i}", "other", str(i), str(i), WORD] for i in range(20)]
    run.write("people1.csv", as_csv(rows=decoy))
    run.write("people1.parquet", as_parquet())
    run.write("peopleX.csv", as_csv(rows=decoy))
    released = release(run, name, content, *changes)
    site, income, score = released.columns
    assert [column[:4] for column in (site, score)] == ["site", "scor"]
    assert income.startswith(("income", "caf"))
    kinds = Counter(released[site])
    assert sorted(kinds.values()) == [6, 6], kinds
    assert all(0 <= float(number) <= 1e9 for name in (income, score) for number in released[name])
    assert WORD not in (released.outcome.changed["out.csv"] or b"").decode().replace(f"{WORD} north", "").replace(
        f"{WORD} south", ""
    )
    assert (released.evidence["records"], list(released.evidence["columns"])) == (12, [income, score])


def test_mask_writes_parquet_with_types(run: Runner) -> None:
    """Numbers leave as doubles, categories that are whole numbers as integers, and the file names no pandas or Arrow schema."""
    run.write("people.parquet", as_parquet(site=pa.array([1, 2] * 6, pa.int8())))
    run.write("people.yaml", change(POLICY, (EXPLICIT_SITES[0], "[1, 2]")))
    outcome = run("mask people.parquet --policy people.yaml -o out.parquet --unaccounted")
    assert (outcome.code, outcome.changed.keys()) == (0, {"out.parquet"})
    assert_private(outcome, released=["out.parquet"])
    table = pq.read_table(run.folder / "out.parquet")
    assert table.schema.equals(pa.schema({"site": pa.int64(), "income": pa.float64(), "score": pa.float64()}))
    assert table.schema.metadata is None
    assert Counter(table["site"].to_pylist()) == {1: 6, 2: 6}


def test_the_same_policy_masks_twice_with_different_noise_and_order(run: Runner) -> None:
    """Every run has a secret of its own: neither the noise nor the order of the records comes back."""
    sites = ", ".join(str(i) for i in range(40))
    rows = [[f"{WORD} {i}", str(i), f"{i * 1000}", f"{i * 777}", WORD] for i in range(40)]
    once, again = (release(run, "people.csv", as_csv(rows=rows), (EXPLICIT_SITES[0], f"[{sites}]")) for _ in range(2))
    assert sorted(map(int, once["site"])) == sorted(map(int, again["site"])) == list(range(40))
    assert once["site"] != again["site"]
    assert once["site"] != [str(i) for i in range(40)]
    assert set(once["income"]) != set(again["income"])


def test_shuffled_columns_stay_side_by_side(run: Runner) -> None:
    """All columns leave in one common order: with almost no noise every record still says what it said."""
    rows = [[f"{WORD} {i}", "north" if i % 2 else "south", f"{i % 2 * 1000}", f"{i % 2 * 2000 + i % 2}", WORD] for i in range(40)]
    released = release(run, "people.csv", as_csv(rows=rows), EXPLICIT_SITES, ("epsilon: 2", "epsilon: 1000000"), ("k: 3", "k: 5"))
    for site, income, score in zip(released["site"], released["income"], released["score"], strict=True):
        assert (float(income) > 500, float(score) > 1000) == (site == "north", site == "north")


LEAKS: dict[str, Callable[[str], object]] = {
    "standard-output": print,
    "standard-error": lambda cell: print(cell, file=sys.stderr),
    "log": lambda cell: logging.getLogger("release_pipeline").debug("seen %s", cell),
    "file": lambda cell: Path("left-behind").write_text(cell),
    "file-name": lambda cell: Path(f".{cell}").touch(),
}


SPELLED = [WORD.upper(), "735,184,629.25", str(DAY)]


@pytest.mark.parametrize(
    ("leak", "cell"), [*((leak, WORD) for leak in LEAKS.values()), *((LEAKS["file"], cell) for cell in SPELLED)]
)
def test_a_leak_would_be_found(run: Runner, monkeypatch: pytest.MonkeyPatch, leak: Callable[[str], object], cell: str) -> None:
    """The helper behind every test here fails when a cell gets out on purpose, whatever the way and the spelling."""

    def leaking(*_: object) -> tuple[dict[str, str], list[str]]:
        leak(cell)
        return {}, ["refused"]

    monkeypatch.setattr(flow_mask, "match_header", leaking)
    run.write("people.csv", as_csv())
    run.write("people.yaml", POLICY)
    outcome = run(f"{MASK} -o out.csv")
    assert outcome.code == 1
    with pytest.raises(AssertionError, match="a canary is"):
        assert_refused(outcome, code=1, phrase="refused")
