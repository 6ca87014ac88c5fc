"""What memory a release needs is known before the charge; what site.yaml says of it counts."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from release_pipeline.apps.cli import main
from release_pipeline.errors import Blocked, OutOfSpace, ReleasePipelineError
from release_pipeline.pipeline import forecast
from release_pipeline.pipeline.forecast import PROGRAM, check_entries, find_enough, forecast_memory
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.microaggregate import microaggregate
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.validate import validate
from release_pipeline.policy import load_policy
from release_pipeline.store.environment import DATABASE
from tests.integration.sites import TinySite, make_site

ROOT = Path(__file__).resolve().parents[3]
POLICIES = sorted((ROOT / "policies").glob("*.yaml"))


@pytest.mark.parametrize("file", POLICIES, ids=lambda file: file.stem)
def test_more_records_need_more_and_what_is_enough_suffices(file: Path) -> None:
    policy = load_policy(file)
    needed = [forecast_memory(policy, 10**power, allowed=1 << 40).needed for power in range(3, 10)]
    assert needed == sorted(needed)
    assert needed[0] < PROGRAM + (4 << 20)
    for records in (10**3, 10**6, 10**9):
        enough = find_enough(partial(forecast_memory, policy, records))
        assert forecast_memory(policy, records, allowed=enough).is_enough
        assert not forecast_memory(policy, records, allowed=int(enough * 0.7)).is_enough


def test_a_quarter_of_the_memory_is_counted_for_the_database() -> None:
    """Of so many records that it takes its whole share."""
    policy = load_policy(POLICIES[0])
    counted, much = (forecast_memory(policy, 10**9, allowed=allowed).needed for allowed in (1 << 33, 1 << 34))
    assert much - counted == DATABASE * (1 << 33)


def test_different_numbers_that_were_counted_are_forecast_up_to_those_of_the_grid() -> None:
    """Where there are more of them than the root of the records lets expect."""
    policy, records = load_policy(ROOT / "policies" / "adult-table.yaml"), 10**4
    name, column = max(policy.noise_columns.items(), key=lambda item: item[1].coded_grid.encoder.size)
    size = column.coded_grid.encoder.size

    few, some, every, more = (
        forecast_memory(policy, records, allowed=1 << 40, is_copied=False, cells={name: cells}).needed
        for cells in (0, size // 2, size, 10 * size)
    )
    assert few < some < every == more


def test_a_refusal_for_different_numbers_reveals_no_more_than_a_power_of_two() -> None:
    """How many there are is confidential: the message has no figure, and near counts are judged alike."""
    policy, records = load_policy(ROOT / "policies" / "adult-table.yaml"), 10**4
    name, column = max(policy.noise_columns.items(), key=lambda item: item[1].coded_grid.encoder.size)
    size = column.coded_grid.encoder.size
    assert size > 1 << 6
    half, messages = 1 << ((size - 1).bit_length() - 1), list[str]()

    def is_refused(cells: int, allowed: int) -> bool:
        site: Any = SimpleNamespace(memory=allowed)
        try:
            check_entries(site, policy, records, is_copied=False, cells={name: cells}, where="people/1")
        except Blocked as refused:
            messages.append(refused.what + refused.remedy)
            return True
        return False

    needed = forecast_memory(policy, records, allowed=1 << 40, is_copied=False, cells={name: half}).needed
    for allowed in range(needed - 4000, needed + 4000, 500):
        assert is_refused(half // 2 + 1, allowed) == is_refused(half, allowed)
    assert is_refused(size, 1 << 20)
    assert not is_refused(size, 1 << 40)
    assert not re.search(r"\d", "".join(messages))


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site of its own."""
    return make_site(tmp_path / "site", gates="{min_rows: 20, differencing_below: 0}")


@pytest.mark.parametrize("said", ["lots", "8", "1 MB", "true", "[8 GiB]"])
def test_what_site_yaml_may_not_say(tiny: TinySite, said: str) -> None:
    (tiny.home / "site.yaml").write_text(f"memory: {said}\n")
    with pytest.raises(ReleasePipelineError) as refused:
        _ = tiny.site.memory
    assert "memory: memory is n" in refused.value.in_full
    assert "8 GiB" in refused.value.in_full


def test_too_little_is_refused_before_the_charge(
    tiny: TinySite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what would do. It is a trial, for it depends on how many records there are; nothing is charged or blocked, and with
    more memory the same command goes on. Where trials are forbidden it has no figure."""
    monkeypatch.setattr(forecast, "PROGRAM", 3 << 30)
    (tiny.home / "site.yaml").write_text("memory: 2 GiB\n")
    flow = tiny.flow()
    ingest(flow)
    validate(flow)
    with pytest.raises(OutOfSpace, match=r"up to 60 records needs about 3 GiB of memory, and site.yaml allows it 2 GiB\."):
        microaggregate(flow)
    assert tiny.charges() == []
    assert tiny.states() == ["opened"]
    assert [event.kind for event in tiny.events()].count("looked") == 1
    (tiny.home / "site.yaml").write_text("memory: 2 GiB\nlooks: forbidden\n")
    with pytest.raises(OutOfSpace) as refused:
        microaggregate(tiny.flow())
    assert not re.search(r"\d", refused.value.what)
    (tiny.home / "site.yaml").write_text("memory: 2 GiB\n")
    assert main(["check", str(tiny.home / "policies" / "people.yaml"), "--rows", "60"]) == 0
    assert "memory      about 3 GiB of 2 GiB for 60 rows: a run is refused before anything is charged" in capsys.readouterr().out
    (tiny.home / "site.yaml").write_text("memory: 4 GiB\n")
    assert run_release(tiny.flow()).stage == "candidate"
