"""From observations of two tables to an epsilon that the release must have at least.

An event whose probability is p under one table and p' under the other proves a loss of at least ln(p / p'). The event that proves
most is learnt from some of the draws, and other draws count how often it happens: both counts are bounded by Clopper and Pearson
(CP34), each bound wrong with a probability of at most 0.05%, so a figure is proved with a confidence of 99.9%. The choice does
not bias the figure, because different draws count it.

For a claim by rho the same two bounds prove a rho: the divergence of order 1 of the two tables' outcomes is at most rho, and no
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

DOUBT = 0.0005  # for each of the two bounds
RANKED, CHOSEN = 0.15, 0.35  # shares of the draws that rank observations, and that choose; the rest prove
Proof: TypeAlias = Callable[["npt.NDArray[np.int64]", int, "npt.NDArray[np.int64]"], "npt.NDArray[np.float64]"]
Codes: TypeAlias = npt.NDArray[np.int64]  # the observation in each draw, as a number; -1: none that counts
Both: TypeAlias = tuple[Codes, Codes]


@dataclass(frozen=True, slots=True)
class Event:
    """An event: the attacker's `view`, the numbers that count as yes, and the table under which they are likelier."""

    view: str
    codes: frozenset[int]
    of_other: bool

    def bound(self, seen: Both, prove: Proof) -> float:
        """Return the loss that these draws prove."""
        of, against = (seen[1], seen[0]) if self.of_other else seen
        happened, happened_against = (np.array([np.isin(codes, list(self.codes)).sum()]) for codes in (of, against))
        return float(prove(happened, len(of), happened_against)[0])


def prove(happened: npt.NDArray[np.int64], draws: int, against: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the proved loss of each event, 0 if there is none, from how often it happened in so many draws of each table.

    >>> [round(float(loss), 2) for loss in prove(np.array([500, 0]), 1000, np.array([100, 0]))]
    [1.2, 0.0]
    """
    lower, _ = bound_share(happened, draws, DOUBT)
    _, upper = bound_share(against, draws, DOUBT)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(lower / upper), 0.0)


def prove_rho(happened: npt.NDArray[np.int64], draws: int, against: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the proved rho of each event, 0 if the bounds do not separate the tables, as `prove` does for epsilon.

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
    """Return the event that separates the two tables best, by the first half of the draws, and the loss that it appears to prove.
    All views are of the same draws."""
    best, most = Event(next(iter(views)), frozenset(), of_other=False), -1.0
    for view, seen in views.items():
        for of_other in (False, True):
            event, loss = _choose(view, seen, prove, of_other=of_other)
            if loss > most:
                best, most = event, loss
    return best, most


def left_to_prove(seen: Both) -> Both:
    """Return the draws that neither ranked nor chose."""
    first = count_learnt(len(seen[0]))
    return seen[0][first:], seen[1][first:]


def count_learnt(draws: int) -> int:
    """Return how many of so many draws rank and choose: nothing may be learnt from the others."""
    return int(draws * (RANKED + CHOSEN))


def _choose(view: str, seen: Both, prove: Proof, *, of_other: bool) -> tuple[Event, float]:
    """Return the best event of a view, and its apparent loss: some draws rank codes by how much likelier they are under one
    table, others choose how many of the first to take."""
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


# The testable promises of a policy: one promise for each claim of its card.


Covers: TypeAlias = Literal[
    "list", "lists", "rows", "centroid", "record", "groups", "intervals", "tables", "whole", "blocks", "links"
]
NANO = 1e9
MOST_CLUSTERS = 4  # in the hostile tables


@dataclass(frozen=True, slots=True)
class Promise:
    """`covers` says which part of a release an attacker may use, in the columns `columns`. `epsilon`: the largest allowed loss.
    `least`: for counted promises, the smallest allowed number of records. `most`: for links, the share that may be right.
    `measure`: the unit of `epsilon`, rho under zcdp."""

    description: str
    covers: Covers
    definition: str
    columns: tuple[str, ...]
    epsilon: float | None = None
    least: int | None = None
    most: float | None = None

    @property
    def measure(self) -> Literal["epsilon", "rho"]:
        """Return the unit of the loss."""
        return "rho" if self.definition == ZCDP.key else "epsilon"

    @property
    def prove(self) -> Proof:
        """Return the function that proves a loss from observations."""
        return prove_rho if self.measure == "rho" else prove


def list_promises(policy: Policy) -> list[Promise]:
    """Return every promise of one release of a policy about what its readers see."""
    return [*_of_noise(policy), *_of_groups(policy), *_of_swap(policy), *_of_tables(policy)]


def _of_swap(policy: Policy) -> Iterator[Promise]:
    """Yield the promises of swapping: each value of a row comes from a block, and is the row's own value, or from the same record
    as another, only by chance."""
    if policy.swap is not None:
        names, size = tuple(policy.swapped_columns), policy.block_size
        yield Promise("records that a value of a row may come from", "blocks", policy.definition, names, least=size)
        yield Promise("values of one record in a row, or in its own", "links", policy.definition, names, most=1 / size)


def _of_tables(policy: Policy) -> Iterator[Promise]:
    """Yield the promises of each table next to the rows by itself, and of all together: whatever the rows claim, a table is
    eps-DP, or rho-zCDP."""
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
    records = MOST_CLUSTERS * (protect.k or 1) * policy.parts * people  # in the largest tables: bounds grow with them
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
