"""What a table beside the rows claims, whatever the method of the rows. Its mathematics is in `privacy.tables`."""

from __future__ import annotations

from dataclasses import dataclass

from release_pipeline.privacy.catalogue.definitions import DP, FOR_ALL_TABLES, FOR_ALL_TABLES_RHO, ZCDP, state_noise
from release_pipeline.privacy.catalogue.spec import Definition

_CELLS = (
    "for each declared table, with its own epsilon, the noisy cells of all of its levels: in every combination of declared "
    "labels, how many records have them, or what a declared number of theirs adds up to"
)


@dataclass(frozen=True, slots=True)
class TableClaim:
    """A claim of tables: its definition, its formal statement, and the section of docs/mechanisms.md that proves it."""

    definition: Definition
    section: str
    statement: str


PURE_TABLES = TableClaim(DP, "tables: epsilon", state_noise(FOR_ALL_TABLES, _CELLS))
RHO_TABLES = TableClaim(ZCDP, "tables: rho", state_noise(FOR_ALL_TABLES_RHO, _CELLS.replace("epsilon", "rho")))
TABLE_CLAIMS = (PURE_TABLES, RHO_TABLES)
