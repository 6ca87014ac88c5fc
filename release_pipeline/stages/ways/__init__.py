"""The ways from checked records to masked ones: column by column, all columns together, or class by class; and of random parts.
`find_way` gives that of a policy."""

from release_pipeline.policy import Policy
from release_pipeline.policy.options import ColumnOptions, KEpsilonOptions
from release_pipeline.stages.ways.classes import ClassWay
from release_pipeline.stages.ways.columns import ColumnWay
from release_pipeline.stages.ways.parts import PartedClassWay, PartedWay, Series
from release_pipeline.stages.ways.vectors import VectorWay
from release_pipeline.stages.ways.way import CLASS, RECORD, Figures, Grouped, Suppressed, Way

__all__ = ["CLASS", "RECORD", "Figures", "Grouped", "Series", "Suppressed", "Way", "find_way"]


def find_way(policy: Policy, *, series: Series | None = None) -> Way:
    """The way that the policy's method goes. `series`: which part of the records, to group one of several releases."""
    way = _of_method(policy)
    if policy.parts == 1:
        return way
    return PartedClassWay(policy, way, series) if isinstance(way, ClassWay) else PartedWay(policy, way, series)


def _of_method(policy: Policy) -> ColumnWay | VectorWay | ClassWay:
    if isinstance(policy.protect, KEpsilonOptions):
        return ClassWay(policy, policy.protect)
    return ColumnWay(policy) if isinstance(policy.protect, ColumnOptions) else VectorWay(policy)
