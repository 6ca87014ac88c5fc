"""Documents of `explore` to show: one like the demo's, and those where nothing could be tried."""

from __future__ import annotations

import dataclasses
from typing import Any

from release_pipeline.explore.document import (
    ColumnFigures,
    ExploreDocument,
    RangeView,
    RefusedView,
    RungView,
    SettingView,
)
from release_pipeline.ledger.account import CapView
from release_pipeline.pipeline.cap import HeadroomView, NextView
from release_pipeline.policy.documents import to_json

NOTHING = RangeView(None, None, None)
METHODS = {  # definition, k, and error at epsilon 1
    "idp-cbls": ("idp", 25, 0.2),
    "dp-cdf": ("dp", None, 0.04),
    "dp-table": ("dp", None, 0.15),
}


def around(middle: float) -> RangeView:
    """A range around a figure."""
    return RangeView(middle / 2, middle, middle * 2)


def make_ledger(epsilon: float) -> HeadroomView:
    """Two of ten are spent, and five releases are to come."""
    fits = epsilon <= 8
    return HeadroomView(
        population="folk",
        unit="epsilon, iDP, column",
        cap="10",
        declared=CapView("10", "idp", "column", None),
        spent="2",
        remaining="8",
        rows_needed=False,
        next=NextView("rand-hie/2/r1", f"{epsilon:g}", fits=fits, after=f"{2 + epsilon:g}"),
        ahead=tuple(f"rand-hie/{number}/r1" for number in range(2, 7)),
        fitting=min(5, int(8 / epsilon)),
        needs=None,
    )


def make_setting(number: int, method: str, epsilon: float, columns: tuple[str, ...]) -> SettingView:
    """A setting whose errors follow from epsilon."""
    definition, k, error = METHODS[method]
    figures = around(error / epsilon)
    rungs = ((0, (), 0.002), (1, columns[:1], 0.1), (len(columns), columns, 0.7))
    is_nobodys = method == "dp-table"
    return SettingView(
        number=number,
        words=f"{method}, epsilon {epsilon:g}" + (f", k {k}" if k else ""),
        block=f"protect: {{method: {method}, epsilon: {epsilon:g}}}",
        changes=tuple(f"{name}: do: synthesise in place of do: noise" for name in columns) if is_nobodys else (),
        method=method,
        k=k,
        epsilon=f"{epsilon:g}",
        delta=None,
        definition=definition,  # type: ignore[arg-type]
        scope="table" if is_nobodys else "column",
        claim=f"epsilon {epsilon:g} in all, {definition}",
        covers_table=is_nobodys,
        not_covered=() if is_nobodys else ("the whole table: equal values show which records were ranked together",),
        error=figures,
        correlation=RangeView(0.0, 0.02, 0.05) if len(columns) > 1 else NOTHING,
        linkage=None if is_nobodys else 0.7,
        linkage_ladder=() if is_nobodys else tuple(RungView(*rung, rung[2], 0.001) for rung in rungs),
        suppressed=0.012,
        draws=20,
        ledger=make_ledger(epsilon),
        columns={name: ColumnFigures(figures, RangeView(0.0, 200.0, 500.0), around(900)) for name in columns},
        proposal="" if is_nobodys else "swap with k 10 would lower it",
    )


def make_document(columns: tuple[str, ...] = ("income", "mhi"), **changes: Any) -> ExploreDocument:
    """The demo's policy under nine settings, or one with other columns."""
    tried = [(method, epsilon) for method in METHODS for epsilon in (2, 0.5, 16)]
    document = ExploreDocument(
        policy="rand-hie",
        hash="e1072982189745613bb2745ee541bddd073ffc1c0d86ec6793c7634801cfaf52",
        population="folk",
        on="like",
        on_words="randhie.csv, which is public, as ana said: here",
        rows=4036,
        warnings=("town: up to 20 records have no entry that the policy declares, and are left out",),
        groupings=("site",),
        columns=columns,
        settings=tuple(make_setting(number, *one, columns) for number, one in enumerate(tried, 1)),
        refused=(RefusedView(10, "dp-cdf, epsilon 0.1", "too few records", by_ledger=False),),
    )
    return dataclasses.replace(document, **changes)


DOCUMENTS = {
    "usual": make_document,
    "many columns": lambda: make_document(tuple(f"measure_{number}" for number in range(12))),
    "refused": lambda: make_document(settings=()),
    "shape": lambda: make_document(on="shape", on_words="a table made up of the shape in rand-hie.yaml"),
}


def read(name: str) -> dict[str, Any]:
    """One of these as a script reads it."""
    return to_json(DOCUMENTS[name]())
