"""What a policy promises that can be put to the test: one promise for each thing that its card claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from release_pipeline.claims.events import Proof, prove, prove_rho
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import rows_loss
from release_pipeline.privacy.catalogue.definitions import DP, SAME, ZCDP

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

    words: str
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
        """How so much of it is proved by what was seen."""
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
    """Each table beside the rows by itself, and all together: whatever the rows claim, a table is eps-DP, or rho-zCDP."""
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
    own = {name: share.nano * times / NANO for name, share in policy.column_epsilon.items()}
    total = sum(own.values())
    if policy.vectors is not None:
        yield from _of_vectors(policy, names, total)
        return
    for name in names:
        if has_wider:
            yield Promise(f"each centroid of {name}", "centroid", definition, (name,), own[name])
        else:
            yield Promise(f"the list of {name}", "list", definition, (name,), own[name])
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
        words = "the whole table" if policy.covers_table else "the masked columns, row by row"
        yield Promise(words, "rows", definition, names, total)
    else:
        yield Promise("each centroid, all columns together", "centroid", definition, names, total)


def _of_records(policy: Policy, names: tuple[str, ...], epsilon: float) -> Iterator[Promise]:
    if _drops_after_noise(policy):
        words = "one record among those of its class, kept and released so"
        yield Promise(words, "record", policy.definition, names, 2 * epsilon)
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
            words = "originals in the confidence box of a record, if any"
            yield Promise(words, "intervals", policy.definition, names, least=protect.k)
    elif policy.suppress is not None and policy.suppress.groups_below:
        below = policy.suppress.groups_below
        yield Promise("records with the same kept values", "groups", policy.definition, quasi, least=below)


def _drops_after_noise(policy: Policy) -> bool:
    return policy.suppress is not None and policy.suppress.confidence is not None
