"""The policy file as one frozen object. The shape is the contract with stewards; unknown keys are errors.

What only one value can know is checked where it is declared; what several parts must agree on is in `rules`. The parts:
`sections`, `options` (of `protect`), `kinds` (of columns), `suppression`.
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from release_pipeline.policy.cron import Cron
from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.expectations import Expectation
from release_pipeline.policy.hierarchies import Intervals
from release_pipeline.policy.kinds import (
    Column,
    DropColumn,
    GeneraliseColumn,
    KeepColumn,
    NoiseColumn,
    ReleasedColumn,
    find_clamping,
    pick,
)
from release_pipeline.policy.options import ProtectSection, claim_of, split_epsilon
from release_pipeline.policy.periods import Every
from release_pipeline.policy.scalars import Days, Name, ReleaseList, Slug, release_texts, unique
from release_pipeline.policy.sections import Audit, Gates, Person, Publish, Review, Scheduled, Source
from release_pipeline.policy.suppression import AnySuppress
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.catalogue import ClaimSpec, MethodSpec
from release_pipeline.privacy.vectors import Insensitive, MdavSpec

DIFFERENCING_BELOW = 10  # where a policy says nothing else
CLAMPED_AT_MOST = Decimal("0.01")  # of the records of a column, where a policy says nothing else


class Policy(Frozen):
    """One policy file. Made by `load_policy`, which reports all errors at once and applies `rules` to the whole."""

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
    expect: Annotated[dict[Slug, Expectation], Option(added_later=True)] = Field(default_factory=dict[str, Expectation])
    suppress: AnySuppress | None = None
    gates: Gates = Gates()
    audit: Annotated[Audit, Option(added_later=True)] = Audit()
    review: Review = Review()
    publish: Publish = Publish()
    retain: Days | None = None

    @property
    def noise_columns(self) -> dict[str, NoiseColumn]:
        """The columns that get noise, in the order of the file."""
        return pick(self.columns, NoiseColumn)

    @property
    def kept_columns(self) -> dict[str, KeepColumn]:
        """The columns that are released as they are, in the order of the file."""
        return pick(self.columns, KeepColumn)

    @property
    def generalised_columns(self) -> dict[str, GeneraliseColumn]:
        """The columns that are released made coarser, in the order of the file."""
        return pick(self.columns, GeneraliseColumn)

    @property
    def cut_columns(self) -> dict[str, Intervals]:
        """The generalised columns that mondrian cuts as numbers: each class is released with the range of its own."""
        if not self.protect.cuts_numbers:
            return {}
        specs = {name: column.hierarchy for name, column in self.generalised_columns.items()}
        return {name: spec for name, spec in specs.items() if isinstance(spec, Intervals)}

    @property
    def released_columns(self) -> dict[str, ReleasedColumn]:
        """The columns that are released, in the order of the file."""
        return {name: column for name, column in self.columns.items() if not isinstance(column, DropColumn)}

    @property
    def released_quasi(self) -> list[str]:
        """The quasi-identifiers whose combinations make a group: those that are released as they are, made coarser, or replaced
        by exact centroids."""
        quasi = [name for name, column in self.released_columns.items() if column.role == "quasi"]
        return [name for name in quasi if name not in self.noise_columns or not self.method.is_noisy]

    @property
    def groups_below(self) -> int:
        """Groups of equal released quasi-identifiers are at least this large, by suppression or by the method; 0 for any."""
        only_masked = bool(self.released_quasi) and not self.kept_columns
        suppressed = self.suppress.groups_below if self.suppress is not None else 0
        return self.protect.grouped_at_least(only_masked=only_masked) or suppressed

    @property
    def definition(self) -> str:
        """What is claimed: dp, idp, k-epsilon or k-anonymity."""
        return self.claim.definition.key

    @property
    def method(self) -> MethodSpec:
        """What the catalogue says of the method."""
        return self.protect.spec

    @property
    def claim(self) -> ClaimSpec:
        """What the catalogue says of the method, at the scope and with the options of the policy."""
        return claim_of(self.protect)

    @property
    def adds_up(self) -> bool:
        """Whether the epsilons of releases about the same people add up to a bound, so that a cap can name one."""
        return self.claim.definition.composes

    @property
    def epsilon(self) -> int | None:
        """The nano-epsilon of one release for one person, with as many records as one may have; None for a method without."""
        total = self.protect.epsilon
        return None if total is None else total.nano * self.records_per_person

    @property
    def consistency(self) -> str:
        """Whether the order of released values is restored: isotonic or none."""
        return self.protect.order_restored

    @property
    def clamps(self) -> bool:
        """Whether released values are moved back into their declared domain."""
        return self.protect.clamps

    @property
    def vectors(self) -> Insensitive | MdavSpec | None:
        """How clusters of all noise columns together are made, where the method makes such."""
        return self.protect.cluster(self.noise_columns)

    @property
    def parts(self) -> int:
        """How many random parts the records of the source are masked in, each on its own."""
        return self.protect.partitions or 1

    def count_clusters(self, records: int | None) -> int | None:
        """How many clusters so many records make, in the largest random part; None where the method makes none, or nobody knows
        how many records."""
        if records is None or self.protect.k is None or not self.protect.makes_clusters:
            return None
        return max(-(-records // self.parts) // self.protect.k, 1)

    @property
    def covers_table(self) -> bool:
        """Whether a bound holds for all that a reader sees: where the claim has one, and no other column is released and rows
        leave shuffled (methods.md section 2)."""
        return self.claim.covers_table and not self.kept_columns

    @property
    def publishes_parts(self) -> bool:
        """Whether each release is one part of the same records."""
        return self.protect.publish_parts is not None

    @property
    def column_epsilon(self) -> dict[str, Epsilon]:
        """What each noise column may spend: the release's epsilon, split exactly."""
        return split_epsilon(self.protect, self.noise_columns)

    @property
    def release_names(self) -> tuple[str, ...]:
        """The releases that the policy names; none where a period gives them their names."""
        if isinstance(self.releases, Scheduled):
            return self.releases.list or ()
        return ("once",) if isinstance(self.releases, str) else self.releases

    @property
    def every(self) -> Every | None:
        """The period that every release is of, if that is how they are named."""
        return self.releases.every if isinstance(self.releases, Scheduled) else None

    @property
    def first(self) -> str | None:
        """The period that the series begins with, if the policy names it."""
        return self.releases.first if isinstance(self.releases, Scheduled) else None

    @property
    def cron(self) -> Cron | None:
        """When the next release is opened, if nobody need do it."""
        return self.releases.cron if isinstance(self.releases, Scheduled) else None

    @property
    def is_series(self) -> bool:
        """Whether there are several releases."""
        return self.every is not None or len(self.release_names) > 1

    @property
    def differencing_below(self) -> int:
        """Between two releases at least this many people join, or nobody does; likewise leave. 0 where nobody can be counted."""
        if not self.is_series or not isinstance(self.person, Person):
            return 0
        below = self.gates.differencing_below
        return DIFFERENCING_BELOW if below is None else below

    @property
    def clamped_at_most(self) -> dict[str, Decimal]:
        """The share of its records that may lie outside the domain of each column that clamps them."""
        limit, names = self.gates.clamped_at_most, find_clamping(self.columns)
        if isinstance(limit, dict):
            return {name: limit.get(name, CLAMPED_AT_MOST) for name in names}
        return dict.fromkeys(names, CLAMPED_AT_MOST if limit is None else limit)

    @property
    def expected_columns(self) -> frozenset[str]:
        """The columns that expectations are about, released or not."""
        return frozenset(column for rule in self.expect.values() for column in rule.columns)

    @property
    def records_per_person(self) -> int:
        """How many records of a release one person may have."""
        return self.person.records_per_release if isinstance(self.person, Person) else 1

    @property
    def declared(self) -> frozenset[str]:
        """Every column that the source may have."""
        release = [self.source.release_column] if self.source.release_column else []
        return frozenset([*self.columns, *self.drop, *release])

    def canonical_json(self) -> str:
        """The policy without comments, order of keys and spelling of numbers: what the hash is of. Which options it leaves out
        says `Frozen`. Where the order of columns decides between equally good classes, it is part of it."""
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
        """The same, made once: a policy does not change."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()

    def __copy__(self) -> Policy:
        """A copy makes its own hash: `model_copy` gives it other parts."""
        copied = super().__copy__()
        vars(copied).pop("known_hash", None)
        return copied
