"""Documents of `explore` to show: one like the demo's, large ones, small ones, and those with something missing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from release_pipeline.flow.exploring.document import (
    ColumnFigures,
    DomainView,
    ExploredColumn,
    ExploreDocument,
    GroupView,
    ModelView,
    RefusedView,
    RungView,
    SettingView,
    ShareView,
    SolvedView,
)
from release_pipeline.flow.exploring.ranges import NOTHING, RangeView
from release_pipeline.flow.status.headroom import HeadroomView, NextView
from release_pipeline.flow.status.ledger_document import CapView
from release_pipeline.policy.documents import to_json

HIE = (
    ("income", "Family income", "0", "50000"),
    ("mhi", "", "0", "100"),
    ("mdvis", "Visits", "0", "40"),
    ("outpdol", "", "0", "1000"),
)
KINDS = {
    "laplace": "dp",
    "dp-um": "dp",
    "idp-ls": "idp",
    "idp-cbls": "idp",
    "dp-cdf": "dp",
    "dp-table": "dp",
    "mdav": "k-anonymity",
}
STRENGTH = {"laplace": 40.0, "dp-um": 0.5, "idp-ls": 0.35, "idp-cbls": 0.2, "dp-cdf": 0.04, "dp-table": 0.15, "mdav": 0.01}
EPSILONS = ("0.5", "1", "2", "4", "8")


def around(middle: float, by: float = 0.2) -> RangeView:
    """A range around a figure."""
    return RangeView(middle * (1 - by), middle, middle * (1 + 1.6 * by))


def make_ledger(epsilon: str | None, cap: float = 10.0) -> HeadroomView:
    """Two of a cap are spent, and five releases are to come."""
    amount = "infinity" if epsilon is None else f"{float(epsilon):g}"
    left = cap - 2
    fits = epsilon is not None and float(epsilon) <= left
    fitting = min(5, int(left / float(epsilon))) if epsilon is not None else 0
    after = "infinity" if epsilon is None else f"{2 + float(epsilon):g}"
    return HeadroomView(
        population="folk",
        unit="epsilon, iDP, column",
        cap=f"{cap:g}",
        declared=CapView("10", "idp", "column", None),
        spent="2",
        remaining=f"{left:g}",
        rows_needed=False,
        next=NextView("rand-hie/2/r1", amount, fits=fits, after=after),
        ahead=tuple(f"rand-hie/{i}/r1" for i in range(2, 7)),
        fitting=fitting,
        needs="nothing bounds this policy in epsilon: it needs a cap in releases" if epsilon is None else None,
        series_policy_hash=None,
    )


def make_column(name: str, label: str, low: str, high: str, nth: int) -> ExploredColumn:
    """A skewed column of sixty places."""
    top = float(high)
    places = tuple(round(top * (i / 59) ** (1.2 + nth % 4), 6) for i in range(60))
    return ExploredColumn(name, label, (low, high), 0.003 * (nth % 3), places, tuple(round((i + 1) / 60, 4) for i in range(60)))


def make_figures(error: float, top: float, nth: int, groups: int) -> ColumnFigures:
    """What is left of a column with such an error."""
    blur = min(math.sqrt(error), 1.0)
    quantiles = tuple(
        ShareView(f"{share:.0%}", top * share**2, around(top * share**2 * (1 + 0.2 * blur), 0.05 * blur))
        for share in (0.1, 0.25, 0.5, 0.75, 0.9)
    )
    made = tuple(
        GroupView("site", str(i), top * (0.2 + 0.01 * i), around(top * (0.2 + 0.01 * i + 0.05 * blur * (i % 3)), 0.1 * blur))
        for i in range(groups)
    )
    curve = tuple(round((1 - 0.6 * blur) * (i + 1) / 60 + 0.6 * blur * (i / 59) ** 0.5, 4) for i in range(60))
    shares = (ShareView("0", 0.31, around(0.31 * (1 - 0.3 * blur), 0.1)), ShareView("refused", 0.02, around(0.018, 0.2)))
    mean = ShareView("mean", 0.33 * top, around(0.33 * top * (1 + 0.1 * blur), 0.03))
    return ColumnFigures(around(error), around(blur / 3), mean, quantiles, shares[: 1 + nth % 2], made, curve, None)


def make_setting(
    number: int,
    method: str,
    epsilon: str | None,
    k: int | None,
    columns: Sequence[tuple[str, str, str, str]],
    *,
    ledger: bool = True,
    groups: int = 6,
    **changes: Any,
) -> SettingView:
    """A setting whose errors follow from epsilon and k."""
    size = (k or 25) / 25
    cost = STRENGTH[method] / float(epsilon or 3) ** 1.6
    linked = max(0.002, 0.9 - min(cost, 1) * 0.89)
    errors = [cost * (0.6 + 0.35 * (i % 4)) * (1 / size + 0.15 * size) for i in range(len(columns))]
    words = ", ".join([method, *([f"epsilon {epsilon}"] if epsilon else []), *([f"k {k}"] if k else [])])
    inside = ", ".join([f"method: {method}", *([f"epsilon: {epsilon}"] if epsilon else []), *([f"k: {k}"] if k else [])])
    nobodys = method == "dp-table"
    scope = "table" if nobodys else "cluster" if method == "mdav" else "column"
    view = SettingView(
        number=number,
        words=words,
        block=f"protect: {{{inside}}}",
        changes=tuple(f"{one[0]}: do: synthesise in place of do: noise" for one in columns) if nobodys else (),
        method=method,
        k=k,
        epsilon=epsilon,
        delta=None,
        definition=KINDS[method],  # type: ignore[arg-type]
        scope=scope,  # type: ignore[arg-type]
        claim=f"epsilon {epsilon} in all, {KINDS[method]}, for the {scope}" if epsilon else f"{k} records share a value",
        covers_table=nobodys,
        not_covered=()
        if nobodys
        else (
            "the whole table: equal values, and the columns kept beside them, show which records were ranked together",
            "whether a release appears at all: that these data passed the checks, and are as many as they are, is public",
        ),
        error=around(max(errors), 0.25),
        mean_error=math.exp(sum(map(math.log, errors)) / len(errors)),
        correlation=around(0.02 + 0.1 * min(cost, 3)) if len(columns) > 1 else NOTHING,
        worst_correlation=around(0.06 + 0.2 * min(cost, 3)) if len(columns) > 1 else NOTHING,
        linkage=None if nobodys else linked,
        linkage_ladder=()
        if nobodys
        else (
            RungView(0, (), 0.002, 0.002, 0.0003),
            RungView(1, (columns[0][0],), linked / 6, linked / 8, 0.002),
            RungView(2, tuple(one[0] for one in columns[:2]), linked / 2, linked / 3, 0.002),
            RungView(len(columns), tuple(one[0] for one in columns), linked, linked, 0.002),
        ),
        attacks={} if nobodys else {"linking": 0.041 - cost / 20, "inferring": 0.012},
        models=(ModelView("mdvis above 0", 0.842, 0.83 - min(cost, 1) * 0.2),),
        suppressed=0.012,
        draws=20,
        ledger=make_ledger(epsilon) if ledger else None,
        columns={one[0]: make_figures(errors[i], float(one[3]), i, groups) for i, one in enumerate(columns)},
    )
    return dataclasses.replace(view, **changes)


def list_usual() -> list[tuple[str, str | None, int | None]]:
    """Sixty settings, the demo's own first."""
    own = ("idp-cbls", "2", 25)
    found: list[tuple[str, str | None, int | None]] = [own]
    for method, sizes in (("laplace", (None,)), ("dp-um", (10, 30, 100)), ("idp-ls", (10, 30)), ("idp-cbls", (10, 25, 100))):
        found += [(method, epsilon, k) for k in sizes for epsilon in EPSILONS if (method, epsilon, k) != own]
    found += [(method, epsilon, None) for method in ("dp-cdf", "dp-table") for epsilon in EPSILONS]
    return [*found, *(("mdav", None, k) for k in (3, 5, 10, 25, 100))]


