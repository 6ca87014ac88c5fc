"""Whether there are enough records, and enough of a budget, for rows that are worth reading: by public facts alone.

Two things must hold. A cut of a wide column is likelier to be near its rank than anywhere else: the exponent over a node of the
deepest level outweighs the number of places where it could be. And the noise of a cell of a pair's table is small beside what a
cell holds on average when each column has but a few groups.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.privacy.whole_table.design import Design, TableBudget, outweighs

_CELLS = 32  # of a pair's table, of which each could still be told from noise
_LARGEST = 1 << 60
Make = Callable[[int, TableBudget], Design]  # the design for so many records, and a budget


def is_enough(design: Design) -> bool:
    """Whether rows of this design are worth reading."""
    cuts = design.cuts.items()
    if not all(outweighs(e, design.columns[place].width, design.records, depth) for place, (e, depth) in cuts):
        return False
    return design.pair_deviation <= design.records / _CELLS


def find_enough_records(make: Make, budget: TableBudget) -> int | None:
    """About how many records would do with this budget, rounded up to two digits; None where no number does."""
    found = _search(lambda records: _does(make, records, budget), 1)
    return None if found is None else _round_up(found)


def find_enough_budget(make: Make, records: int, budget: TableBudget) -> Fraction | None:
    """About the least amount that would do for so many records; None where none does."""
    thousandth = Fraction(1, 1000)
    found = _search(lambda parts: _does(make, records, TableBudget(parts * thousandth, budget.by_rho)), 1)
    return None if found is None else _round_up(found) * thousandth


def _does(make: Make, records: int, budget: TableBudget) -> bool:
    try:
        return is_enough(make(records, budget))
    except ReleasePipelineError:  # the budget is too small for any noise
        return False


def _search(does: Callable[[int], bool], first: int) -> int | None:
    """The least number that does, where every larger one does too."""
    high = first
    while not does(high):
        high *= 2
        if high > _LARGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if does(middle) else (middle, high)
    return high


def _round_up(number: int) -> int:
    digits = max(len(str(number)) - 2, 0)
    return -(-number // 10**digits) * 10**digits
