"""What calibrated weights must agree on with the other parts: every released row lies in one cell of each of their tables."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds import CalibrateColumn, pick
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.published import may_be_blanked
from release_pipeline.policy.tables import Axis, Table, name_of
from release_pipeline.policy.text import Path, Problem

_BY = "Name weighted tables of counts: {by: [...], weight: %s, epsilon: ...}."


def check_calibrated(parts: Parts) -> Iterator[Problem]:
    """Every table that no weights can be made of."""
    for name, column in pick(parts.columns, CalibrateColumn).items():
        for place, table in enumerate(column.to):
            here: Path = ("columns", name, "to", place)
            if table not in parts.tables:
                known = name_some(parts.tables) if parts.tables else "none"
                yield here, f"there is no table '{table}'.", f"{_BY % name} Tables: {known}."
            else:
                yield from _check_table(parts, here, name, table, parts.tables[table])


def _check_table(parts: Parts, here: Path, weight: str, name: str, table: Table) -> Iterator[Problem]:
    if table.weight != weight or table.sum is not None:
        what = f"table '{name}' does not say how many of the population records stand for: it is no count weighted by '{weight}'."
        yield here, what, _BY % weight
        return
    for part in table.by:
        column = parts.kept.get(name_of(part))
        if column is None:
            if name_of(part) in parts.counted:  # of others the table says so
                what = f"table '{name}' counts by '{name_of(part)}', which is in no row."
                yield here, what, "Keep the column, or take another table."
            continue
        if may_be_blanked(column, parts.suppress):
            what = f"cells of '{name_of(part)}' may be blanked, and such a row is in no cell of table '{name}'."
            yield here, what, "Remove suppress, or drop the weight (do: drop): analysts can still make weights of the tables."
        if not isinstance(part, str):
            try:
                axis = Axis.of(part, column)
            except (KeyError, IndexError):
                continue  # groups that do not fit: the table says so
            if set(axis.labels[-1]) != set(axis.values):
                what = f"table '{name}' has groups of '{part.column}' alone, and rows have its values."
                yield here, what, "Let its finest level be the values themselves, or count by a derived column of groups."
