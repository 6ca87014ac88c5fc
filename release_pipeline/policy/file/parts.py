"""The parts of a policy that are valid by themselves, for rules that run as soon as the parts that they need are."""

from __future__ import annotations

from dataclasses import dataclass, field

from release_pipeline.policy.file.about import Audience
from release_pipeline.policy.file.derivations import Derived
from release_pipeline.policy.file.options import AnyOptions
from release_pipeline.policy.file.sections import (
    Audit,
    Gates,
    Person,
    Publish,
    Scheduled,
    Sketch,
    Source,
    Suppress,
    SuppressClasses,
)
from release_pipeline.policy.file.tables import Table
from release_pipeline.policy.kinds import AnyColumn, ByKind


@dataclass(slots=True)
class Parts(ByKind):
    """None or absent where a part is not valid. `names` are all columns named."""

    audience: Audience | None = None
    source: Source | None = None
    person: Person | str | None = None
    releases: tuple[str, ...] | Scheduled | str | None = None
    protect: AnyOptions | None = None
    suppress: Suppress | SuppressClasses | None = None
    gates: Gates | None = None
    audit: Audit | None = None
    publish: Publish | None = None
    columns: dict[str, AnyColumn] = field(default_factory=dict[str, AnyColumn])
    drop: tuple[str, ...] = ()
    tables: dict[str, Table] = field(default_factory=dict[str, Table])
    derive: dict[str, Derived] = field(default_factory=dict[str, Derived])
    shape: Sketch | None = None
    names: tuple[str, ...] = ()
    complete: bool = True  # whether every column is valid

    @property
    def is_series(self) -> bool:
        """Return whether there are several releases."""
        names = self.releases.list or () if isinstance(self.releases, Scheduled) else self.releases
        return isinstance(names, tuple) and (len(names) > 1 or names == ())

    @property
    def count(self) -> int:
        """Return how many random parts the records are masked in."""
        return (self.protect.partitions if self.protect else None) or 1

    def least_rows(self, k: int | None) -> int:
        """Return the least number of records to cut into clusters: those of the largest random part."""
        rows = (self.gates.min_rows if self.gates else None) or 2 * (k or 1)
        return -(-rows // self.count)
