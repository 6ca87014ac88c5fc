"""What card, page and note say that depends on the family of a release's method. A family gives whole sentences, and everything
that is said of it stands in its module; `find_texts` looks it up by the catalogue of methods, and assumes none."""

from __future__ import annotations

from collections.abc import Callable

from release_pipeline.privacy.catalogue import Family, find_method
from release_pipeline.report.families.base import FamilyTexts
from release_pipeline.report.families.by_value import ByValueTexts
from release_pipeline.report.families.classes import ClassTexts
from release_pipeline.report.families.columns import choose_column_texts
from release_pipeline.report.families.mdav import MdavTexts
from release_pipeline.report.families.vectors import VectorTexts
from release_pipeline.report.families.whole_table import WholeTableTexts
from release_pipeline.report.view import PackageView

FAMILIES: dict[Family, Callable[[PackageView], FamilyTexts]] = {
    "columns": choose_column_texts,
    "by-value": ByValueTexts,
    "whole-table": WholeTableTexts,
    "vectors": VectorTexts,
    "mdav": MdavTexts,
    "classes": ClassTexts,
}


def find_texts(package: PackageView) -> FamilyTexts:
    """The texts of the family of this release's method; an unknown method raises."""
    return FAMILIES[find_method(package.card.method.name).family](package)
