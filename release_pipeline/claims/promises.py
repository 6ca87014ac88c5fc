"""From what was seen of two tables to an epsilon that the release must have at the least.

An event whose probability is p under one table and p' under the other proves a loss of at least ln(p / p'). Which event proves
most is learnt from some of the draws, and others count how often it happens: bounds on both counts by Clopper and Pearson (CP34),
each wrong with a probability of 0.05% at the most, so that a figure is proved with a confidence of 99.9%. What is chosen by
looking cannot flatter itself, because other draws count it.

Of a claim by rho the same two bounds prove a rho: the divergence of order 1 of the two tables' outcomes is at most rho, and no
less than that of whether the event happened, p ln(p/p') + (1 - p) ln((1 - p)/(1 - p')) (data processing).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.samples import bound_share
from release_pipeline.mechanisms.catalogue.spec import DP, SAME, ZCDP
from release_pipeline.policy import Policy
from release_pipeline.policy.plans.loss import rows_loss

DOUBT = 0.0005  # of each of the two bounds
RANKED, CHOSEN = 0.15, 0.35  # shares of the draws that rank what can be seen, and that choose; the rest proves
Proof: TypeAlias = Callable[["npt.NDArray[np.int64]", int, "npt.NDArray[np.int64]"], "npt.NDArray[np.float64]"]
Codes: TypeAlias = npt.NDArray[np.int64]  # what was seen in each draw, by number; -1: nothing that counts
Both: TypeAlias = tuple[Codes, Codes]


@dataclass(frozen=True, slots=True)
class Event:
    """What an attacker looks at (`view`), the numbers that count as yes, and under which of the two tables they are likelier."""

    view: str
    codes: frozenset[int]
    of_other: bool

    def bound(self, seen: Both, prove: Proof) -> float:
        """What these draws prove."""
        of, against = (seen[1], seen[0]) if self.of_other else seen
        happened, happened_against = (np.array([np.isin(codes, list(self.codes)).sum()]) for codes in (of, against))
        return float(prove(happened, len(of), happened_against)[0])


def prove(happened: npt.NDArray[np.int64], draws: int, against: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """For events that happened so often in so many draws of each table: the loss that is proved, 0 where none is.

    >>> [round(float(loss), 2) for loss in prove(np.array([500, 0]), 1000, np.array([100, 0]))]
    [1.2, 0.0]
    """
    lower, _ = bound_share(happened, draws, DOUBT)
    _, upper = bound_share(against, draws, DOUBT)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(lower / upper), 0.0)


def prove_rho(happened: npt.NDArray[np.int64], draws: int, against: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The same for rho: 0 where the bounds do not separate the tables.

    >>> [round(float(loss), 2) for loss in prove_rho(np.array([500, 0]), 1000, np.array([100, 0]))]
    [0.29, 0.0]
    """
    lower, _ = bound_share(happened, draws, DOUBT)
    _, upper = bound_share(against, draws, DOUBT)
    with np.errstate(divide="ignore", invalid="ignore"):
        happens = np.where(lower > 0, lower * np.log(lower / upper), 0.0)
        rest = np.where(lower < 1, (1 - lower) * np.log((1 - lower) / (1 - upper)), 0.0)
    return np.where(lower > upper, happens + rest, 0.0)


def choose_event(views: Mapping[str, Both], prove: Proof) -> tuple[Event, float]:
    """The event that separates the two tables best, by the first half of the draws, and what it seems to prove. All
    views are of the same draws."""
    best, most = Event(next(iter(views)), frozenset(), of_other=False), -1.0
    for view, seen in views.items():
        for of_other in (False, True):
            event, loss = _choose(view, seen, prove, of_other=of_other)
            if loss > most:
                best, most = event, loss
    return best, most


def left_to_prove(seen: Both) -> Both:
    """The draws that neither ranked nor chose."""
    first = count_learnt(len(seen[0]))
    return seen[0][first:], seen[1][first:]


def count_learnt(draws: int) -> int:
    """How many of so many draws rank and choose: nothing may be learnt from the others."""
    return int(draws * (RANKED + CHOSEN))


def _choose(view: str, seen: Both, prove: Proof, *, of_other: bool) -> tuple[Event, float]:
    """Codes ranked by how much likelier they are under one table, by some draws; how many of the first to take, by others."""
    of, against = (seen[1], seen[0]) if of_other else seen
    ranking, choosing = int(len(of) * RANKED), count_learnt(len(of))
    count = int(max(of.max(initial=0), against.max(initial=0))) + 1
    ranked = [np.bincount(codes[:ranking][codes[:ranking] >= 0], minlength=count) for codes in (of, against)]
    tried = [np.bincount(codes[ranking:choosing][codes[ranking:choosing] >= 0], minlength=count) for codes in (of, against)]
    seen_codes = np.flatnonzero(ranked[0] + ranked[1])
    order = seen_codes[np.argsort(-(ranked[0][seen_codes] + 1) / (ranked[1][seen_codes] + 1), kind="stable")]
    losses = prove(np.cumsum(tried[0][order]), choosing - ranking, np.cumsum(tried[1][order]))
    if not len(losses):
        return Event(view, frozenset(), of_other), 0.0
    last = int(losses.argmax())
    return Event(view, frozenset(order[: last + 1].tolist()), of_other), float(losses[last])


# What a policy promises that can be put to the test: one promise for each thing that its card
# claims.


Covers: TypeAlias = Literal[
    "list", "lists", "rows", "centroid", "record", "groups", "intervals", "tables", "whole", "blocks", "links"
]
NANO = 1e9
MOST_CLUSTERS = 4  # of the hostile tables


