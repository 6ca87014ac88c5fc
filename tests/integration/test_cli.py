"""The command line from outside: help, the plan of a policy, and real processes that end well or are stopped."""

from __future__ import annotations

import json
import os
import random
import re
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
from release_pipeline.apps.cli import main
from release_pipeline.apps.cli.commands import SECTIONS, SHORT, Command
from release_pipeline.apps.cli.program import cli
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.site import find_site
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
    return [sys.executable, "-m", "release_pipeline.apps.cli", *arguments]


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
        (["check"], 2, (), "Missing argument 'POLICY.yaml'. See 'release-pipeline check --help'."),
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
    own = {"adult-k-epsilon": {"grouping"}, "census-together": {"order"}, "rand-hie-dp": {"counts"}}
    own |= {name: {"counted", "counts", "released", "not kept"} for name in OF_TABLES}
    of_its_own = own.get(policy.stem, {"consistency"})
    assert {"policy", "source", "person", "method", "definition", "claim", "review"} | of_its_own <= labels
    assert ("not covered" in labels) == (policy.stem not in OF_TABLES)


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
STORY = [  # of the demo: each release, how its line begins and ends
    ("rand-hie-table/1/r1", "public", "published, verified"),
    ("election-public/once/r1", "public", "refused, nothing spent"),
    ("election-licensed/once/r1", "licensed", "waits for two reviewers"),
]


def list_files(home: Path) -> dict[str, bytes]:
    """What the demo's releases left: candidates and packages."""
    files = [*home.glob("vault/candidates/**/*"), *home.glob("releases/**/*")]
    return {str(path.relative_to(home)): path.read_bytes() for path in files if path.is_file()}


@pytest.mark.slow
@NEEDS_DATA
def test_the_demo_publishes_one_release_refuses_one_and_leaves_one_to_its_reviewers(finished_demo: Demo, tmp_path: Path) -> None:
    """The refused one is refused for linkage and has spent nothing; suppression acts in the licensed one. Repeated, the demo
    serves what is there."""
    home, printed = finished_demo.home, finished_demo.printed
    assert " things verified, 0 failed" in printed
    for release, readers, state in STORY:
        [line] = [line for line in printed.splitlines() if line.startswith(f"{release} ")]
        assert line.split()[1] == readers
        assert line.endswith(state)
    site = find_site(home)
    with site.open_registry(read_only=True) as registry:
        assert {str(charge.id) for charge in list_charges(registry)} == {STORY[0][0], STORY[2][0]}
    refused = json.loads((home / "vault" / "refused" / "election-public~once~r1.json").read_text())
    assert max(gate["value"] for gate in refused["gates"] if gate["name"].startswith("linkage")) > 0.5
    evidence = json.loads((home / "vault/candidates/election-licensed/once/r1/evidence.json").read_text())
    assert evidence["facts"]["cells_blanked"] > 0
    assert evidence["audit"]["linkage_ladder"][-1]["linked"]["value"] < 0.15
    folder = copy_site(home, tmp_path / "demo").home
    process = subprocess.run(command("demo", "--folder", folder), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("is there already (demo --fresh starts over)") == len(STORY)
    assert list_files(folder) == list_files(home)


@pytest.mark.slow
@NEEDS_DATA
def test_the_whole_demo_spends_the_families_budget(finished_demo: Demo, tmp_path: Path) -> None:
    """Two more waves become candidates, and the ledger refuses a correction."""
    folder = copy_site(finished_demo.home, tmp_path / "demo").home
    process = subprocess.run(
        command("demo", "--all", "--folder", folder), capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert process.returncode == 0, process.stderr
    assert "the ledger refuses: rand-hie-people has" in process.stdout
    for wave in (2, 3):
        assert re.search(rf"^rand-hie-table/{wave}/r1 .* waits for two reviewers$", process.stdout, re.MULTILINE)


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
