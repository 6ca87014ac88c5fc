"""The most that each release may cost, for which population, and under which cap: events of the registry, and a row per cap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from release_pipeline.errors import OverCap, StoreError
from release_pipeline.policy.plans.loss import LOSSES, UNBOUNDED, Account, Loss, format_amount
from release_pipeline.store.database import is_unfinished, statement
from release_pipeline.store.registry import Event, Registry, RegistryChanged, ReleaseId
from release_pipeline.store.registry_server import CheckFailed

RESERVED = "reserved"
LOST = "lost"  # the state of a release after a restore: more of it happened than the registry has


@dataclass(frozen=True, slots=True)
class Charge:
    """The most that one release costs, its population, and the keyed hash of its records. `carries`: the populations whose
    charges counted with it; `origins`: where the records come from, which identifies the trials on them, recorded where there was
    a trial. `unit` and `cap`: of its population's cap then."""

    id: ReleaseId
    population: str
    policy_hash: str
    source: str
    records: int
    loss: Loss
    noted: str = ""
    carries: tuple[str, ...] = ()
    unit: str = field(default="", compare=False)
    cap: str = field(default="", compare=False)
    origins: tuple[str, ...] = field(default=(), compare=False)


def read_charge(event: Event) -> Charge | None:
    """Return the charge that an event is, if it is one."""
    if event.kind != RESERVED or event.release is None:
        return None
    payload = event.content
    return Charge(
        event.release,
        payload["population"],
        payload["policy_hash"],
        payload["source"],
        payload["records"],
        Loss.read(payload["loss"]),
        event.noted,
        tuple(payload.get("carries", ())),
        payload["unit"],
        payload["cap"],
        tuple(payload.get("origins", ())),
    )


def charges_of(events: Iterable[Event]) -> list[Charge]:
    """Return the charges among some events, in their order."""
    return [charge for event in events if (charge := read_charge(event)) is not None]


def find_entered(events: Iterable[Event]) -> dict[ReleaseId, str]:
    """Return the releases whose charges the officer entered after a restore, and when: they happened, and their noise is lost."""
    return {event.release: event.noted for event in events if event.kind == LOST and event.release and event.content["entered"]}


def list_charges(registry: Registry, population: str | None = None) -> list[Charge]:
    """Return every charge, or every one to a population, in the order in which they were made. None was ever taken back."""
    charges = charges_of(registry.events)
    return [charge for charge in charges if population in (None, charge.population)]


def find_budget_faults(registry: Registry) -> Iterator[str]:
    """Yield the populations whose row of the cap differs from their last charge, in sentences for an auditor."""
    last = {charge.population: charge for charge in list_charges(registry)}
    spent = {event.release: event.content["spent"] for event in registry.events if event.kind == RESERVED}
    rows: dict[str, list[tuple[str, str, str]]] = {name: [] for name in last}
    for population, basis, *amounts in registry.budgets:
        unit = basis.partition(";")[0]  # the rest names the populations that count with it
        now, cap = (str(amount) if unit == "releases" else format_amount(amount) for amount in amounts)
        rows.setdefault(population, []).append((unit, now, cap))
    for name, noted in sorted(rows.items()):
        charge = last.get(name)
        wanted = [] if charge is None or spent[charge.id] == UNBOUNDED else [(charge.unit, spent[charge.id], charge.cap)]
        over = [(unit, now, now) for unit, now, _ in wanted]  # charges that an officer enters after a restore may exceed the cap
        if noted not in (wanted, over):
            yield f"the row of the cap of {name} in the table 'budgets' is not what its last charge says: somebody changed it"


