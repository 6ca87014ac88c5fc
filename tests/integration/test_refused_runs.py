"""Runs that read confidential records and released nothing: each is a trial, noted before anybody reads why it was refused."""

from __future__ import annotations

import re

import pytest

from release_pipeline.errors import Blocked, DataRefused, ReleasePipelineError
from release_pipeline.ledger.looks import Look, find_looks_before, group_looks
from release_pipeline.operate.timetable import describe_missing
from release_pipeline.pipeline import gates, microaggregate
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.validate import validate
from tests.integration.sites import PARTS, TinySite, make_rows, spoil

IMPOSSIBLE = "{min_rows: 20, expected_error: {income: 0.0000001}}"


def forbid(tiny: TinySite) -> None:
    """The site forbids trials on confidential data."""
    (tiny.home / "site.yaml").write_text("looks: forbidden\n")


def refuse(tiny: TinySite) -> ReleasePipelineError:
    """A run that is refused, and how."""
    with pytest.raises((DataRefused, Blocked)) as caught:
        run_release(tiny.flow())
    return caught.value


def trials(tiny: TinySite) -> tuple[Look, ...]:
    """Those under the policy people."""
    return group_looks(tiny.events()).get("people", ())


def domain(high: int) -> str:
    """The columns with another domain of income."""
    return PARTS["columns"].replace("[0, 1000]", f"[0, {high}]")


def test_a_refusal_for_different_numbers_is_a_trial(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many a column has depends on the records, and no budget is spent for it."""

    def refuse_all(*_: object, **__: object) -> None:
        raise Blocked("its columns have too many different numbers for the memory that a run may take.")

    monkeypatch.setattr(microaggregate, "check_entries", refuse_all)
    refuse(tiny)
    assert (len(trials(tiny)), tiny.charges()) == (1, [])


def test_a_refusal_by_checks_is_a_trial_once_for_the_same_policy_and_records(tiny: TinySite) -> None:
    """Noted before the registry has the message; other records are another trial, and so is another policy."""
    spoil(tiny, "out of domain")
    for _ in range(2):
        refuse(tiny)
    kinds = [event.kind for event in tiny.events()]
    assert (kinds.count("looked"), kinds.count("blocked")) == (1, 1)
    assert kinds.index("looked") < kinds.index("blocked")
    spoil(tiny, "not a number")
    refuse(tiny)
    tiny.write_policy(protect="{method: idp-cbls, epsilon: 1, k: 5}")
    refuse(tiny)
    noted = trials(tiny)
    assert [(trial.on, trial.by, trial.compared) for trial in noted] == [
        ("run", "", ("idp-cbls, epsilon 2, k 5",)),
        ("run", "", ("idp-cbls, epsilon 2, k 5",)),
        ("run", "", ("idp-cbls, epsilon 1, k 5",)),
    ]
    assert len({(trial.policy_hash, trial.digest) for trial in noted}) == 3
    assert all(trial.origins for trial in noted)


def test_every_refused_trial_leaves_an_event_though_its_reason_is_the_same(tiny: TinySite) -> None:
    """Five sources that a gate refuses for the same reason: one block, and five trials by which the number of the event grows."""
    tiny.write_policy(gates=IMPOSSIBLE)
    for rent in range(5):
        tiny.write_rows([{**row, "rent": str(rent)} if not place else row for place, row in enumerate(make_rows())])
        refuse(tiny)
    assert [event.kind for event in tiny.events()].count("blocked") == 1
    assert len(trials(tiny)) == 5


def test_a_gate_is_a_trial_before_a_figure_of_it_is_written(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends between the two leaves the trial, and no figure."""
    tiny.write_policy(gates=IMPOSSIBLE)

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gates, "keep_refusal", end)
    with pytest.raises(KeyboardInterrupt):
        run_release(tiny.flow())
    assert len(trials(tiny)) == 1
    assert not (tiny.site.vault / "refused").exists()


