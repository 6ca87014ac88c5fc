"""Internal views to render: one like a wave of the demo's, one with little, one that a gate stopped, and any of many columns."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from hypothesis import strategies as st

from release_pipeline.formats.about import About, ColumnWords, Contact, ContributorView, Coverage, Licence, Publisher
from release_pipeline.formats.attack_views import CriterionView, RungView, ShareView
from release_pipeline.formats.budgets import PopulationView, StepView
from release_pipeline.formats.internal_view import (
    AtomView,
    ClassesView,
    CorrelationView,
    Curve,
    GateView,
    HierarchyView,
    InternalView,
    Learned,
    NoiseColumnView,
    PopulationRisk,
    PredictionView,
    SampleView,
    SpreadView,
    SubgroupColumn,
    SubgroupsView,
    SubgroupView,
    SuppressionView,
    Weighted,
    WeightedPair,
)

NANO = 10**9

ABOUT = About(
    title="Health care use of families",
    description="Yearly records of people who took part",
    licence=Licence(
        name="CC0-1.0", title="Creative Commons Zero 1.0 Universal", url="https://creativecommons.org/publicdomain/zero/1.0/"
    ),
    publisher=Publisher(name="Town", url="https://town.example.org"),
    contact=Contact(name="Desk", email="desk@example.org", url=None),
    contributors=(ContributorView("RAND Corporation", "collector"),),
    coverage=Coverage(places=("Dayton", "Seattle"), first="1974-01-01", last="1982-12-31"),
    sampling="Families of six sites",
    keywords=("health insurance",),
    intended_use="Learning",
    recipients="Anybody",
)

SCALES = "from the scales of the noise, which are confidential"
SHARES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def share(value: float, spread: float = 0.0, tried: int = 5638, among: int = 5638) -> ShareView:
    """A share, with the same room to both sides."""
    return ShareView(value, value - spread, value + spread, tried, among)


def bell(mean: float, deviation: float, low: float, high: float, steps: int = 120) -> Curve:
    """A smooth curve between two bounds."""
    points: list[tuple[float, float]] = []
    for step in range(steps + 1):
        value = low + (high - low) * step / steps
        points.append((value, 0.5 * (1 + math.erf((value - mean) / deviation / math.sqrt(2)))))
    return (*points[:-1], (high, 1.0))


def skewed(scale: float, high: float, steps: int = 120, jump: int = 1) -> Curve:
    """A curve that rises steeply from nothing, in as many steps."""
    values = [high * (step / steps) ** 2 for step in range(0, steps + 1, jump)]
    return (*((value, 1 - 0.7 * math.exp(-value / scale)) for value in values[:-1]), (high, 1.0))


def spread(curve: Curve, mean: float, deviation: float) -> SpreadView:
    """What a curve says in numbers."""
    quantiles, deciles = (
        tuple(next(value for value, at_most in curve if at_most >= part) for part in shares) for shares in (SHARES, (0.1, 0.9))
    )
    return SpreadView(mean, deviation, quantiles, deciles)


def column(name: str, **changes: Any) -> NoiseColumnView:
    """A masked column in which little happened; `changes` replaces fields of it."""
    original, released = bell(74.3, 14.2, 0, 100), bell(74.1, 12.9, 0, 100)
    view = NoiseColumnView(
        name=name,
        role="confidential",
        epsilon="0.5",
        forecast="about 4.2 (4.2% of the domain)",
        expected_error=0.112,
        expected_low=0.0963,
        expected_high=0.131,
        actual_error=0.118,
        mean_absolute_error=3.51,
        partitioned=False,
        original=spread(original, 74.3, 14.2),
        released=spread(released, 74.1, 12.9),
        ks=0.0412,
        wasserstein=0.931,
        original_curve=original,
        released_curve=released,
    )
    return dataclasses.replace(view, **changes)


def skewed_column(name: str, scale: float, high: float, **changes: Any) -> NoiseColumnView:
    """One with most values near nothing."""
    original, released = skewed(scale, high), skewed(scale * 1.2, high, jump=5)
    return column(
        name,
        original=spread(original, scale * 0.7, scale * 1.1),
        released=spread(released, scale * 0.84, scale * 1.2),
        original_curve=original,
        released_curve=released,
        **changes,
    )


def budget(spent: int = 3) -> PopulationView:
    """Two epsilon a wave, of ten."""
    steps = [StepView(f"rand-hie/{wave}/r1", 2 * NANO, "spent", f"202{wave}-11-20") for wave in range(1, spent + 1)]
    steps.append(StepView(f"rand-hie/{spent + 1}/r1", 2 * NANO, "reserved", "2026-11-20"))
    steps.append(StepView(f"rand-hie/{spent + 2}", 2 * NANO, "planned" if spent < 4 else "refused"))
    used = (spent + 1) * 2 * NANO
    return PopulationView(
        "rand-hie-participants", "epsilon, iDP, column", False, 10 * NANO, used, 2 * NANO, 10 * NANO - used, tuple(steps)
    )


def sample_view(**changes: Any) -> InternalView:
    """The fourth wave of the demo; `changes` replaces fields of it."""
    names = ("income", "mhi", "mdvis", "outpdol")
    view = InternalView(
        release="rand-hie/4/r1",
        policy="rand-hie",
        tool="release-pipeline 0.1.0",
        claim="epsilon 2 in all (0.5 for each of 4 columns), iDP, for the list of values of each masked "
        "column; whole table: not bounded",
        definition="eps-iDP (individual differential privacy): for the neighbours of the actual data",
        wider=(("table", "not bounded"), ("series", "epsilon 8 for the four waves up to this one")),
        method_words="idp-cbls: individual ranking in clusters of 25, trimmed means, noise by cluster sensitivity, isotonic "
        "order",
        candidate_hash_words="Candidate a7a7a7a7a7a7",
        stopped_at="",
        gates=(
            GateView("expected error of income", 0.0871, 0.2, False, True, SCALES, "income"),
            GateView("expected error of mhi", 0.112, 0.2, False, True, SCALES, "mhi"),
            GateView("expected error of mdvis", 0.301, 0.4, False, True, SCALES, "mdvis"),
            GateView("expected error of outpdol", 0.482, 0.6, False, True, SCALES, "outpdol"),
            GateView("records", 5638, 1000, True, True, "of the released table alone"),
        ),
        decide=(
            "Whether an error of mdvis above what its scales promise is explained well enough",
            "Whether record linkage of 27% is acceptable: the claim is about column lists and does not bound it",
        ),
        warnings=("outpdol has many equal values: 31% of its clusters have a sensitivity of nothing",),
        columns=(
            skewed_column("income", 8900.0, 50000.0, expected_error=0.0871, expected_low=0.0702, expected_high=0.105,
                          actual_error=0.0913, mean_absolute_error=1240.0, ks=0.0634, wasserstein=612.0,
                          forecast="about 1,300 (2.6% of the domain)"),
            column(
                "mhi",
                atoms=(AtomView("100", 0.041, 0.0402, 0.0407),),
            ),
            skewed_column("mdvis", 3.1, 40.0, expected_error=0.301, expected_low=0.262, expected_high=0.344, actual_error=0.391,
                          mean_absolute_error=1.12, partitioned=True, ks=0.187, wasserstein=0.55, forecast="about 0.9 (2.3% of "
                          "the domain)"),
            skewed_column("outpdol", 71.0, 1000.0, expected_error=0.482, expected_low=0.402, expected_high=0.571,
                          actual_error=0.466, mean_absolute_error=29.8, ks=0.142, wasserstein=13.7,
                          forecast="at most 574 (57.4% of the domain), the worst over all data; usually far less"),
        ),
        sse_paper=1234.5,
        linkage=share(0.271, 0.0193, 2000),
        linkage_chance=0.002,
        linkage_words="Rank patterns over several columns are not covered by a column claim, so this is high where columns "
        "are nearly exact",
        linkage_ladder=(
            RungView(0, (), ShareView(0.002, 0.002, 0.002, 5638, 5638), 0.002, 1 / 5638),
            RungView(1, ("mdvis",), share(0.041, 0.009, 2000), 0.03, 0.002, 4, 4),
            RungView(2, ("income", "mdvis"), share(0.13, 0.015, 2000), 0.11, 0.002, 6, 6),
            RungView(4, ("income", "mhi", "mdvis", "outpdol"), share(0.271, 0.0193, 2000), 0.271, 0.002),
        ),
        correlations=CorrelationView(
            names,
            ((1.0, 0.112, 0.041, 0.083), (0.112, 1.0, -0.121, -0.094), (0.041, -0.121, 1.0, 0.512), (0.083, -0.094, 0.512, 1.0)),
            ((1.0, 0.101, 0.029, 0.064), (0.101, 1.0, -0.078, -0.071), (0.029, -0.078, 1.0, 0.337), (0.064, -0.071, 0.337, 1.0)),
        ),
        classes=ClassesView(
            12, 84, 469.8, 912, ((1, 4, 0), (5, 49, 0), (50, 99, 1), (100, 199, 2), (200, 499, 4), (500, 999, 5)),
            {"mdvis": 17, "outpdol": 31}, 1 / 84, 1 / 91, ("site", "female"), 5,
        ),
        has_weights=True,
        sample=SampleView(
            "weight",
            {"income": WeightedPair(Weighted(8123.4, 9001.2, 4410.7, 7777.1, 11230.9),
                                    Weighted(8201.5, 9011.8, 4398.2, 7803.6, 11301.3))},
            PopulationRisk(5638, 23, 3.41, 71.3, 0.291),
        ),
        predictions=(PredictionView((Learned("random forest", 0.612, 0.684),), 0.571, 3721, 1917, "mdvis above 2"),),
        prediction_words="Trained on the first 66% of the records, tested on the rest",
        subgroups=(
            SubgroupsView(
                "site",
                (
                    SubgroupView("4", 412, 409, {"mdvis": SubgroupColumn(2.81, 2.64, 0.412, 0.387),
                                                 "outpdol": SubgroupColumn(90.2, 71.5, 0.55, 0.533)}),
                    SubgroupView("1", 5251, 5229, {"mdvis": SubgroupColumn(2.88, 2.9, 0.101, 0.0991),
                                                   "outpdol": SubgroupColumn(71.3, 72.9, 0.19, 0.186)}),
                    SubgroupView("6", 7, 0, {}),
                ),
                {"mdvis": 0.124, "outpdol": 0.22},
                10,
            ),
        ),
        suppression=SuppressionView(5670, 5638, 12, 0.00776, 0.05, (("group of fewer than 5", 32), ("cell blanked for a "
        "group", 12))),
        budget=budget(),
        ladders=(
            HierarchyView("age", ("one year", "5 years", "10 years", "20 years", "everybody"), 2),
            HierarchyView("zip", ("5 digits", "3 digits", "1 digit", "none"), 1.37),
        ),
        ladder_words=(("information lost in age", "0.31 of what it says"),),
        released_range="0.4% of the values of mdvis were carried out of their domain by the noise and set to its end",
        rows_in=5670,
        clusters=True,
        about=ABOUT,
        column_words=(
            ColumnWords("income", "Income of the family", "dollars a year", "Before taxes", "What did your family earn?"),
            ColumnWords("female", "Sex", labels=(("0", "male"), ("1", "female"))),
            ColumnWords("mdvis", "Visits to doctors"),
        ),
        criteria=(
            CriterionView("singling_out", "singling out by one column", share(0.0312, 0.0076, 2000), 0.0011,
                          share(0.0294, 0.0074, 2000), ShareView(0.00185, 0.0, 0.0124, 2000, None),
                          words="the attacker writes down conditions that only one record meets"),
            CriterionView("singling_out", "singling out by several columns", ShareView(0.0, 0.0, 1.0, 0, None), 0.0012,
                          ShareView(0.0, 0.0, 1.0, 0, None), ShareView(0.0, 0.0, 1.0, 0, None)),
            CriterionView("linkability", "linking", share(0.142, 0.0153, 2000), 0.0002, share(0.021, 0.0063, 2000),
                          ShareView(0.1236, 0.107, 0.14, 2000, 5638),
                          worst="mdvis", words="the attacker knows income and mhi from elsewhere and looks for mdvis"),
            CriterionView("linkability", "record linkage", share(0.271, 0.0193, 2000), 1 / 5638),
            CriterionView("inference", "inferring mdvis", share(0.317, 0.029, 1000), 0.284, share(0.311, 0.0287, 1000),
                          ShareView(0.0087, -0.051, 0.068, 1000, 5638),
                          words="the attacker knows all columns but one"),
        ),
    )  # fmt: skip
    return dataclasses.replace(view, **changes)


def empty_view(**changes: Any) -> InternalView:
    """A release of which nothing could be measured."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("gates", "decide", "warnings", "columns", "predictions", "ladders", "ladder_words", "wider", "subgroups",
        "criteria", "linkage_ladder"), ()
    )  # fmt: skip
    nothing |= dict.fromkeys(("correlations", "classes", "suppression", "budget", "linkage", "sse_paper", "sample"))
    nothing["has_weights"] = False
    nothing |= dict.fromkeys(("linkage_words", "prediction_words", "released_range", "stopped_at"), "")
    return sample_view(**(nothing | {"linkage_chance": math.nan} | changes))


