"""What columns were left with when each method was tried on public tables: for a word in `check`, from public facts alone.

The figures are those of `make reproduce` (docs/choosing.md): median errors over 26 columns of three tables, by the number of
records times the epsilon of the column.
"""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.model import Policy
from release_pipeline.privacy.catalogue import find_method
from release_pipeline.privacy.catalogue.definitions import IDP
from release_pipeline.privacy.figures import show_figure

FROM = (0, 30, 100, 300, 1000, 3000)  # where each class of records times epsilon begins
MEDIAN_ERRORS = {
    "laplace": (76.5, 67.3, 53.6, 43.1, 64.6, 33.2),
    "dp-um": (3.44, 1.14, 0.663, 0.233, 0.12, 0.0403),
    "idp-ls": (4.29, 1.12, 0.746, 0.311, 0.101, 0.0226),
    "idp-cbls": (1.9, 0.406, 0.528, 0.17, 0.0555, 0.0165),
    "dp-cdf": (1.12, 0.388, 0.093, 0.0353, 0.0151, 0.00767),
}
COMPARED = ("dp-um", "idp-cbls", "dp-cdf")


def describe_measured(policy: Policy, rows: int | None) -> Iterator[str]:
    """What was measured of columns with as many records times epsilon as the policy's have, by its method and by others. Of rho
    there is nothing to say, nor of methods that look at several columns at once."""
    if rows is None or policy.delta is not None or policy.protect.method not in MEDIAN_ERRORS or policy.protect.scope != "column":
        return
    records = min(share.fraction for share in policy.column_epsilon.values()) * (rows // policy.parts)
    place = max(number for number, begins in enumerate(FROM) if begins <= records)
    methods = dict.fromkeys((policy.protect.method, *COMPARED))
    words = [f"{show_figure(MEDIAN_ERRORS[method][place])} by {_name(method)}" for method in methods]
    begins = f"from {FROM[place]:,} to {FROM[place + 1]:,}" if 0 < place < len(FROM) - 1 else f"below {FROM[1]}"
    begins = f"of {FROM[place]:,} or more" if place == len(FROM) - 1 else begins
    least = min(methods, key=lambda method: MEDIAN_ERRORS[method][place])
    fits = f"{_name(least)} fits best" if least == policy.protect.method else f"{_name(least)} would fit better"
    yield (
        f"public columns with records times epsilon {begins} had an error of {', '.join(words)} in the median, where 1 is no "
        f"better than publishing the mean: {fits} (docs/choosing.md; `release-pipeline explore` tries them)"
    )


def _name(method: str) -> str:
    """A method, with its definition where that is the weaker one."""
    return f"{method} (iDP)" if find_method(method).claims[0].definition is IDP else method
