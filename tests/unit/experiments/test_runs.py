"""Measuring many settings: every one once, the same figures however often one was interrupted, and secrets of their own."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.experiments import runs
from release_pipeline.experiments.runs import (
    Measured,
    Results,
    Setting,
    StoppedWorker,
    make_fingerprint,
    make_secrets,
    measure_all,
)
from tests.guards import HANGING

SETTINGS = [Setting.of("square", 3, table="made up", number=number) for number in range(12)]


def square(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """Leaves a mark for each time it is measured; data is the folder for marks."""
    number = setting.number("number")
    with (data / str(number)).open("a") as marks:
        marks.write("x")
    time.sleep(0.05)
    return [{"value": number**2 + secret[-1] / 10} for secret in secrets]


def stall(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """The first six as ever; the seventh does not end, so that however late the kill comes, something is left to do."""
    if setting.number("number") >= 6:
        time.sleep(HANGING)
    return square(data, setting, secrets)


def die(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    os.kill(os.getpid(), signal.SIGKILL)
    return square(data, setting, secrets)


def run(
    folder: Path, *, jobs: int = 1, fingerprint: str = "one", seed: int = 1, measure: Callable[..., list] = square
) -> Results:
    marks = folder / "marks"
    marks.mkdir(exist_ok=True)
    kept = folder / "kept.jsonl"
    return measure_all(
        SETTINGS, measure, marks, seed=seed, jobs=jobs, kept=kept, fingerprint=fingerprint, progress=lambda _: None
    )


def count_marks(folder: Path) -> list[int]:
    return [len((folder / "marks" / str(number)).read_text()) for number in range(12)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_setting_is_measured_once_in_every_run(jobs: int, tmp_path: Path) -> None:
    found = run(tmp_path, jobs=jobs)
    assert [one.setting for one in found.measured] == SETTINGS
    for number in range(12):
        assert found.runs("square", "value", number=number).tolist() == [number**2, number**2 + 0.1, number**2 + 0.2]
    assert found.tables["square"][4] == {"table": "made up", "number": 1, "run": 1, "value": 1.1}
    assert count_marks(tmp_path) == [1] * 12
    again = run(tmp_path, jobs=jobs)
    assert again.tables == found.tables
    assert count_marks(tmp_path) == [1] * 12


def test_what_was_measured_by_other_code_or_data_is_measured_again(tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path, fingerprint="another")
    assert count_marks(tmp_path) == [2] * 12
    parts = [make_fingerprint(1, ["a"]), make_fingerprint(2, ["a"]), make_fingerprint(1, ["b"]), make_fingerprint(1, ["a", "b"])]
    assert len(set(parts)) == 4
    assert make_fingerprint(1, ["a"]) == parts[0]


def test_the_code_that_figures_depend_on_is_in_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed byte in a module of `privacy` is another fingerprint; one in what tells of figures is not."""
    package = tmp_path / "release_pipeline"
    for name in ("privacy", "policy", "stages", "experiments/measuring", "experiments/reporting"):
        (package / name).mkdir(parents=True)
        (package / name / "module.py").write_text("x = 1\n")
    (package / "experiments" / "tables.py").write_text("y = 1\n")
    monkeypatch.setattr(runs.release_pipeline, "__file__", str(package / "__init__.py"))

    (package / "experiments" / "runs.py").write_text("z = 1\n")
    first = runs.hash_code()
    (package / "experiments" / "reporting" / "module.py").write_text("x = 2\n")
    assert runs.hash_code() == first
    for name in ("privacy/module.py", "experiments/measuring/module.py", "experiments/tables.py", "experiments/runs.py"):
        (package / name).write_text("z = 3\n")
        assert runs.hash_code() != first
        first = runs.hash_code()


def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    """Killed by SIGKILL when some are measured, with half a line at the end: the rest is measured, and nothing else again."""
    child = multiprocessing.get_context("spawn").Process(target=run, args=(tmp_path,), kwargs={"measure": stall})
    child.start()
    deadline = time.monotonic() + HANGING
    kept = tmp_path / "kept.jsonl"
    while (not kept.is_file() or kept.read_bytes().count(b"\n") < 3) and time.monotonic() < deadline:
        time.sleep(0.01)
    child.kill()
    child.join()
    lines = kept.read_text().splitlines()
    assert 3 <= len(lines) <= 6
    kept.write_text("\n".join(lines) + '\n{"fingerprint": "one", "sett')
    before = count_marks_so_far(tmp_path)
    found = run(tmp_path)
    assert [one.setting for one in found.measured] == SETTINGS
    measured = [json.loads(line)["setting"] for line in lines]
    after = count_marks(tmp_path)
    for number, setting in enumerate(SETTINGS):
        assert after[number] - before.get(number, 0) == (setting.key not in measured)
    assert run(tmp_path).tables == found.tables
    assert count_marks(tmp_path) == after


def count_marks_so_far(folder: Path) -> dict[int, int]:
    return {int(file.name): len(file.read_text()) for file in (folder / "marks").iterdir()}


def test_a_killed_worker_is_told_to_a_person(tmp_path: Path) -> None:
    with pytest.raises(StoppedWorker, match="was killed"):
        run(tmp_path, jobs=2, measure=die)
    assert len(run(tmp_path).measured) == 12


def interrupt(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    os.kill(int((data.parent / "pid").read_text()), signal.SIGINT)
    return square(data, setting, secrets)


def test_interrupted_by_whoever_measures_it_keeps_what_was_begun(tmp_path: Path) -> None:
    """SIGINT while it waits: KeyboardInterrupt, no lock held for ever, nothing measured twice."""
    (tmp_path / "pid").write_text(str(os.getpid()))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background may have had it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, jobs=2, measure=interrupt)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert 0 < (tmp_path / "kept.jsonl").read_bytes().count(b"\n") == len(count_marks_so_far(tmp_path)) < 12
    assert len(run(tmp_path, jobs=2).measured) == 12
    assert count_marks(tmp_path) == [1] * 12


def test_secrets_differ_by_run_and_seed() -> None:
    secrets = [*make_secrets(1, 5), *make_secrets(2, 5)]
    assert len(set(secrets)) == 10
    assert {len(secret) for secret in secrets} == {32}
    assert make_secrets(1, 9)[:5] == secrets[:5]  # more runs begin as fewer do


def test_results_are_found_by_their_fields() -> None:
    found = Results(
        Measured(Setting.of("error", 2, table=table, k=k), [{"sse": k}, {"sse": k + 1}])
        for table in ("census", "wine")
        for k in (5, 10)
    )
    assert found.values("error", "k") == [5, 10]
    assert found.values("error", "table", k=5) == ["census", "wine"]
    assert found.values("other", "table") == []
    assert found.mean("error", "sse", table="wine", k=10) == 10.5
    with pytest.raises(InvalidArgument, match="2 settings"):
        found.runs("error", "sse", k=5)
    with pytest.raises(InvalidArgument, match="0 settings"):
        found.runs("error", "sse", table="adult", k=5)
    assert np.array_equal(found.of("error", table="wine")[0].runs("sse"), [5, 6])
