"""The command line from outside: help, the plan of a policy, and real processes that end well or are stopped."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from release_pipeline import __version__
from release_pipeline.cli import main
from release_pipeline.cli.commands import SECTIONS, SHORT, Command
from release_pipeline.cli.program import cli
from tests.guards import HANGING
from tests.integration.people import Demo, copy_site

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "policies").glob("*.yaml"))
POLICY = """\
policy: people
steward: ana
population: people
source: {path: people.csv}
person: {column: id}
releases: once
protect: {method: idp-cbls, epsilon: 2, k: 3}
columns:
  id: {role: identifier, do: drop}
  income: {role: confidential, do: noise, domain: [0, 1000000], grid: 0.01, outside: fail, why: known}
  rent: {role: confidential, do: noise, domain: [0, 1000000], grid: 0.01, outside: fail, why: known}
"""


@pytest.fixture(autouse=True)
def _signal_handler() -> Iterator[None]:
    """The handler that `main` sets is put back."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with people.csv, large enough that masking it takes a while, few.csv, and people.yaml."""
    folder = tmp_path_factory.mktemp("people")
    numbers = random.Random(0)  # noqa: S311
    rows = [f"zyx{i},{numbers.random() * 1e6:.2f},{numbers.random() * 1e6:.2f}\n" for i in range(300_000)]
    (folder / "people.csv").write_text("id,income,rent\n" + "".join(rows))
    (folder / "few.csv").write_text("id,income,rent\n" + "".join(rows[:5]))
    (folder / "people.yaml").write_text(POLICY)
    return folder


def command(*arguments: str | Path) -> list[str | Path]:
    """`release-pipeline` with these arguments in a process of its own."""
    return [sys.executable, "-m", "release_pipeline.cli", *arguments]


def list_commands(group: click.Group, parent: click.Context) -> Iterator[tuple[str, Command]]:
    """Every command below a group by the words that call it, with its help."""
    for name in group.list_commands(parent):
        found = group.get_command(parent, name)
        assert isinstance(found, Command)
        context = click.Context(found, info_name=name, parent=parent)
        yield context.command_path, found
        if isinstance(found, click.Group):
            yield from list_commands(found, context)


COMMANDS = dict(list_commands(cli, click.Context(cli, info_name="release-pipeline", **cli.context_settings)))


