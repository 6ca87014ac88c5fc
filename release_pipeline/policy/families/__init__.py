"""The families of methods, as `mechanisms.catalogue` names them: what policies, plans and losses need from each."""

from __future__ import annotations

from typing import Any

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.families.base import Family
from release_pipeline.policy.families.classes import ClassFamily
from release_pipeline.policy.families.columns import ByValueFamily, ColumnFamily
from release_pipeline.policy.families.vectors import MdavFamily, VectorFamily
from release_pipeline.policy.families.whole_table import WholeTableFamily
from release_pipeline.policy.file.options import (
    AnyOptions,
    ByValueOptions,
    ColumnOptions,
    DpMdavOptions,
    KEpsilonOptions,
    MdavOptions,
    WholeTableOptions,
)

FAMILIES: dict[str, Family[Any]] = {
    "columns": ColumnFamily(ColumnOptions),
    "by-value": ByValueFamily(ByValueOptions),
    "whole-table": WholeTableFamily(WholeTableOptions),
    "vectors": VectorFamily(DpMdavOptions),
    "mdav": MdavFamily(MdavOptions),
    "classes": ClassFamily(KEpsilonOptions),
}


def find_family(protect: AnyOptions) -> Family[Any]:
    """Return the family of a policy's method; an unknown method, or an unknown family, is refused."""
    family = protect.spec.family
    if family not in FAMILIES:
        raise InvalidArgument(f"the family of {protect.method} is none of {', '.join(FAMILIES)}.", where="method")
    return FAMILIES[family]
