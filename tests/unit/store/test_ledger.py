"""The ledger: exact sums under a cap that the database itself holds, every charge once, and nothing counted that was changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from release_pipeline.errors import OverCap, StoreError
from release_pipeline.policy.loading.populations import Cap, Population
from release_pipeline.policy.plans.loss import LOSSES, Account, Loss
from release_pipeline.store.ledger import RESERVED, Charge, add_charge, find_budget_faults, list_charges, read_charge
from release_pipeline.store.registry import Registry, RegistryChanged, ReleaseId, open_registry
from tests.unit.store.anchors import Kept

ODD = (1, 3, 999_999_999, 1_000_000_007, 123_456_789_012_345_677, 2**53 + 1, 2**63 + 11)  # no float holds most of them
IDP_COLUMN = {"definition": "idp", "scope": "column"}
SAME_FILE = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])  # every example is rolled back


class RollBack(Exception):
    """Ends a block without its changes."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a registry is to be."""
    return tmp_path / "registry.duckdb"


@pytest.fixture
def kept() -> Kept:
    """What the vault knows."""
    return Kept()


@pytest.fixture
def opened(path: Path, kept: Kept) -> Callable[[], Any]:
    """Opens the registry to write."""
    return lambda: open_registry(path, anchor=kept)


@contextmanager
def undone(opened: Callable[[], Any]) -> Iterator[Registry]:
    """An open registry that forgets what was done in the block."""
    try:
        with opened() as registry:
            yield registry
            raise RollBack
    except RollBack:
        pass


def cap_of(epsilon: str | int | None = None, *, releases: int | None = None, **parts: str) -> Population:
    """A population with this cap; of epsilon in iDP for columns unless said otherwise."""
    if releases is not None:
        return Population(cap=Cap(releases=releases))
    return Population(cap=Cap.model_validate({"epsilon": Decimal(str(epsilon)), **IDP_COLUMN, **parts}))


def loss_of(nano: int, **parts: int | None) -> Loss:
    """An iDP loss of so much for a column's list; DP is infinite and so is the table."""
    return Loss(**(dict.fromkeys(LOSSES) | {"idp_centroid": nano, "idp_column": nano} | parts))


def charge_of(number: int, loss: Loss, population: str = "folk") -> Charge:
    """A charge for release `number`."""
    return Charge(ReleaseId("people", str(number)), population, "policy hash", f"source {number}", 100 + number, loss)


def account_of(registry: Registry, cap: Population, population: str = "folk") -> Account:
    """The account as the events have it."""
    return Account(population, cap, tuple(charge.loss for charge in list_charges(registry, population)))


def charge(registry: Registry, number: int, loss: Loss, cap: Population, population: str = "folk") -> None:
    """Charge release `number`."""
    add_charge(registry, charge_of(number, loss, population), account_of(registry, cap, population))


def budgets(registry: Registry) -> list[tuple[str, str, int, int]]:
    """Every row of the caps."""
    return registry.connection.execute("SELECT population, unit, spent, cap FROM budgets ORDER BY ALL").fetchall()


# what is stored


def test_a_charge_is_read_back_as_it_was_made(opened: Callable[[], Any]) -> None:
    """Every part of it, infinity as none, with its time; in an event that says what was spent, under which cap, in words."""
    loss = Loss(None, None, None, ODD[3], 123_456_789_012_345, None)
    with opened() as registry:
        charge(registry, 1, loss, cap_of(999_999))
        registry.add("opened", ReleaseId("people", "2"), why="by hand")
    with opened() as registry:
        [found] = list_charges(registry)
        assert dataclasses.replace(found, noted="") == charge_of(1, loss)
        reserved, other = registry.events
        assert (found.noted, reserved.kind, reserved.release) == (reserved.noted, RESERVED, found.id)
        assert reserved.content == {
            "population": "folk",
            "policy_hash": "policy hash",
            "source": "source 1",
            "records": 101,
            "loss": {name: getattr(loss, name) for name in LOSSES},
            "unit": "epsilon, iDP, column",
            "cap": "999999",
            "spent": "123456.789012345",
        }
        assert read_charge(other) is None
        assert all(type(part) in (int, type(None)) for part in reserved.content["loss"].values())


# sums


@pytest.mark.slow
@SAME_FILE
@given(amounts=st.lists(st.sampled_from(ODD) | st.integers(1, 2**70), min_size=1, max_size=6))
def test_sums_are_exact(opened: Callable[[], Any], amounts: list[int]) -> None:
    """Of odd amounts as large as one likes: events, row and words have Python's own sum, as whole numbers."""
    with undone(opened) as registry:
        cap = Population(cap=Cap.model_construct(epsilon=_Huge(), definition="idp", scope="column", releases=None))
        for number, nano in enumerate(amounts):
            charge(registry, number, loss_of(nano), cap)
        total = sum(amounts)
        [(_, _, spent, _)] = budgets(registry)
        account = account_of(registry, cap)
        assert (spent, account.total) == (total, total)
        assert (type(spent), type(account.total)) == (int, int)
        assert Fraction(account.spent) == Fraction(total, 10**9)
        assert Fraction(registry.events[-1].content["spent"]) == Fraction(total, 10**9)