def test_every_command_says_what_it_does_in_a_line_and_by_an_example() -> None:
    """At most 60 characters, with the options that the command has."""
    assert len(COMMANDS) > 45
    for path, found in COMMANDS.items():
        assert 10 < len((found.help or "").splitlines()[0].rstrip(".")) <= 60, path
        words = shlex.split(f"release-pipeline {found.example}")
        assert " ".join(words).startswith(path) or isinstance(found, click.Group), path
        called = max((known for known in COMMANDS if " ".join(words).startswith(f"{known} ")), key=len)
        arguments = words[called.count(" ") + 1 :]
        assert COMMANDS[called].make_parser(click.Context(COMMANDS[called], **cli.context_settings)).parse_args(arguments), path


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (["--help"], 0, ("Start:", "0 fine, 1 refused or failed, 2 wrong usage, 130 stopped", *SHORT.values()), ""),
        ([], 2, ("Usage: release-pipeline ", *SECTIONS), ""),
        (["check", "-h"], 0, ("Usage: release-pipeline check ", "Example: release-pipeline check "), ""),
        (["--version"], 0, (f"release-pipeline {__version__}",), ""),
        (["check"], 2, (), "Missing argument 'POLICY'. See 'release-pipeline check --help'."),
        (["check", "x", "--json", "--skeleton"], 2, ('"code": "wrong-usage"',), "--json and --skeleton exclude each other."),
        (["desk", "--port", "9", "web", "--socket", "x"], 2, (), "--port: this option must follow the action."),
        (["check", "x", "--rows", "1" + "0" * 400], 2, (), "Invalid value for '--rows'"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_help_and_wrong_usage(
    arguments: list[str], code: int, out: tuple[str, ...], err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit codes, and words where they belong."""
    assert main(arguments) == code
    shown = capsys.readouterr()
    plain = " ".join(shown.out.split())
    assert [part for part in out if part not in plain] == []
    assert err in shown.err
    assert bool(err) == bool(shown.err)


OF_TABLES = ("adult-table", "rand-hie-table")  # which leave nothing of a release uncovered


@pytest.mark.parametrize("policy", SHIPPED, ids=lambda path: path.stem)
def test_check_explains_the_shipped_policies(capsys: pytest.CaptureFixture[str], policy: Path) -> None:
    """The policies that ship have no errors, and their plan fits a terminal in its paragraphs."""
    assert {path.stem for path in SHIPPED} >= {"rand-hie", "census-once"}
    assert main(["check", str(policy), "--no-source"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    labels = {line[:12].strip() for line in said.out.splitlines() if line[:1].isalpha()}
    own = {"adult-k-epsilon": {"grouping", "wanted"}, "census-together": {"order"}, "rand-hie-dp": {"counts"}}
    own |= {name: {"counted", "counts", "released", "not kept"} for name in OF_TABLES}
    of_its_own = own.get(policy.stem, {"consistency"})
    assert {"policy", "source", "person", "method", "definition", "claim", "review"} | of_its_own <= labels
    assert ("not covered" in labels) == (policy.stem not in OF_TABLES)


@pytest.mark.parametrize(
    ("arguments", "code", "phrase"),
    [
        (["mask", "people.csv", "--policy", "people.yaml", "-o", "{out}", "--unaccounted"], 0, "not a release"),
        (["mask", "few.csv", "--policy", "people.yaml", "-o", "{out}", "--unaccounted"], 1, "5 records are fewer than the 6"),
        (["mask", "people.csv", "--policy", "people.yaml", "-o", "{out}"], 2, "Add --unaccounted"),
    ],
    ids=["fine", "refused", "wrong-usage"],
)
@pytest.mark.slow
def test_mask_in_a_process_of_its_own(people: Path, tmp_path: Path, arguments: list[str], code: int, phrase: str) -> None:
    """The process ends with the exit code, says why, and has written the whole table or nothing."""
    out = tmp_path / "out.csv"
    filled = [argument.format(out=out) for argument in arguments]
    process = subprocess.run(command(*filled), cwd=people, capture_output=True, text=True, check=False)
    assert process.returncode == code, process.stderr
    assert phrase in process.stdout + process.stderr
    assert "zyx" not in process.stdout + process.stderr
    assert [path.name for path in tmp_path.iterdir()] == ([] if code else ["out.csv"])
    if code == 0:
        assert out.read_bytes().count(b"\n") == 300_001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "seconds"),
    [
        ("reading", 0.05),
        ("checking", 0.1),
        ("masking rent", 0.05),
        ("writing", 0.03),
    ],
)
def test_a_stopped_process_leaves_nothing(people: Path, tmp_path: Path, step: str, seconds: float) -> None:
    """SIGTERM at any step, and some time into it: no output, no partial file, and words that say so. (Or all of it, if done.)"""
    out, evidence = tmp_path / "out.csv", tmp_path / "out.json"
    arguments = ("mask", "people.csv", "--policy", "people.yaml", "-o", out, "--evidence", evidence, "--unaccounted")
    process = subprocess.Popen(command(*arguments), cwd=people, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if step in line:
            time.sleep(seconds)
            process.send_signal(signal.SIGTERM)
            break
    rest, errors = process.communicate(timeout=HANGING)
    said += errors
    assert step in said
    assert "zyx" not in said + rest
    if out.exists():  # it was done before the signal came
        assert out.read_bytes().count(b"\n") == 300_001
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.json"]
        return
    assert list(tmp_path.iterdir()) == []
    assert process.returncode not in (0, 2)
    assert "stopped; nothing was written" in said
    assert "Traceback" not in said
    assert "internal error" not in said


def test_a_closed_pipe_is_no_traceback() -> None:
    """A reader that goes away (`| head`) ends the command in silence."""
    process = subprocess.Popen(
        command("check", ROOT / "policies/rand-hie.yaml"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=HANGING)
    assert (process.returncode, errors) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_behind_standard_output_is_told_in_words() -> None:
    """What cannot be printed is a failure in words, not an internal error."""
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            command("check", ROOT / "policies/rand-hie.yaml"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert process.returncode == 1
    assert "internal error" not in process.stderr
    assert "Traceback" not in process.stderr


NEEDS_DATA = pytest.mark.skipif(find_spec("statsmodels") is None, reason="the demo's data come with statsmodels")


@pytest.mark.slow
@NEEDS_DATA
def test_demo_releases_every_wave_and_then_serves_it(finished_demo: Demo, tmp_path: Path) -> None:
    """The demo takes all five waves to candidates in its folder, under both policies, and publishes the first; repeated, it
    changes nothing of it."""

    def look_at(folder: Path, printed: str) -> tuple[list[list[str]], dict[str, bytes]]:
        assert " things verified, 0 failed" in printed
        lines = [line.split() for line in printed.splitlines() if line.startswith(("rand-hie/", "rand-hie-dp/"))]
        files = [*folder.glob("vault/candidates/**/*"), *folder.glob("releases/**/*")]
        return lines, {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_file()}

    lines, made = look_at(finished_demo.home, finished_demo.printed)
    policies = ("rand-hie", "rand-hie-dp")
    assert [line[0] for line in lines] == [f"{policy}/{wave}/r1" for policy in policies for wave in range(1, 6)]
    assert [line[-1] for line in lines] == ["published", *["candidate"] * 9]
    assert len({Path(path).parent for path in made}) == 11
    folder = copy_site(finished_demo.home, tmp_path / "demo").home
    process = subprocess.run(command("demo", "--folder", folder), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    assert look_at(folder, process.stdout) == (lines, made)


@pytest.mark.slow
@NEEDS_DATA
def test_the_columns_demo_links_rows_as_the_other_demo_says(finished_demo: Demo) -> None:
    """What the summary of the second demo, and docs/start.md, say of the first one's rows: someone who knows all released columns
    finds most of them, and by the kept columns only few. Suppression acts where family size is released too."""
    linked: dict[str, list[float]] = {"rand-hie": [], "rand-hie-dp": []}
    for file in finished_demo.home.glob("vault/candidates/*/*/*/evidence.json"):
        evidence = json.loads(file.read_text())
        name, ladder = evidence["release"].split("/")[0], evidence["audit"]["linkage_ladder"]
        assert [rung["masked"] for rung in ladder] == [0, 1, 2, 4]
        assert ladder[0]["linked"]["value"] < 0.1
        linked[name].append(ladder[-1]["linked"]["value"])
        facts = evidence["facts"]
        is_suppressed = facts["cells_blanked"] > 0 or facts["rows_out"] < facts["rows_in"]
        assert is_suppressed == (name == "rand-hie-dp")
    for name, low, high in (("rand-hie", 0.4, 0.9), ("rand-hie-dp", 0.8, 1.0)):
        assert len(linked[name]) == 5
        assert low < min(linked[name]) <= max(linked[name]) <= high
    assert "kept     +1     +2    all  state" in finished_demo.printed


@pytest.mark.slow
@NEEDS_DATA
def test_the_second_demo_is_a_site_of_its_own_with_one_claim(tmp_path: Path) -> None:
    """Three waves as synthetic rows, the first published and verified, one more refused by the cap; repeated, it serves what is
    there; and neither demo takes the folder of the other."""

    def run(*options: str | Path) -> tuple[str, str]:
        words = command("demo", "--table", *options)
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    def list_files() -> dict[str, bytes]:
        files = [*home.glob("vault/candidates/**/*"), *home.glob("releases/**/*")]
        return {str(path.relative_to(home)): path.read_bytes() for path in files if path.is_file()}

    home = tmp_path / "demo-table"  # by default
    printed, _ = run()
    plain = " ".join(printed.split())
    assert " things verified, 0 failed" in printed
    assert "(rho 0.18506984) for everything in this package, given that the records passed its gates" in plain
    assert "synthetic rows, nobody's record" in plain
    assert "no row is anybody's, so none lies nearest to its own original: 0%" in plain
    assert "the ledger refuses: rand-hie-people has" in plain
    lines = [line.split() for line in printed.splitlines() if line.startswith("rand-hie-table/") and "%" in line]
    assert [line[0] for line in lines] == [f"rand-hie-table/{wave}/r1" for wave in (1, 2, 3)]
    assert [line[-1] for line in lines] == ["published", "candidate", "candidate"]
    made = list_files()
    package = home / "releases" / "rand-hie-table" / "1" / "r1"
    assert {"data.csv", "data.counts.csv", "data.pairs.csv", "privacy-card.html"} <= {file.name for file in package.iterdir()}
    evidence = json.loads((home / "vault/candidates/rand-hie-table/1/r1/evidence.json").read_text())
    near = evidence["audit"]["nearest"]
    assert near["known"] == ["site", "female", "age", "num"]
    assert near["overall"]["beyond"]["low"] < 0.05
    assert "record_linkage" not in evidence["audit"]
    again, told = run()
    assert told.count("served as it is") == 3
    assert [line for line in again.splitlines() if "%" in line] == [line for line in printed.splitlines() if "%" in line]
    assert list_files() == made
    refused = subprocess.run(command("demo", "--folder", home), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "the folder of the other demo" in refused.stderr


@pytest.mark.parametrize("name", ["notes.txt", "demo/notes.txt"], ids=["a-file", "another-folder"])
def test_demo_leaves_alone_what_it_did_not_make(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    """A file, or a folder with anything in it, is refused in words, --fresh or not, and stays as it was."""
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("what was there")
    folder = file if file.parent == tmp_path else file.parent
    for options in ([], ["--fresh"]):
        assert main(["demo", "--folder", str(folder), *options]) == 2
        assert "this is not a folder that the demo made" in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    assert file.read_text() == "what was there"
