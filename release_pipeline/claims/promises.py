"""What a policy promises that can be put to the test: one promise for each thing that its card claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from release_pipeline.policy import Policy
from release_pipeline.policy.loss import list_losses, release_loss
from release_pipeline.policy.options import KEpsilonOptions, MdavOptions
from release_pipeline.policy.suppression import Suppress, SuppressClasses

Covers: TypeAlias = Literal["list", "lists", "rows", "centroid", "record", "groups", "values", "intervals"]
NANO = 1e9
MOST_CLUSTERS = 4  # of the hostile tables


@dataclass(frozen=True, slots=True)
class Promise:
    """`covers` says what an attacker may look at, of the columns `columns`. `epsilon`: the most that the loss may be. `least`: of
    promises that are counted, how many records there must be at the least."""

    words: str
    covers: Covers
    definition: str
    columns: tuple[str, ...]
    epsilon: float | None = None
    least: int | None = None


def list_promises(policy: Policy) -> list[Promise]:
    """Every promise of one release of a policy that is about what its readers see."""
    return [*_of_noise(policy), *_of_groups(policy)]


def _of_noise(policy: Policy) -> Iterator[Promise]:
    names, protect = tuple(policy.noise_columns), policy.protect
    if isinstance(protect, MdavOptions):
        return
    if isinstance(protect, KEpsilonOptions):
        yield from _of_records(policy, protect, names)
        return
    people = policy.records_per_person
    definition = policy.definition
    records = MOST_CLUSTERS * (protect.k or 1) * policy.parts * people  # of the largest tables: bounds grow with them
    own = {name: epsilon.nano * people / NANO for name, epsilon in policy.column_epsilon.items()}
    total = sum(own.values())
    if policy.publishes_parts:
        [first] = list_losses(policy, ["first"], charged=[], records=records, slots=records)
        found = first.of(definition, "column")
        share = 1.0 if found is None else found / NANO / total
        own, total = {name: epsilon * share for name, epsilon in own.items()}, total * share
        if protect.amplification is not None:  # what the random choice saves is a promise about the release as a whole
            yield Promise("the first part of a series, all its columns", "rows", definition, names, total)
            return
    if policy.vectors is not None:
        yield from _of_vectors(policy, names, total)
        return
    for name in names:
        if protect.scope == "centroid" and protect.method in ("idp-ls", "idp-cbls"):
            yield Promise(f"each centroid of {name}", "centroid", definition, (name,), own[name])
        else:
            yield Promise(f"the list of {name}", "list", definition, (name,), own[name])
    if protect.scope == "centroid" and definition == "idp":
        bound = release_loss(policy, records=records).of(definition, "column")
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


def _of_records(policy: Policy, protect: KEpsilonOptions, names: tuple[str, ...]) -> Iterator[Promise]:
    epsilon = protect.epsilon.nano / NANO
    if isinstance(policy.suppress, SuppressClasses) and policy.suppress.confidence is not None:
        words = "one record among those of its class, kept and released so"
        yield Promise(words, "record", policy.definition, names, 2 * epsilon)
    else:
        yield Promise("one record among those of its class", "record", policy.definition, names, epsilon)


def _of_groups(policy: Policy) -> Iterator[Promise]:
    protect, quasi = policy.protect, tuple(policy.released_quasi)
    if isinstance(protect, MdavOptions):
        names = tuple(policy.noise_columns)
        yield Promise("records with the same masked values", "groups", policy.definition, names, least=protect.k)
    if isinstance(protect, KEpsilonOptions):
        yield Promise("records with the same generalised values", "groups", policy.definition, quasi, least=protect.k)
        for name in policy.kept_columns if protect.l is not None else ():
            yield Promise(f"different values of {name} in a class", "values", policy.definition, (name,), least=protect.l)
        if isinstance(policy.suppress, SuppressClasses) and policy.suppress.confidence is not None:
            words = "originals in the confidence box of a record, if any"
            yield Promise(words, "intervals", policy.definition, tuple(policy.noise_columns), least=protect.k)
    elif isinstance(policy.suppress, Suppress):
        below = policy.suppress.quasi_groups_below
        yield Promise("records with the same kept values", "groups", policy.definition, quasi, least=below)