def stopped_view() -> InternalView:
    """A release that two gates stopped before anything was charged."""
    return empty_view(
        stopped_at="before any budget was spent",
        gates=(
            GateView("expected error of income", 0.0871, 0.2, False, True, "from the scales", "income"),
            GateView("expected error of mdvis", 0.923, 0.4, False, False, "from the scales", "mdvis"),
            GateView("expected error of outpdol", None, 0.6, False, False, "from the scales", "outpdol"),
            GateView("records", 612, 1000, True, False, "of the table that arrived"),
        ),
        budget=budget(),
    )


def many_columns(count: int) -> InternalView:
    """A release of so many columns, all in one table."""
    names = tuple(f"column {i}, which has a rather long name of its own" for i in range(count))
    whole = tuple(tuple(1.0 if i == j else round(0.01 * (i - j), 4) for j in range(count)) for i in range(count))
    less = tuple(tuple(value if value == 1 else value * 0.8 for value in row) for row in whole)
    columns = tuple(
        column(name, actual_error=0.01 * 1.2**i, expected_error=None, expected_low=None, expected_high=None)
        for i, name in enumerate(names)
    )
    return sample_view(columns=columns, correlations=CorrelationView(names, whole, less), gates=())


def shorten(view: InternalView) -> InternalView:
    """The same figures with curves of two points, which are quick to draw."""
    columns = tuple(
        dataclasses.replace(one, original_curve=((0.0, 0.4), (1.0, 1.0)), released_curve=((0.0, 0.3), (2.0, 1.0)))
        for one in view.columns
    )
    return dataclasses.replace(view, columns=columns)


FLOATS = (
    st.floats() | st.floats(0, 1) | st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1.7e308, -1.7e308, math.nan, math.inf, -math.inf])
)