def test_checks_that_passed_are_a_trial_once_the_policy_is_another(tiny: TinySite) -> None:
    """A run that somebody stops there has told as much as a refused one: it is noted when the release begins again."""
    stop(tiny)
    assert trials(tiny) == ()
    stopped = tiny.site.policy("people").canonical_hash()
    tiny.write_policy(columns=domain(2000))
    run_release(tiny.flow())
    [trial] = trials(tiny)
    assert trial.policy_hash == stopped
    assert tiny.status().facts["looks"] == 1


def test_what_is_charged_is_no_trial(tiny: TinySite) -> None:
    """Nor is what becomes of it, or a run of it again; nor is a file whose header is wrong, of which no record was read."""
    spoil(tiny, "missing column")
    tiny.write_rows([], header=["one", "other"])
    refuse(tiny)
    tiny.write_rows(make_rows())
    run_release(tiny.flow())
    run_release(tiny.flow())
    assert trials(tiny) == ()


def test_after_a_charge_other_records_are_trials(tiny: TinySite) -> None:
    """Each once; the records that were charged are none, though others were read meanwhile."""
    run_release(tiny.flow())
    for place in (0, 1, 1):
        rows = make_rows()
        rows[place]["income"] = "5000"
        tiny.write_rows(rows)
        refuse(tiny)
    assert len(trials(tiny)) == 2
    tiny.write_rows(make_rows())
    run_release(tiny.flow())
    assert len(trials(tiny)) == 2


def stop(tiny: TinySite, policy: str = "people") -> None:
    """A run that somebody ends once its checks have passed."""
    ingest(tiny.flow("1", policy))
    validate(tiny.flow("1", policy))


def test_a_release_that_begins_again_with_others_had_a_trial(tiny: TinySite) -> None:
    """On other records under the same policy."""
    stop(tiny)
    tiny.write_rows(make_rows(seed=9))
    stop(tiny)
    stop(tiny)
    assert len(trials(tiny)) == 1


@pytest.mark.parametrize("forbidden", [True, False])
def test_before_the_charge_no_exact_number_of_records_is_told(tiny: TinySite, *, forbidden: bool) -> None:
    """For any column may be named as that of the release; who asks whether there are enough had a trial."""
    if forbidden:
        forbid(tiny)
    tiny.write_policy(policy="draft", gates="{min_rows: 90}")
    tiny.write_rows(make_rows(33))
    flow = tiny.flow("1")
    told = {} if forbidden else {"rows": 40}
    for result in (ingest(flow), validate(flow)):
        assert {name: fact for name, fact in result.facts.items() if name == "rows"} == told
    for _ in range(2):
        words = describe_missing(tiny.site, tiny.site.policy("draft"), "1")
        assert words == "the source has too few records of release 1 yet."
    run_release(flow)
    assert ingest(flow).facts["rows"] == 33
    assert [look.policy for look in find_looks_before(tiny.events(), flow.id)] == ["draft"]


@pytest.mark.parametrize("way", ["out of domain", "person twice"])
def test_where_trials_are_forbidden_checks_say_no_count_and_no_column(tiny: TinySite, way: str) -> None:
    """Only which family failed, in the registry as well; and it is counted."""
    forbid(tiny)
    spoil(tiny, way)
    refused = refuse(tiny)
    [message] = refused.details
    assert re.match(r"the checks '\w+' failed\. They ask: ", message)
    told = " ".join((str(refused), *refused.details, tiny.status().reason))
    assert not re.search(r"\d+ (records|persons)|column \w+:", told)
    assert len(trials(tiny)) == 1


def test_where_trials_are_forbidden_no_figure_is_kept(tiny: TinySite) -> None:
    """Neither page nor figures, and those of an attempt before that are gone; the gate is named, with its limit."""
    tiny.write_policy(gates=IMPOSSIBLE)
    refuse(tiny)
    folder = tiny.site.vault / "refused"
    assert len([*folder.iterdir()]) == 2
    forbid(tiny)
    refused = refuse(tiny)
    assert [*folder.iterdir()] == []
    assert "the expected error of income is over the limit 1e-07 (the figure is withheld)" in refused.what
    assert "so figures and counts are withheld" in refused.remedy
    assert "vault" not in str(refused)
    tiny.write_policy(gates="{min_rows: 20, expected_error: {income: 0.0000002}}")
    refuse(tiny)
    assert len(trials(tiny)) == 2