def add_charge(registry: Registry, charge: Charge, account: Account, *, happened: bool = False) -> None:
    """Charge a release, together with the row of its cap, which the database itself does not let go over.

    `account` is the population's before this charge. Raises `OverCap` when it does not fit, and `RegistryChanged` when the row
    and the events do not agree on what is spent. A charge that has `happened` already is entered whether or not it fits, since it
    cannot be refused any more: the account is then overdrawn, and nothing else fits.
    """
    spent, after = account.total, account.plus(charge.loss).total
    if any(part is not None and part < 0 for part in (getattr(charge.loss, name) for name in LOSSES)):
        raise OverCap("a loss below nothing cannot be charged.", where=str(charge.id))
    if (after is None or spent is None) and not happened:
        raise OverCap("a loss without bound fits under no cap.", where=str(charge.id))
    if any(known.id == charge.id for known in list_charges(registry)):
        raise RegistryChanged("this release is charged already; nothing is charged twice.", where=str(charge.id))
    if charge.carries != account.carries or charge.population != account.population:
        raise RegistryChanged("the charge and the account are not of the same people.", where=str(charge.id))
    _update_budget(registry, charge, account, spent=spent, after=after, happened=happened)
    content = {
        "population": charge.population,
        "policy_hash": charge.policy_hash,
        "source": charge.source,
        "records": charge.records,
        "loss": {name: getattr(charge.loss, name) for name in LOSSES},
        "unit": account.unit,
        "cap": account.limit,
        "spent": account.format(after),
    }
    content |= {"carries": list(charge.carries)} if charge.carries else {}
    content |= {"origins": list(charge.origins)} if charge.origins else {}
    registry.add(RESERVED, charge.id, **content)


def _update_budget(
    registry: Registry, charge: Charge, account: Account, *, spent: int | None, after: int | None, happened: bool
) -> None:
    """Add to the row of the population's cap. It is begun again from the events when the cap counts in another unit than before,
    or with other populations' charges. Where nothing bounds what is spent there is no row: nothing more can be charged."""
    whose = {"population": charge.population}
    rows = registry.connection.execute(statement("ledger/select_budget"), whose).fetchall()
    if rows and spent is not None and rows[0][0] == account.basis and rows != [(account.basis, spent)]:
        raise RegistryChanged(
            "the events and the row of the cap do not agree on what is spent: one of them was changed.",
            where=charge.population,
            remedy="Restore the registry as it was last.",
        )
    if after is None or spent is None:
        registry.connection.execute(statement("ledger/delete_budget"), whose)
        return
    if not rows or rows[0][0] != account.basis:
        registry.connection.execute(statement("ledger/delete_budget"), whose)
        begun = {**whose, "unit": account.basis, "spent": spent, "cap": max(account.most, spent)}  # the update sees a lower cap
        registry.connection.execute(statement("ledger/insert_budget"), begun)
    most = max(account.most, after) if happened else account.most
    try:
        registry.connection.execute(statement("ledger/spend"), {**whose, "cost": after - spent, "cap": most})
    except (duckdb.ConstraintException, CheckFailed):
        raise OverCap("the database refused to go over the cap.", where=str(charge.id)) from None


# The required content of the vault, by the events of the registry: checked before anything is written, and before a new file
# replaces a lost one. Only names and sizes are checked, since closing a file that was read frees the locks that this process has
# on it.


RESTORE = "Restore it from a backup, together with the registry; until then nothing is written."


class VaultDamaged(StoreError):
    """A file is missing in the vault that existed according to the registry."""


def list_populations(events: Iterable[Event]) -> list[str]:
    """Return the populations that were ever charged: each has a file in the vault, made before its first charge. Charges that the
    officer entered after a restore have left no file."""
    events = list(events)
    entered = find_entered(events)
    return sorted({event.content["population"] for event in events if event.kind == RESERVED and event.release not in entered})


def find_missing(vault: Path, events: Iterable[Event]) -> Iterator[Path]:
    """Yield the files of populations that are missing, or too short to be databases."""
    for population in list_populations(events):
        file = vault / f"{population}.duckdb"
        if not file.is_file() or is_unfinished(file):
            yield file


def check_populations(vault: Path, events: Iterable[Event]) -> None:
    """Refuse to go on without one of them."""
    for file in find_missing(vault, events):
        raise VaultDamaged(
            "the vault of a population that was charged is missing, or cut short.", where=str(file), remedy=RESTORE
        )
