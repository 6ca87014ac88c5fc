"""The ways from checked records to masked ones: column by column, all columns together, or class by class; and of random parts.
`find_way` gives that of a policy."""

from collections.abc import Callable

from release_pipeline.policy import Policy
from release_pipeline.privacy.catalogue import Family
from release_pipeline.stages.ways.classes import ClassWay
from release_pipeline.stages.ways.columns import ColumnWay
from release_pipeline.stages.ways.parts import PartedClassWay, PartedWay, Series
from release_pipeline.stages.ways.vectors import AlikeWay, VectorWay
from release_pipeline.stages.ways.way import CLASS, RECORD, Figures, Grouped, Suppressed, Way

__all__ = ["CLASS", "RECORD", "Figures", "Grouped", "Series", "Suppressed", "Way", "find_way"]

_WHOLE: dict[Family, Callable[[Policy], Way]] = {
    "columns": ColumnWay,
    "vectors": VectorWay,
    "mdav": AlikeWay,
    "classes": ClassWay,
}
_PARTED: dict[Family, Callable[[Policy, Series | None], Way]] = {
    "columns": lambda policy, series: PartedWay(policy, ColumnWay(policy), series),
    "vectors": lambda policy, series: PartedWay(policy, VectorWay(policy), series),
    "mdav": lambda policy, series: PartedWay(policy, AlikeWay(policy), series),
    "classes": lambda policy, series: PartedClassWay(policy, ClassWay(policy), series),
}


def find_way(policy: Policy, *, series: Series | None = None) -> Way:
    """The way that the policy's method goes, by its family. `series`: which part of the records, to group one of several
    releases."""
    family = policy.method.family
    return _WHOLE[family](policy) if policy.parts == 1 else _PARTED[family](policy, series)
