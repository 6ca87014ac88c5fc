"""The strategies that take checked records to masked ones: column by column, by value, all columns together, or class by class;
and of random parts. `find_strategy` gives that of a policy."""

from collections.abc import Callable

from release_pipeline.masking.by_value import COUNTS, ByValueStrategy
from release_pipeline.masking.centroids import CentroidStrategy
from release_pipeline.masking.classes import ClassStrategy
from release_pipeline.masking.columns import ColumnStrategy, MdavStrategy, RecordStrategy, VectorStrategy
from release_pipeline.masking.parts import PartitionedClassStrategy, PartitionedStrategy
from release_pipeline.masking.strategy import CLASS, RECORD, Figures, Grouped, Strategy, Suppressed
from release_pipeline.masking.swapping import SWAPPED, SwapStrategy
from release_pipeline.masking.whole_table import BLOCKS, CELLS, PAIRS, WholeTableStrategy, count_blocks
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.catalogue import Family
from release_pipeline.policy import Policy
from release_pipeline.rows.counted import Counting

__all__ = [
    "BLOCKS",
    "CELLS",
    "CLASS",
    "COUNTS",
    "PAIRS",
    "RECORD",
    "SWAPPED",
    "Figures",
    "Grouped",
    "RecordStrategy",
    "Strategy",
    "Suppressed",
    "count_blocks",
    "find_strategy",
]


_BY_CENTROIDS: dict[Family, Callable[[Policy], CentroidStrategy]] = {
    "columns": lambda policy: (RecordStrategy if policy.protect.k is None else ColumnStrategy)(policy),
    "by-value": ByValueStrategy,
    "vectors": VectorStrategy,
    "mdav": MdavStrategy,
}


def find_strategy(policy: Policy, *, earlier: IntArray | None = None, counting: Counting | None = None) -> Strategy:
    """The strategy of the policy's method, by its family. `earlier`: where values are swapped, the block of each record in an
    earlier release, below 0 where there was none. `counting`: how methods that count have the records counted; without it they
    are read into memory."""
    family = policy.method.family
    if family == "whole-table":
        return WholeTableStrategy(policy, counting)
    if family == "classes":
        return ClassStrategy(policy) if policy.parts == 1 else PartitionedClassStrategy(policy)
    strategy = _BY_CENTROIDS[family](policy)
    if policy.swap is not None:  # never of parts, says a rule
        return SwapStrategy(policy, strategy, earlier)
    return strategy if policy.parts == 1 else PartitionedStrategy(policy, strategy)
