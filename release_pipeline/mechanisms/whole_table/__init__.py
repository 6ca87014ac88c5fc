"""`dp-table`: noisy counts of a whole table, categories included, and rows that are made of these only
(methods.md section 9)."""

from release_pipeline.mechanisms.whole_table.cells import Cells
from release_pipeline.mechanisms.whole_table.design import Column, Design, Pair, TableBudget, make_design
from release_pipeline.mechanisms.whole_table.measure import Measured, measure_table
from release_pipeline.mechanisms.whole_table.rows import RowPlan, expect_column, plan_rows, synthesise

__all__ = [
    "Cells",
    "Column",
    "Design",
    "Measured",
    "Pair",
    "RowPlan",
    "TableBudget",
    "expect_column",
    "make_design",
    "measure_table",
    "plan_rows",
    "synthesise",
]