@dataclass(frozen=True, slots=True)
class Promise:
    """`covers` says what an attacker may look at, of the columns `columns`. `epsilon`: the most that the loss may be. `least`: of
    promises that are counted, how many records there must be at the least. `most`: of links, the share that may be right.
    `measure`: what `epsilon` is, rho under zcdp."""

    description: str
    covers: Covers
    definition: str
    columns: tuple[str, ...]
    epsilon: float | None = None
    least: int | None = None
    most: float | None = None

    @property
    def measure(self) -> Literal["epsilon", "rho"]:
        """What may be lost."""
        return "rho" if self.definition == ZCDP.key else "epsilon"

    @property
    def prove(self) -> Proof:
        """The function that proves a loss by what was seen."""
        return prove_rho if self.measure == "rho" else prove


def list_promises(policy: Policy) -> list[Promise]:
    """Every promise of one release of a policy that is about what its readers see."""
    return [*_of_noise(policy), *_of_groups(policy), *_of_swap(policy), *_of_tables(policy)]


def _of_swap(policy: Policy) -> Iterator[Promise]:
    """Each value of a row comes from a block, and is the own one, or with another one of one record, by chance only."""
    if policy.swap is not None:
        names, size = tuple(policy.swapped_columns), policy.block_size
        yield Promise("records that a value of a row may come from", "blocks", policy.definition, names, least=size)
        yield Promise("values of one record in a row, or in its own", "links", policy.definition, names, most=1 / size)


def _of_tables(policy: Policy) -> Iterator[Promise]:
    """Each table next to the rows by itself, and all together: whatever the rows claim, a table is eps-DP, or rho-zCDP."""
    people, names = policy.records_per_person, tuple(policy.tables)
    for name, table in policy.tables.items():
        definition = ZCDP if table.by_rho else DP
        cost = table.in_rho(people) if table.by_rho else table.in_epsilon(people) or 0
        yield Promise(f"the table {name}", "tables", definition.key, (name,), cost / NANO)
    if len(names) > 1:
        by_rho = any(table.by_rho for table in policy.tables.values())
        costs = [table.in_rho(people) if by_rho else table.in_epsilon(people) or 0 for table in policy.tables.values()]
        yield Promise("all tables together", "tables", (ZCDP if by_rho else DP).key, names, sum(costs) / NANO)


def _of_noise(policy: Policy) -> Iterator[Promise]:
    names, protect = tuple(policy.noise_columns), policy.protect
    if protect.epsilon is None:
        return
    if protect.is_synthetic:
        everything = tuple(policy.released_columns)
        yield Promise("everything in the package", "whole", policy.definition, everything, (policy.rows_epsilon or 0) / NANO)
        return
    if not protect.makes_clusters:
        yield from _of_records(policy, names, protect.epsilon.nano / NANO)
        return
    has_wider = protect.scope == "centroid" and policy.claim.lists is not SAME
    people = policy.records_per_person
    definition = policy.definition
    records = MOST_CLUSTERS * (protect.k or 1) * policy.parts * people  # of the largest tables: bounds grow with them
    times = people * people if protect.by_rho else people
    losses = {name: share.nano * times / NANO for name, share in policy.column_epsilon.items()}
    total = sum(losses.values())
    if policy.vectors is not None:
        yield from _of_vectors(policy, names, total)
        return
    for name in names:
        if has_wider:
            yield Promise(f"each centroid of {name}", "centroid", definition, (name,), losses[name])
        else:
            yield Promise(f"the list of {name}", "list", definition, (name,), losses[name])
    if has_wider:
        bound = rows_loss(policy, records=records).of(definition, "column")
        if bound is not None:
            yield Promise("the lists of all columns, by the wider bound", "lists", definition, names, bound / NANO)
    elif len(names) > 1:
        yield Promise("the lists of all columns", "lists", definition, names, total)
    if policy.covers_table:
        yield Promise("the whole table", "rows", definition, names, total)


def _of_vectors(policy: Policy, names: tuple[str, ...], total: float) -> Iterator[Promise]:
    definition = policy.definition
    if policy.protect.scope == "table":
        covered = "the whole table" if policy.covers_table else "the masked columns, row by row"
        yield Promise(covered, "rows", definition, names, total)
    else:
        yield Promise("each centroid, all columns together", "centroid", definition, names, total)


def _of_records(policy: Policy, names: tuple[str, ...], epsilon: float) -> Iterator[Promise]:
    if _drops_after_noise(policy):
        record = "one record among those of its class, kept and released so"
        yield Promise(record, "record", policy.definition, names, 2 * epsilon)
    else:
        yield Promise("one record among those of its class", "record", policy.definition, names, epsilon)


def _of_groups(policy: Policy) -> Iterator[Promise]:
    protect, quasi, names = policy.protect, tuple(policy.released_quasi), tuple(policy.noise_columns)
    if not policy.method.is_noisy:
        yield Promise("records with the same masked values", "groups", policy.definition, names, least=protect.k)
    if protect.is_synthetic:
        return
    if not protect.makes_clusters:
        yield Promise("records with the same generalised values", "groups", policy.definition, quasi, least=protect.k)
        if _drops_after_noise(policy):
            originals = "originals in the confidence box of a record, if any"
            yield Promise(originals, "intervals", policy.definition, names, least=protect.k)
    elif policy.suppress is not None and policy.suppress.groups_below:
        below = policy.suppress.groups_below
        yield Promise("records with the same kept values", "groups", policy.definition, quasi, least=below)


def _drops_after_noise(policy: Policy) -> bool:
    return policy.suppress is not None and policy.suppress.confidence is not None