def make_document(
    columns: Sequence[tuple[str, str, str, str]] = HIE, *, ledger: bool = True, groups: int = 6, **changes: Any
) -> ExploreDocument:
    """The demo's policy, or one with other columns, under sixty settings."""
    document = ExploreDocument(
        policy="rand-hie",
        hash="e1072982189745613bb2745ee541bddd073ffc1c0d86ec6793c7634801cfaf52",
        population="folk",
        on="like",
        on_words="data/randhie.csv, release 1",
        is_look=False,
        rows=4036,
        warnings=("12 records had an entry that the policy does not declare, and were left out",),
        groupings=("site",),
        columns=tuple(make_column(*one, nth) for nth, one in enumerate(columns)),
        settings=tuple(
            make_setting(number, method, epsilon, k, columns, ledger=ledger, groups=groups)
            for number, (method, epsilon, k) in enumerate(list_usual(), start=1)
        ),
        refused=(RefusedView("dp-cdf, epsilon 0.1", "dp-cdf needs 8,000 records for this epsilon, and there are 4,036"),),
    )
    return dataclasses.replace(document, **changes)


def make_large() -> ExploreDocument:
    """Sixty settings of twelve columns, with many groups."""
    columns = [(f"measure_{i}_of_the_household", f"What was measured {i}", "0", str(10 ** (i % 6 + 1))) for i in range(12)]
    return make_document(columns, groups=60)


def make_solved() -> ExploreDocument:
    """One with targets, of which a method meets none; domains that cost much; and a setting that was written."""
    met = SolvedView(
        "dp-cdf, epsilon 1.3",
        "protect: {method: dp-cdf, epsilon: 1.3}",
        "1.3",
        {"income": "2", "mhi": "1"},
        {"error of income": 0.0496},
        met=True,
        why="",
        number=47,
    )
    unmet = SolvedView(
        "laplace", "", None, {}, {"error of income": 2.31}, met=False, why="no epsilon up to 100 does", number=None
    )
    domain = DomainView("income", "0", "30000", 2.78, 0.004, 0.012, 0.08, "income: 0 to 30000 in place of 0 to 50000")
    return make_document(targets=("error of income at most 0.05",), solved=(met, unmet), domains=(domain,), chosen=47)


def make_refused() -> ExploreDocument:
    """The policy's own setting is refused, and nothing else was tried."""
    return make_document(settings=(), refused=(RefusedView("idp-cbls, epsilon 2, k 25", "k has to be at most half of the rows"),))


def make_own_refused() -> ExploreDocument:
    """The policy's own setting is refused, and others are not."""
    full = make_document()
    return dataclasses.replace(full, settings=full.settings[1:12], refused=(RefusedView("idp-cbls, epsilon 2, k 25", "too few"),))


DOCUMENTS = {
    "usual": make_document,
    "large": make_large,
    "one column": lambda: make_document(HIE[:1]),
    "no ledger": lambda: make_document(ledger=False),
    "refused": make_refused,
    "own refused": make_own_refused,
    "solved": make_solved,
    "look": lambda: make_document(on="source", on_words="the policy's source, release 1", is_look=True),
    "shape": lambda: make_document(on="shape", on_words="a table made up of what the policy declares"),
}


def read(name: str) -> dict[str, Any]:
    """One of these as a script reads it."""
    return to_json(DOCUMENTS[name]())
