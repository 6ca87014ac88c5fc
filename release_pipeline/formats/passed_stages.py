"""The types of a stage's checkpoint: what each stage of a release leaves in the vault when it is done. The tables are next to it.

Figures that are copied into the evidence stay as they were written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from release_pipeline.audit.gates import Gate

Figures: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The checkpoint of a stage that was run under the policy of this hash. `version` depends on everything that the stage has
    read; `tables` has the hash of each column of each table of the stage."""

    stage: ClassVar[str]
    policy_hash: str
    version: str
    tables: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested(Checkpoint):
    """The source was read: its header, and how many records belong to other releases (`outside`). `delivered`: the version of the
    source; `snapshot`: the version that holds the records, if they stay in the source. `origins`: what identifies the source, so
    that trials on it can be found. `persons`: counts of them, if the records stay in the source; `table_version`: that of a Delta
    table, which later stages read again."""

    stage: ClassVar[str] = "ingested"
    records: int
    source: str
    header: tuple[str, ...]
    outside: Mapping[str, int]
    delivered: str
    origins: tuple[str, ...]
    snapshot: str = ""
    persons: Mapping[str, int] | None = None
    table_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Checkpoint):
    """Every check was passed. `content`: the keyed hash of the records, by which a retry knows its input; `delivered`, `origins`,
    `snapshot` and `table_version` are those of the source."""

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
    table_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Microaggregated(Checkpoint):
    """Clusters and scales are fixed. `input`: the version of the records that they were made from. `linked`: the share of the
    rows that simulated releases link, if the policy limits it."""

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
    """Cells and records that may not be released are removed. `anonymity_k`: the size of the smallest remaining group of equal
    quasi-identifiers."""

    stage: ClassVar[str] = "suppressed"
    cells_blanked: int
    rows_dropped: int
    anonymity_k: int | None
    rows: int
    share: float | None
    figures: Figures

    @property
    def table(self) -> str:
        """Return the name of the table that may be released."""
        [name] = self.tables
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited(Checkpoint):
    """Utility and risk are measured, and the gates judged. `budget` is that of the first audit; `criteria`: the results of
    attacks, by criterion, if the policy asks for them."""

    stage: ClassVar[str] = "audited"
    internal: Figures
    gates: tuple[Figures, ...]
    budget: Figures
    criteria: tuple[Figures, ...]

    @property
    def judged(self) -> tuple[Gate, ...]:
        """Return the gates that were judged."""
        return tuple(Gate.from_json(gate) for gate in self.gates)

    @property
    def context(self) -> Figures:
        """Return the figures of the page that do not describe the release itself."""
        return {"budget": self.budget}


PASSED: tuple[type[Checkpoint], ...] = (Ingested, Validated, Microaggregated, Masked, Suppressed, Audited)
