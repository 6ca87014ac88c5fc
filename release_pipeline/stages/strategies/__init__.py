"""The strategies that take checked records to masked ones: column by column, all columns together, or class by class; and of
random parts. `find_strategy` gives that of a policy."""

from collections.abc import Callable

from release_pipeline.policy import Policy
from release_pipeline.privacy.catalogue import Family
from release_pipeline.stages.strategies.classes import ClassStrategy
from release_pipeline.stages.strategies.columns import ColumnStrategy
from release_pipeline.stages.strategies.parts import PartitionedClassStrategy, PartitionedStrategy, Series
from release_pipeline.stages.strategies.strategy import CLASS, RECORD, Figures, Grouped, Strategy, Suppressed
from release_pipeline.stages.strategies.vectors import MdavStrategy, VectorStrategy

__all__ = ["CLASS", "RECORD", "Figures", "Grouped", "Series", "Strategy", "Suppressed", "find_strategy"]

_WHOLE: dict[Family, Callable[[Policy], Strategy]] = {
    "columns": ColumnStrategy,
    "vectors": VectorStrategy,
    "mdav": MdavStrategy,
    "classes": ClassStrategy,
}
_PARTED: dict[Family, Callable[[Policy, Series | None], Strategy]] = {
    "columns": lambda policy, series: PartitionedStrategy(policy, ColumnStrategy(policy), series),
    "vectors": lambda policy, series: PartitionedStrategy(policy, VectorStrategy(policy), series),
    "mdav": lambda policy, series: PartitionedStrategy(policy, MdavStrategy(policy), series),
    "classes": lambda policy, series: PartitionedClassStrategy(policy, ClassStrategy(policy), series),
}


def find_strategy(policy: Policy, *, series: Series | None = None) -> Strategy:
    """The strategy of the policy's method, by its family. `series`: which part of the records, to group one of several
    releases."""
    family = policy.method.family
    return _WHOLE[family](policy) if policy.parts == 1 else _PARTED[family](policy, series)
