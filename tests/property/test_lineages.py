"""What people were charged under earlier names, against lives that are listed one by one; the verifier against the pipeline."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline import verify
from release_pipeline.policy.loss import LOSSES, Account, Loss, Place
from release_pipeline.policy.populations import Cap, Population, list_ways

NAMES = [f"p{number}" for number in range(6)]
CAP = Cap(releases=1000)


@st.composite
def lineages(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Populations whose ancestors are among those before them, as populations.yaml writes them."""
    found: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(NAMES):
        kind = draw(st.sampled_from(["new", "was", "from", "disjoint"])) if place else "new"
        entry: dict[str, Any] = {"cap": {"releases": 1000}}
        if kind == "was":
            entry["was"] = draw(st.sampled_from(NAMES[:place]))
        elif kind != "new" and place > 1:
            entry["from"] = sorted(draw(st.sets(st.sampled_from(NAMES[:place]), min_size=2, max_size=3)))
            entry |= {"disjoint": True} if kind == "disjoint" else {}
        found[name] = entry
    return found


def list_lives(declared: dict[str, dict[str, Any]], name: str) -> list[frozenset[str]]:
    """Every set of populations that a person who ends in `name` can have been in: at each step back, in one of those that were
    merged as disjoint, or in any of the others (brute force)."""
    entry = declared[name]
    before = entry.get("from", [entry["was"]] if "was" in entry else [])
    lives = {ancestor: [frozenset[str](), *list_lives(declared, ancestor)] for ancestor in before}
    chosen = product(*lives.values())
    if entry.get("disjoint"):
        chosen = (each for each in chosen if sum(bool(life) for life in each) <= 1)
    return list({frozenset({name}).union(*each) for each in chosen})


def loss_of(amount: int) -> Loss:
    """A loss that counts as so many releases."""
    return Loss(**dict.fromkeys(LOSSES), releases=amount)


charges = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "1", "2", "3"]), st.integers(0, 9)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(lineages(), charges)
def test_what_is_spent_is_the_most_that_any_life_was_charged(
    declared: dict[str, dict[str, Any]], charged: list[tuple[str, str, int]]
) -> None:
    """No person whom the declarations allow was charged for more than the account says, and one was for as much."""
    populations = {name: Population.model_validate(entry) for name, entry in declared.items()}
    name = NAMES[-1]
    ways = list_ways(populations, name)
    mine = [charge for charge in charged if charge[0] in frozenset[str]().union(*ways)]
    places = tuple(Place(population, cohort) for population, cohort, _ in mine)
    account = Account(name, populations[name], tuple(loss_of(amount) for *_, amount in mine), places, ways)
    worst = 0
    for life in list_lives(declared, name):
        for cohorts in product(["1", "2", "3"], repeat=len(life)):  # in each population a person is in one cohort
            member = dict(zip(sorted(life), cohorts, strict=True))
            worst = max(worst, sum(n for where, cohort, n in mine if where in life and cohort in ("", member[where])))
    assert account.total == worst


@settings(max_examples=60, deadline=None)
@given(lineages(), charges, st.sampled_from(NAMES))
def test_verifier_adds_up_what_the_pipeline_charges(
    declared: dict[str, dict[str, Any]], charged: list[tuple[str, str, int]], name: str
) -> None:
    """From the caps as they are signed the verifier finds the same ways, and from events the same sum; one less is refused."""
    populations = {name: Population.model_validate(entry) for name, entry in declared.items()}
    caps = {each: {**population.canonical, "cohorts": "disjoint"} for each, population in populations.items()}
    ways = list_ways(populations, name)
    assert verify._list_ways(caps, name) == set(ways)
    counted = frozenset[str]().union(*ways)
    charged = [*charged, (name, "1", 1)]
    mine = [charge for charge in charged if charge[0] in counted]
    places = tuple(Place(population, cohort) for population, cohort, _ in mine)
    account = Account(name, populations[name], tuple(loss_of(amount) for *_, amount in mine), places, ways)
    for noted, fault in ((account.total, ""), ((account.total or 0) - 1, "do not add up")):
        report = verify._Report(None)
        with report.about("events.jsonl"):
            verify._check_cap(report, _history(charged, str(noted), counted - {name}, caps), _events[-1], name, caps)
        assert [fault in finding.words for finding in report.findings if finding.level == "FAIL"] == [True] * bool(fault)


_events: list[verify.Event] = []


class _Caps:
    """A chain of events whose caps were approved before all of them."""

    def __init__(self, caps: dict[str, Any]) -> None:
        self.events, self.caps = _events, caps

    def last(self, kind: str, subject: str, *, before: int) -> tuple[int, str]:
        """See `verify._History`."""
        return 1, "hash"

    def find_caps(self, digest: str) -> Any:
        """See `verify._History`."""
        return self.caps


def _history(charged: list[tuple[str, str, int]], spent: str, carries: frozenset[str], caps: dict[str, Any]) -> Any:
    _events.clear()
    for number, (population, cohort, amount) in enumerate(charged, start=1):
        content: dict[str, Any] = {"population": population, "loss": {"releases": amount}, "unit": "releases", "cap": "1000"}
        content |= {"cohort": cohort} if cohort else {}
        if number == len(charged):
            content |= {"spent": spent, **({"carries": sorted(carries)} if carries else {})}
        _events.append(verify.Event(number, "reserved", f"policy{number}/{cohort or 'once'}/r1", content, "hash"))
    return _Caps(caps)
