"""What each stage of a release leaves in the vault when it is done, as types: its checkpoint. The tables are next to it.

Figures that go on into the evidence as they are stay as they were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from release_pipeline.audit.gates import Gate

Figures: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a stage left that was run under the policy of this hash. `version` follows from all that the stage has read, and
    `tables` has the hash of each column of each table that it vouches for."""

    stage: ClassVar[str]
    policy_hash: str
    version: str
    tables: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested(Checkpoint):
    """The source was read: its header, and how many records belong to other releases (`outside`). `delivered`: the
    version of the source; `snapshot`: what pins the records, where they stay in it. `origins`: what identifies the source,
    so that looks at it can be found."""

    stage: ClassVar[str] = "ingested"
    records: int
    source: str
    header: tuple[str, ...]
    outside: Mapping[str, int]
    delivered: str
    origins: tuple[str, ...]
    snapshot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Checkpoint):
    """Every check was passed. `content`: the keyed hash of the records, by which a retry knows its input; `delivered`,
    `origins` and `snapshot`: of the source."""

    stage: ClassVar[str] = "validated"
    records: int
    warnings: tuple[str, ...]
    content: str
    checks: Mapping[str, int]
    delivered: str
    clamping: Mapping[str, Figures]
    suite: tuple[Figures, ...]
    origins: tuple[str, ...]
    snapshot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Microaggregated(Checkpoint):
    """Clusters and scales are fixed. `input`: the version of the records that they were made of. `linked`:
    what share of the rows simulated releases link, where the policy limits that."""

    stage: ClassVar[str] = "microaggregated"
    input: str
    columns: Mapping[str, Figures]
    facts: Figures
    linked: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked(Checkpoint):
    """Noise is drawn."""

    stage: ClassVar[str] = "masked"
    input: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed(Checkpoint):
    """What may not be released is gone. `anonymity_k`: of the groups of equal quasi-identifiers that are left."""

    stage: ClassVar[str] = "suppressed"
    cells_blanked: int
    rows_dropped: int
    anonymity_k: int | None
    rows: int
    share: float | None
    figures: Figures

    @property
    def table(self) -> str:
        """The table that may be released."""
        [name] = self.tables
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited(Checkpoint):
    """Utility and risk are measured, and the gates judged. `budget` is as it was at the first audit;
    `criteria`: what attacks found, criterion by criterion, where the policy asks for it."""

    stage: ClassVar[str] = "audited"
    internal: Figures
    gates: tuple[Figures, ...]
    budget: Figures
    criteria: tuple[Figures, ...]

    @property
    def judged(self) -> tuple[Gate, ...]:
        """The gates."""
        return tuple(Gate.from_json(gate) for gate in self.gates)

    @property
    def context(self) -> Figures:
        """What the page says besides the release itself."""
        return {"budget": self.budget}


PASSED: tuple[type[Checkpoint], ...] = (Ingested, Validated, Microaggregated, Masked, Suppressed, Audited)
