"""The policy file as one frozen object: what a steward writes, and what follows from it. The keys are the contract with stewards;
unknown ones are errors. Checks of a single value are where it is declared; checks across several parts are in `rules`. The parts:
`sections`, `options` (of `protect`), `kinds` (of columns).
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.accounting.budget import epsilon_of
from release_pipeline.mechanisms.catalogue import ClaimSpec, MethodSpec
from release_pipeline.mechanisms.vectors.vectors import Insensitive, MdavSpec
from release_pipeline.policy.file.about import About, Assessment, Audience, Reader, find_terms, name_readers
from release_pipeline.policy.file.derivations import Derivation
from release_pipeline.policy.file.options import ProtectSection, Swap, claim_of, split_epsilon
from release_pipeline.policy.file.sections import (
    AnySuppress,
    Audit,
    Gates,
    Person,
    PrivacyUnit,
    Publish,
    Review,
    Scheduled,
    Sketch,
    Source,
)
from release_pipeline.policy.file.suite import OwnExpectation
from release_pipeline.policy.file.tables import Table, Tabulation, by_name, weights_of
from release_pipeline.policy.hierarchies import Intervals
from release_pipeline.policy.kinds import ByKind, Column, DropColumn, ReleasedColumn, find_clamping
from release_pipeline.policy.kinds.base import RECOGNISED, reason_column
from release_pipeline.policy.values.periods import Every
from release_pipeline.policy.values.scalars import Cron, Days, Frozen, Name, Option, ReleaseList, Slug, release_texts, unique

DIFFERENCING_BELOW = 10  # if a policy sets nothing else
CLAMPED_AT_MOST = Decimal("0.01")  # share of the records of a column, if a policy sets nothing else


class Policy(ByKind, Frozen):
    """One policy file: its keys in the order of the canonical form, and what follows from them. Made by `load_policy`, which
    reports all errors at once and applies `rules` to the whole."""

    policy: Slug
    steward: Slug
    population: Slug
    source: Source
    person: Annotated[
        Person | Literal["each-row"], Option(allowed="Allowed: each-row, or {column: NAME, records_per_release: 1}.")
    ]
    releases: Annotated[
        ReleaseList | Scheduled | Literal["once"],
        BeforeValidator(release_texts),
        Option(
            allowed="Allowed: once, a list of names, {list: [...], cron: '0 6 1 * *'}, or "
            "{every: month, first: 2026-01, cron: '0 6 1 * *'}."
        ),
    ]
    protect: ProtectSection
    columns: Annotated[dict[Name, Column], Field(min_length=1)]
    drop: Annotated[tuple[Name, ...], AfterValidator(unique)] = ()
    derive: dict[Name, Derivation] = Field(default_factory=dict[str, Derivation])
    expectations: tuple[OwnExpectation, ...] = ()
    tables: Annotated[dict[Slug, Table], AfterValidator(by_name)] = Field(default_factory=dict[str, Table])
    suppress: AnySuppress | None = None
    gates: Gates = Gates()
    audit: Audit = Audit()
    review: Review = Review()
    publish: Publish = Publish()
    retain: Days | None = None
    audience: Annotated[
        Audience | None,
        Option(allowed="Allowed: public, internal, {licensed: TERMS}, or {public: REASON}."),
    ] = None
    about: About | None = None
    assessment: Assessment | None = None
    shape: Sketch | None = Field(default=None, exclude=True)  # the steward's belief: no released value depends on it

    @property
    def readers(self) -> Reader | None:
        """Return who may read its releases: public, licensed or internal; None if it is not stated yet."""
        return None if self.audience is None else name_readers(self.audience)

    @property
    def terms(self) -> str | None:
        """The terms of licensed readers, or the reason for a public release that links more rows than is usual."""
        return None if self.audience is None else find_terms(self.audience)

    @property
    def swapped_columns(self) -> list[str]:
        """The columns whose values are swapped after masking, each separately; none without swapping."""
        if self.swap is None:
            return []
        swapped = (name for name, column in self.kept_columns.items() if column.is_swapped)
        return [*self.noise_columns, *swapped]

    @property
    def swap(self) -> Swap | None:
        """Return how values are swapped within blocks after masking; None if they are not."""
        return self.protect.swapped

    @property
    def rows_are_nobodys(self) -> bool:
        """Return whether no released row is that of one record: rows are synthetic, or values are swapped. Errors are then of
        ranks."""
        return self.protect.is_synthetic or self.swap is not None

    @property
    def block_size(self) -> int:
        """Return the least number of records of a block if values are swapped, else 0: k for each record that a person may have,
        so that at most one row in k is one person's."""
        return 0 if self.swap is None else self.swap.k * self.records_per_person

    @property
    def cut_columns(self) -> dict[str, Intervals]:
        """The generalised columns that mondrian cuts as numbers: each class is released with its own range."""
        if not self.protect.cuts_numbers:
            return {}
        specs = {name: column.hierarchy for name, column in self.generalised_columns.items()}
        return {name: spec for name, spec in specs.items() if isinstance(spec, Intervals)}

    @property
    def released_columns(self) -> dict[str, ReleasedColumn]:
        """The columns that are released of the records, in the order of the file."""
        return {name: c for name, c in self.columns.items() if not isinstance(c, DropColumn)}

    @property
    def person_column(self) -> str | None:
        """The column that identifies the person of a record; None if there is none."""
        return self.person.column if isinstance(self.person, Person) else None

    @property
    def is_only_counted(self) -> bool:
        """Return whether records are only counted: no column is made from several, and no check reads several."""
        made = bool(self.derive or self.expectations)
        return self.method.family == "whole-table" and not made

    @property
    def published_columns(self) -> tuple[str, ...]:
        """The columns of a published table: the released ones, and after each that may have no value the one with the reason."""
        names: list[str] = []
        for name, column in self.released_columns.items():
            names += [name, reason_column(name)] if column.separate_reasons else [name]
        return tuple(names)

    @property
    def released_quasi(self) -> list[str]:
        """The quasi-identifiers whose combinations make a group: those that are released unmasked, made coarser, or replaced by
        exact centroids."""
        quasi = [name for name, column in self.released_columns.items() if column.role in RECOGNISED]
        return [name for name in quasi if name not in self.noise_columns or not self.method.is_noisy]

    @property
    def weight(self) -> str | None:
        """The column that holds how many others each record represents; None if there is none."""
        return next((name for name, column in self.released_columns.items() if column.role == "weight"), None)

    @property
    def working_columns(self) -> tuple[str, ...]:
        """The columns that go on after validation: those that are released, and what tables alone count by or add up."""
        return tuple(name for name, column in self.columns.items() if column.reading is not None)

    @property
    def groups_below(self) -> int:
        """Groups of equal released quasi-identifiers are at least this large, by suppression or by the method; 0 for any."""
        only_masked = bool(self.released_quasi) and not self.kept_columns
        suppressed = self.suppress.groups_below if self.suppress is not None else 0
        return self.protect.grouped_at_least(only_masked=only_masked) or suppressed

    @property
    def definition(self) -> str:
        """Return the definition that is claimed: dp, idp, k-epsilon or k-anonymity."""
        return self.claim.definition.key

    @property
    def method(self) -> MethodSpec:
        """Return the catalogue's entry for the method."""
        return self.protect.spec

    @property
    def claim(self) -> ClaimSpec:
        """Return the catalogue's claim for the method, at the scope and with the options of the policy."""
        return claim_of(self.protect)

    @property
    def adds_up(self) -> bool:
        """Return whether the epsilons of releases about the same people add up to a bound, so that a cap can name one."""
        return self.claim.definition.composes

    @property
    def epsilon(self) -> int | None:
        """Return what one release costs one person, rows and tables together: nano-epsilon, or nano-rho under zcdp; None for a
        method without."""
        return None if self.rows_epsilon is None else self.rows_epsilon + (self.tables_cost or 0)

    @property
    def tabulations(self) -> dict[str, Tabulation]:
        """The tables that are released next to the rows, by name."""
        counted, noise, weights = self.counted_columns, self.noise_columns, weights_of(self.columns)
        return {name: Tabulation.of(name, table, counted, noise, weights) for name, table in self.tables.items()}

    @property
    def tables_cost(self) -> int | None:
        """Return what the tables cost one person, in the policy's unit; None if that unit cannot express it."""
        records, tables = self.records_per_person, self.tables.values()
        costs = [table.in_rho(records) if self.protect.by_rho else table.in_epsilon(records) for table in tables]
        return None if None in costs else sum(cost or 0 for cost in costs)

    @property
    def rows_epsilon(self) -> int | None:
        """Return what the rows of one release cost one person, with as many records as one may have: nano-epsilon, or nano-rho
        under zcdp, which grows with the square of the records; None for a method without."""
        total, records = self.protect.charged, self.records_per_person
        if total is None:
            return None
        return total.nano * (records * records if self.protect.by_rho else records)

    def in_epsilon(self, nano: int) -> int:
        """Return an amount of the policy's unit as nano-epsilon; rho is converted at the policy's delta."""
        return nano if self.delta is None else epsilon_of(nano, self.delta)

    @property
    def unit(self) -> str:
        """Return the unit of the budget: epsilon or rho."""
        return "rho" if self.protect.by_rho else "epsilon"

    @property
    def delta(self) -> Decimal | None:
        """The delta that an epsilon of the policy holds at; None where it needs none."""
        return getattr(self.protect, "delta", None) if self.protect.by_rho else None

    @property
    def consistency(self) -> str:
        """Return whether the order of released values is restored: isotonic or none."""
        return self.protect.order_restored

    @property
    def clamps(self) -> bool:
        """Return whether released values are moved back into their declared domain."""
        return self.protect.clamps

    @property
    def lies_on_grid(self) -> bool:
        """Return whether every masked value is a point of its declared grid."""
        return self.method.on_grid == "always" or (self.clamps and self.method.on_grid == "moved")

    @property
    def vectors(self) -> Insensitive | MdavSpec | None:
        """Return how clusters of all noise columns together are made; None if the method makes none."""
        return self.protect.cluster(self.noise_columns)

    @property
    def parts(self) -> int:
        """Return how many random parts the records of the source are masked in, each separately."""
        return self.protect.partitions or 1

    def count_clusters(self, records: int | None) -> int | None:
        """Return how many clusters so many records make, in the largest random part; None if the method makes none, or the number
        of records is not known."""
        if records is None or self.protect.k is None or not self.protect.makes_clusters:
            return None
        return max(-(-records // self.parts) // self.protect.k, 1)

    @property
    def covers_table(self) -> bool:
        """Return whether a bound holds for everything that a reader sees: if the claim has one, no other column is released, rows
        leave shuffled (methods.md section 2), and values stay in their rows. Blocks of swapped values depend on the data."""
        return self.claim.covers_table and not self.kept_columns and self.swap is None

    @property
    def column_epsilon(self) -> dict[str, Epsilon]:
        """Return what each noise column may spend, in the policy's unit: the budget of the release, split exactly."""
        return split_epsilon(self.protect, self.noise_columns)

    @property
    def release_names(self) -> tuple[str, ...]:
        """The releases that the policy names; none if they are named by period."""
        if isinstance(self.releases, Scheduled):
            return self.releases.list or ()
        return ("once",) if isinstance(self.releases, str) else self.releases

    @property
    def every(self) -> Every | None:
        """The period of every release; None if releases are not named by period."""
        return self.releases.every if isinstance(self.releases, Scheduled) else None

    @property
    def first(self) -> str | None:
        """The first period of the series; None if the policy does not name it."""
        return self.releases.first if isinstance(self.releases, Scheduled) else None

    @property
    def cron(self) -> Cron | None:
        """The timetable by which the next release is opened; None if a person must open it."""
        return self.releases.cron if isinstance(self.releases, Scheduled) else None

    @property
    def is_series(self) -> bool:
        """Return whether there are several releases."""
        return self.every is not None or len(self.release_names) > 1

    @property
    def differencing_below(self) -> int:
        """Return the least number of people that may join between two releases, if any join, or leave, if any leave; 0 if people
        cannot be counted."""
        if not self.is_series or not isinstance(self.person, Person):
            return 0
        below = self.gates.differencing_below
        return DIFFERENCING_BELOW if below is None else below

    @property
    def clamped_at_most(self) -> dict[str, Decimal]:
        """The share of records that may be outside the domain, for each column that clamps them."""
        limit, names = self.gates.clamped_at_most, find_clamping(self.columns)
        if isinstance(limit, dict):
            return {name: limit.get(name, CLAMPED_AT_MOST) for name in names}
        return dict.fromkeys(names, CLAMPED_AT_MOST if limit is None else limit)

    @property
    def expected_columns(self) -> frozenset[str]:
        """The columns that expectations are about, released or not."""
        return frozenset(column for expectation in self.expectations for column in expectation.columns)

    @property
    def records_per_person(self) -> int:
        """Return how many records of a release one person, or household, may have; a release is charged for that many."""
        return self.person.records_per_release if isinstance(self.person, Person) else 1

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Return whose records the claim is about."""
        return self.person.privacy_unit if isinstance(self.person, Person) else "person"

    @property
    def record_count(self) -> Literal["not protected"] | None:
        """Return that the claim does not protect how many records a person or household has; None if nobody has more than one."""
        return "not protected" if self.records_per_person > 1 else None

    @property
    def declared(self) -> frozenset[str]:
        """Every column that the source has."""
        release = [self.source.release_column] if self.source.release_column else []
        return frozenset([*self.columns, *self.drop, *release]) - self.derive.keys()

    def canonical_json(self) -> str:
        """Return the policy without comments, order of keys and spelling of numbers: the input of the hash. `Frozen` says which
        options it leaves out. The order of columns is part of it if it decides between equally good classes."""
        canonical = self.model_dump(mode="json")
        canonical["protect"] |= self.protect.canonical_order(
            masked=list(self.noise_columns), generalised=list(self.generalised_columns)
        )
        return json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def canonical_hash(self) -> str:
        """SHA-256 of the canonical form."""
        return self.known_hash

    @cached_property
    def known_hash(self) -> str:
        """The hash, computed once: a policy does not change."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def __copy__(self) -> Policy:
        """Return a copy that makes its own hash: `model_copy` gives it other parts."""
        copied = super().__copy__()
        vars(copied).pop("known_hash", None)
        return copied