@dataclasses.dataclass(frozen=True)
class _Huge:
    """A cap beyond what an epsilon may be, for sums beyond 64 bits."""

    nano: int = 2**100


@pytest.mark.slow
@SAME_FILE
@given(
    cap=st.integers(1, 2 * 10**9 + 1),
    amounts=st.lists(st.integers(1, 10**9 + 1), min_size=1, max_size=6),
)
def test_the_database_lets_nothing_over_the_cap(opened: Callable[[], Any], cap: int, amounts: list[int]) -> None:
    """Without anybody asking the account first: exactly what fits into the cap to the last nano-epsilon passes."""
    epsilon = cap_of(str(Decimal(cap) / 10**9))
    with undone(opened) as registry:
        for number, nano in enumerate(amounts):
            if sum(amounts[: number + 1]) > cap:
                with pytest.raises(OverCap, match="over the cap"):
                    charge(registry, number, loss_of(nano), epsilon)
                break
            charge(registry, number, loss_of(nano), epsilon)
            assert budgets(registry)[0][2:] == (sum(amounts[: number + 1]), cap)


# infinity


@pytest.mark.parametrize("part", ["dp_centroid", "dp_column", "dp_table", "idp_table"])
def test_infinity_fits_under_no_cap(opened: Callable[[], Any], part: str) -> None:
    """Of the cap's definition and scope; nothing is written."""
    definition, scope = part.split("_")
    with opened() as registry:
        with pytest.raises(OverCap, match="without bound"):
            charge(registry, 1, loss_of(1), cap_of(1000, definition=definition, scope=scope))
        assert (registry.events, budgets(registry)) == ((), [])


def test_nothing_fits_where_infinity_is_spent_already(opened: Callable[[], Any]) -> None:
    """An iDP release, and then a cap in DP: a finite loss cannot be added to infinity."""
    with opened() as registry:
        charge(registry, 1, loss_of(1), cap_of(5))
    dp = Loss(*[10**9] * 6)
    with opened() as registry:
        with pytest.raises(OverCap, match="without bound"):
            charge(registry, 2, dp, cap_of(1000, definition="dp"))
        assert len(registry.events) == 1


# once


@pytest.mark.parametrize("other", [loss_of(1), loss_of(2)])
def test_a_release_is_never_charged_twice(opened: Callable[[], Any], other: Loss) -> None:
    """Neither the same amount nor another, whatever the population; its next revision is another release."""
    with opened() as registry:
        charge(registry, 1, loss_of(1), cap_of(5))
        for population in ("folk", "others"):
            with pytest.raises(RegistryChanged, match="charged already"):
                charge(registry, 1, other, cap_of(5), population)
        again = dataclasses.replace(charge_of(1, other), id=ReleaseId("people", "1", 2))
        add_charge(registry, again, account_of(registry, cap_of(5)))
        assert len(list_charges(registry)) == 2


# the cap changes


def test_a_cap_lowered_below_what_is_spent_refuses_in_words_and_raised_lets_it(opened: Callable[[], Any]) -> None:
    """Lowered to less than is spent, to what is spent, to a little more: refused, and nothing written; raised: charged."""
    with opened() as registry:
        charge(registry, 1, loss_of(5), cap_of("0.000000005"))
    for lowered in ("0.000000004", "0.000000005", "0.000000006"):
        with pytest.raises(OverCap, match=r"people/2/r1: .*over the cap"), opened() as registry:
            charge(registry, 2, loss_of(2), cap_of(lowered))
        with opened() as registry:
            assert len(registry.events) == 1
            assert budgets(registry) == [("folk", "epsilon, iDP, column", 5, 5)]
    with opened() as registry:
        charge(registry, 2, loss_of(2), cap_of("0.000000007"))
    with opened() as registry:
        charge(registry, 3, loss_of(1), cap_of("0.000000010"))
        assert budgets(registry) == [("folk", "epsilon, iDP, column", 8, 10)]


UNITS = {
    "epsilon, iDP, column": cap_of(1),
    "epsilon, iDP, centroid": cap_of(1, scope="centroid"),
    "epsilon, DP, column": cap_of(1, definition="dp"),
    "epsilon, DP, table": cap_of(1, definition="dp", scope="table"),
    "releases": cap_of(releases=10),
}
BOUNDED = Loss(1, 10, 100, 1_000, 10_000, 100_000)


