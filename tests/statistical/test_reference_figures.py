"""The errors that methods.md section 6 states for census and wine, in size and in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from release_pipeline.mechanisms import Epsilon, mask_column
from tests.conftest import Columns

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

CENSUS = ("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "FICA")
VARIANTS = {  # method, scope, consistency; from the largest error to the least
    "dp-um, none": ("dp-um", "column", "none"),
    "dp-um, isotonic": ("dp-um", "column", "isotonic"),
    "idp-cbls column, none": ("idp-cbls", "column", "none"),
    "idp-cbls column, isotonic": ("idp-cbls", "column", "isotonic"),
    "idp-cbls centroid": ("idp-cbls", "centroid", None),
}
STATED = {
    ("census", 20): (16, 1.9, 3.7, 0.73, 0.12),
    ("census", 100): (1.2, 0.48, 0.38, 0.29, 0.17),
    ("wine_white", 20): (3400, 285, 6.4, 0.78, 0.125),
    ("wine_white", 100): (560, 38, 0.82, 0.29, 0.075),
}
SECRETS = {"census": 200, "wine_white": 40}
WITHIN = 1.5


@pytest.mark.parametrize(("table", "k"), STATED)
def test_median_errors_are_the_stated_ones(table: str, k: int, reference_columns: Callable[[str], Columns]) -> None:
    """Each median over many secrets is within a factor 1.5 of the stated figure, and they stand in the stated order."""
    columns = reference_columns(table)
    chosen = {name: columns[name] for name in (CENSUS if table == "census" else columns)}
    found = [_median_error(chosen, variant, k, SECRETS[table]) for variant in VARIANTS.values()]
    for name, measured, stated in zip(VARIANTS, found, STATED[table, k], strict=True):
        assert stated / WITHIN < measured < stated * WITHIN, f"{table}, k = {k}, {name}: {measured:.3g} against {stated}"
    order = np.argsort(STATED[table, k])
    assert np.argsort(found).tolist() == order.tolist()


def _median_error(columns: Columns, variant: tuple[str, str, str | None], k: int, secrets: int) -> float:
    """Median over secrets of the mean over columns of mean squared error / variance, epsilon 1 split equally."""
    method, scope, consistency = variant
    shares = Epsilon.of(1).split([1] * len(columns))
    errors = np.empty((secrets, len(columns)))
    for place, ((name, (values, resolution)), share) in enumerate(zip(columns.items(), shares, strict=True)):
        top = type(resolution)(str(values.max())) * 3 / 2
        for number in range(secrets):
            released = mask_column(
                values,
                domain=(0, top),
                grid=resolution / 2,
                method=method,
                epsilon=share,
                k=k,
                scope=scope,
                consistency=consistency,
                secret=number.to_bytes(32, "big"),
                context=(name,),
            ).values
            errors[number, place] = np.mean((released - values) ** 2) / values.var()
    return float(np.median(errors.mean(axis=1)))
