"""What people were charged under earlier names, against ancestors listed one by one; the verifier against the pipeline."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.mechanisms.accounting.budget import NANO, format_nano
from release_pipeline.policy.loading.populations import Population, list_ancestors
from release_pipeline.policy.plans.loss import LOSSES, Account, Loss
from release_pipeline.verifier.chain import Event
from release_pipeline.verifier.dossiers import _check_cap, _list_counted
from release_pipeline.verifier.report import Report

NAMES = [f"p{number}" for number in range(6)]
CAP = {"epsilon": 1000, "definition": "idp", "scope": "column"}


@st.composite
def lineages(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Populations whose ancestors are among those before them, as populations.yaml writes them."""
    found: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(NAMES):
        kind = draw(st.sampled_from(["new", "was", "from"])) if place else "new"
        entry: dict[str, Any] = {"cap": CAP}
        if kind == "was":
            entry["was"] = draw(st.sampled_from(NAMES[:place]))
        elif kind == "from" and place > 1:
            entry["from"] = sorted(draw(st.sets(st.sampled_from(NAMES[:place]), min_size=2, max_size=3)))
        found[name] = entry
    return found


def list_all(declared: dict[str, dict[str, Any]], name: str) -> set[str]:
    """A population and everything that it comes from (by recursion)."""
    entry = declared[name]
    before = entry.get("from", [entry["was"]] if "was" in entry else [])
    return {name}.union(*(list_all(declared, ancestor) for ancestor in before))


charges = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 9)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(lineages(), charges, st.sampled_from(NAMES))
def test_verifier_adds_up_what_the_pipeline_charges(
    declared: dict[str, dict[str, Any]], charged: list[tuple[str, int]], name: str
) -> None:
    """Every charge to a population or to one that it comes from counts, once; from the caps as they are signed and from events
    the verifier finds the same sum, and refuses one less."""
    populations = {name: Population.model_validate(entry) for name, entry in declared.items()}
    caps = {each: population.canonical for each, population in populations.items()}
    counted = list_all(declared, name)
    assert _list_counted(caps, name) == counted == list_ancestors(populations, name) | {name}
    charged = [*charged, (name, 1)]
    amounts = [amount for population, amount in charged if population in counted]
    losses = tuple(Loss(**dict.fromkeys(LOSSES, amount * NANO)) for amount in amounts)
    account = Account(name, populations[name], losses, tuple(sorted(counted - {name})))
    spent = sum(amounts) * NANO
    assert account.total == spent
    for noted, fault in ((spent, ""), (spent - 1, "do not add up")):
        report = Report(None)
        events = list_events(charged, format_nano(noted), sorted(counted - {name}))
        with report.about("events.jsonl"):
            _check_cap(report, _Chain(events), events[-1], name, caps)  # pyright: ignore[reportArgumentType]
        assert [fault in finding.words for finding in report.findings if finding.level == "FAIL"] == [True] * bool(fault)


class _Chain:
    """As much of a chain of events as the sum needs."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events


def list_events(charged: list[tuple[str, int]], spent: str, carries: list[str]) -> list[Event]:
    """The charges as the registry notes them; the last one has what is spent."""
    events: list[Event] = []
    for number, (population, amount) in enumerate(charged, start=1):
        content: dict[str, Any] = {"population": population, "loss": {"idp_column": amount * NANO}}
        content |= {"unit": "epsilon, iDP, column", "cap": "1000"}
        if number == len(charged):
            content |= {"spent": spent, **({"carries": carries} if carries else {})}
        events.append(Event(number, "reserved", f"policy{number}/once/r1", content, "hash"))
    return events