@pytest.mark.parametrize(("before", "after"), list(permutations(UNITS, 2)))
def test_a_cap_in_another_unit_counts_anew_from_the_events(opened: Callable[[], Any], before: str, after: str) -> None:
    """Another definition or scope, or releases: what was charged under the old cap counts under the new one, and the other way
    round when it is changed back. No charge is forgotten and none looks like a change by somebody."""
    with opened() as registry:
        for number, unit in enumerate([before, before, after, after, before, after], start=1):
            charge(registry, number, BOUNDED, UNITS[unit])
            each = 1 if unit == "releases" else BOUNDED.of("dp" if " DP" in unit else "idp", unit.rpartition(" ")[2])
            assert account_of(registry, UNITS[unit]).total == number * (each or 0)
            assert [spent for _, row, spent, _ in budgets(registry) if row == unit] == [number * (each or 0)]


def test_a_cap_in_another_unit_refuses_what_does_not_fit_with_what_was_before(opened: Callable[[], Any]) -> None:
    """Two releases are charged in epsilon; a cap of one or two lets no third through, one of three does."""
    with opened() as registry:
        for number in (1, 2):
            charge(registry, number, loss_of(1), cap_of(5))
    for too_few in (1, 2):
        with pytest.raises(OverCap), opened() as registry:
            charge(registry, 3, loss_of(1), cap_of(releases=too_few))
    with opened() as registry:
        charge(registry, 3, loss_of(1), cap_of(releases=3))


# rows and events that disagree


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE budgets SET spent = 0",
        "UPDATE budgets SET spent = spent - 1",
        "UPDATE budgets SET spent = spent + 1",
        "INSERT INTO budgets FROM budgets",
        "INSERT INTO budgets SELECT population, unit, 0, cap FROM budgets",
    ],
)
def test_a_row_that_does_not_agree_with_the_events_is_refused(opened: Callable[[], Any], change: str) -> None:
    """Less, more, or twice: the next charge is refused, in words that name the population; nothing is written."""
    with opened() as registry:
        charge(registry, 1, loss_of(5), cap_of(5))
    with opened() as registry:
        registry.connection.execute(change)
    with pytest.raises(RegistryChanged, match=r"folk: .*do not agree"), opened() as registry:
        charge(registry, 2, loss_of(1), cap_of(5))
    with opened() as registry:
        assert len(registry.events) == 1


def test_a_cap_raised_in_the_row_helps_nobody(opened: Callable[[], Any]) -> None:
    """The cap is that of the officer's file, whatever the row says."""
    with opened() as registry:
        charge(registry, 1, loss_of(5), cap_of("0.000000005"))
        registry.connection.execute("UPDATE budgets SET cap = 1000000")
    with pytest.raises(OverCap), opened() as registry:
        charge(registry, 2, loss_of(1), cap_of("0.000000005"))


@pytest.mark.parametrize("change", ["DELETE FROM budgets", "UPDATE budgets SET spent = 0", "INSERT INTO budgets FROM budgets"])
def test_an_auditor_is_told_of_a_row_that_somebody_changed(opened: Callable[[], Any], change: str) -> None:
    """Removed, lowered, or twice there; an untouched row is no fault."""
    with opened() as registry:
        charge(registry, 1, loss_of(5), cap_of(5))
    with opened() as registry:
        assert not list(find_budget_faults(registry))
        registry.connection.execute(change)
    with opened() as registry:
        assert ["of folk" in fault for fault in find_budget_faults(registry)] == [True]


def test_a_removed_row_is_made_anew_from_the_events(opened: Callable[[], Any]) -> None:
    """What was spent stays spent."""
    with opened() as registry:
        charge(registry, 1, loss_of(5), cap_of("0.000000006"))
        registry.connection.execute("DELETE FROM budgets")
    with pytest.raises(OverCap), opened() as registry:
        charge(registry, 2, loss_of(2), cap_of("0.000000006"))
    with opened() as registry:
        charge(registry, 2, loss_of(1), cap_of("0.000000006"))
        assert budgets(registry) == [("folk", "epsilon, iDP, column", 6, 6)]


@pytest.mark.parametrize("known", [(), (loss_of(4),), (loss_of(5), loss_of(5))])
def test_an_account_that_is_not_that_of_the_events_is_refused(opened: Callable[[], Any], known: tuple[Loss, ...]) -> None:
    """Somebody counted before another charge was made, or counted wrongly."""
    with opened() as registry:
        charge(registry, 1, loss_of(5), cap_of(5))
        with pytest.raises(RegistryChanged, match="do not agree"):
            add_charge(registry, charge_of(2, loss_of(1)), Account("folk", cap_of(5), known))


def test_a_charge_without_a_registry_to_write_is_refused(path: Path, kept: Kept, opened: Callable[[], Any]) -> None:
    """Opened for reading: nothing is charged."""
    with opened() as registry:
        charge(registry, 1, loss_of(1), cap_of(5))
    with open_registry(path, anchor=kept, read_only=True) as registry, pytest.raises(StoreError, match="for reading"):
        charge(registry, 2, loss_of(1), cap_of(5))
