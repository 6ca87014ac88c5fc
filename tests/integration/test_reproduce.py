"""`reproduce` at the command line: what it refuses, in words, before anything is measured; and being stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from release_pipeline.cli import main
from release_pipeline.experiments import reproduce
from release_pipeline.experiments.tables import VARIABLE
from tests.integration.processes import LONGEST


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with nothing in it."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def run(*arguments: str | Path) -> int:
    try:
        return main(["reproduce", *map(str, arguments)])
    except SystemExit as left:
        return int(str(left.code))


def test_data_that_are_missing_are_all_named(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to save where; nothing is made."""
    monkeypatch.delenv(VARIABLE, raising=False)
    out = data.parent / "out"
    for named in ((), ("--data", data)):
        assert run("all", *named, "-o", out) == 2
        words = capsys.readouterr().err
        assert "6 of the 6 files are missing" in words
        assert "wine_white.csv: UCI" in words
        assert "saved as adult.csv" in words
        assert "--data FOLDER" in words
    assert run("kdp13", "--data", data / "nowhere", "-o", out) == 2
    assert "there is no such folder" in capsys.readouterr().err
    assert not out.exists()


def test_wrong_data_are_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "census.csv").write_text("AFNLWGT,AGI\n123454321,2\n")
    assert run("kdp13", "--data", data, "-o", data.parent / "out") == 1
    words = capsys.readouterr().err
    assert "2 rows of 2 columns, not 1,080 of 13" in words
    assert "123454321" not in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("unknown",), "invalid choice"),
        (("prs20", "--jobs", "0"), "from 1 to 1024"),
        (("prs20", "--jobs", "9999999"), "from 1 to 1024"),
        (("prs20", "--seed", "x"), "whole number below 2^64"),
        (("prs20", "--seed", str(2**64)), "whole number below 2^64"),
    ],
)
def test_wrong_arguments_are_explained(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err


def test_nothing_of_others_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder with other files, one with another run, and what is no folder."""
    (tmp_path / "letter.txt").write_text("dear")
    assert run("prs20", "-o", tmp_path) == 2
    assert "other files are in this folder" in capsys.readouterr().err
    assert run("prs20", "-o", tmp_path / "letter.txt") == 2
    assert "cannot be a folder for results" in capsys.readouterr().err
    begun = tmp_path / "run"
    begun.mkdir()
    (begun / "run.json").write_text(json.dumps({"experiments": ["prs20"], "quick": True, "seed": 2}))
    for arguments in (("prs20",), ("prs20", "--quick", "--seed", "3")):
        assert run(*arguments, "-o", begun) == 2
        assert "a run of other experiments, of another seed" in capsys.readouterr().err
    assert [file.name for file in begun.iterdir()] == ["run.json"]


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduce, "find_spec", lambda _: None)
    assert run("prs20", "-o", tmp_path / "out") == 2
    assert "pip install 'release-pipeline[reproduce]'" in capsys.readouterr().err


@pytest.mark.slow
def test_stopped_it_leaves_nobody_behind_and_goes_on(tmp_path: Path) -> None:
    """SIGINT to all, as from a terminal: one sentence, and what was measured is kept. SIGKILL of the parent: workers end."""
    command = [
        sys.executable,
        "-m",
        "release_pipeline.cli",
        "reproduce",
        "prs20",
        "--quick",
        "--jobs",
        "2",
        "-o",
        tmp_path / "out",
    ]
    kept = tmp_path / "out" / "measured" / "prs20.jsonl"
    for stop in (signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_hear_interrupts,
        ) as child:
            before = kept.read_bytes().count(b"\n") if kept.exists() else 0
            deadline = time.monotonic() + LONGEST
            while not (kept.exists() and kept.read_bytes().count(b"\n") > before) and time.monotonic() < deadline:
                time.sleep(0.02)
            if stop == signal.SIGINT:
                os.killpg(child.pid, stop)
                _, words = child.communicate(timeout=LONGEST)
                assert child.returncode == 130
                assert "the same command goes on from there" in words
                assert "Traceback" not in words
            else:
                child.kill()
                child.wait(LONGEST)
        while _alive(child.pid) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not _alive(child.pid)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "settings were measured before" in done.stderr


def _hear_interrupts() -> None:
    """Whoever runs the tests in the background may have had SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _alive(session: int) -> list[int]:
    """The processes of a session that still run."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found
