"""Views for papers: releases of each kind of claim, published and not, with and without what people state."""

from __future__ import annotations

import dataclasses
from typing import Any

from release_pipeline.formats.about import About, Contact, ContributorView, Coverage, Licence, Publisher
from release_pipeline.formats.attack_views import ClaimView, CriterionView, Difference, NearView, RungView, ShareView
from release_pipeline.formats.card import ColumnView, LevelView, Looks, SwappedView, TableView
from release_pipeline.formats.internal_view import ClassesView, GateView, PopulationRisk, SampleView, SubgroupsView, SwapView
from release_pipeline.policy.file.about import Assessment
from release_pipeline.publish.papers import PaperView, WithdrawalView
from tests.unit.report import internal_views, views

ABOUT = About(
    title='Visits & <costs> of "families"',
    description="Yearly waves of the same people at six sites.",
    licence=Licence(
        name="CC-BY-4.0",
        title="Creative Commons Attribution 4.0 International",
        url="https://creativecommons.org/licenses/by/4.0/",
    ),
    publisher=Publisher(name="Office of Examples", url="https://office.example.org"),
    contact=Contact(name="Data desk", email="desk@office.example.org", url=None),
    contributors=(ContributorView("Ana A.", "creator"),),
    coverage=Coverage(places=("Dayton", "Seattle"), first="1974-01-01", last="1982-12-31"),
    sampling="Families of the sites, by chance.",
    keywords=("health",),
    intended_use="Teaching.",
    recipients="Anybody.",
)

STATED = {part: f"Our word on {part}." for part in Assessment.model_fields}
SHARE = ShareView(0.27, 0.25, 0.29, 1000, 5638)
LOW = ShareView(0.02, 0.0, 0.05, 1000, 5638)
NONE_TRIED = ShareView(0.0, 0.0, 1.0, 0, None)
ATTACKS = (
    CriterionView("singling_out", "singling out by one column", NONE_TRIED, 0.003, NONE_TRIED, NONE_TRIED),
    CriterionView("singling_out", "singling out by several columns", SHARE, 0.06, LOW, SHARE),
    CriterionView("linkability", "linking", LOW, 0.01, LOW, LOW),
    CriterionView("inference", "inferring income", SHARE, 0.1, LOW, SHARE),
)


def columns_of(done: str, **changes: Any) -> tuple[ColumnView, ...]:
    """The columns of the sample view, the masked ones of this kind."""
    return tuple(
        dataclasses.replace(column, done=done, **changes) if column.done == "noise" else column
        for column in views.FACTS["columns"]
    )


def internal_view(**changes: Any) -> Any:
    """What the reviewers see, with every attack and group."""
    classes = ClassesView(12, 7, 40.0, 90, ((7, 90, 12),), {"ill": 2}, 0.14, 0.14, ("site",), 5)
    many: dict[str, Any] = {
        "criteria": ATTACKS,
        "classes": classes,
        "linkage": SHARE,
        "linkage_chance": 0.001,
        "linkage_ladder": (RungView(0, (), SHARE, 0.5, 0.001), RungView(2, ("income", "rent"), SHARE, 0.5, 0.04)),
        "sample": SampleView("weight", {}, PopulationRisk(100, 9, 3.5, 0.01, 0.2)),
        "subgroups": (SubgroupsView("sex", (), {}, 10),),
    }
    view = internal_views.sample_view(**many | changes)
    if not view.columns:
        return view
    return dataclasses.replace(view, columns=(dataclasses.replace(view.columns[0], clamped=0.031), *view.columns[1:]))


def of(facts: dict[str, Any], **changes: Any) -> PaperView:
    """A published release of which these are the facts, as the people of its site know it."""
    known: dict[str, Any] = {
        "state": "published",
        "published": "2026-11-20T12:00:00+00:00",
        "assessment": STATED,
        "internal": internal_view(),
    }
    return PaperView(package=views.make_package(**views.FACTS | facts), **known | changes)


IDP: dict[str, Any] = {"about": ABOUT, "looks": Looks(count=3, runs=2, last="2026-11-01")}
DP = dict[str, Any](about=ABOUT, definition="dp", definition_words="eps-DP", method="dp-cdf", values="anywhere", grid="on")
TABLE = TableView(
    name="by_site",
    file="table.csv",
    by=("site",),
    sum=None,
    epsilon="0.1",
    rho=None,
    step="1",
    levels=(LevelView(1, 6, "laplace 20", "about 20 people"),),
    words="how many records have each site",
)

RHO = dict[str, Any](
    about=dataclasses.replace(
        ABOUT, intended_use=None, coverage=Coverage(), sampling=None, publisher=Publisher(name="Town", url=None)
    ),
    definition="zcdp",
    definition_words="zCDP",
    method="dp-table",
    counts=("data.counts.csv", "data.pairs.csv"),
    delta="0.000001",
    rho="0.18506984",
    epsilon="3",
    privacy_unit="household",
    record_count="not protected",
    records_per_person=6,
    k=None,
    series_epsilon=None,
    columns=columns_of("synthesise", epsilon=None, rho="0.04"),
    tables=(TABLE, dataclasses.replace(TABLE, name="by_sex", epsilon=None, rho="0.02")),
)

MDAV = dict[str, Any](
    about=ABOUT,
    definition="k-anonymity",
    definition_words="k-anonymity on the masked columns; not differential privacy",
    method="mdav",
    epsilon=None,
    columns=(*columns_of("centroid", epsilon=None, noise=None), ColumnView("age", "quasi", "generalise", "string", "needed")),
)
NEAR = ClaimView("", SHARE, LOW, 0.1, Difference(0.25, 0.2, 0.3))
EMPTY = internal_view(
    criteria=(), classes=None, linkage=None, linkage_ladder=(), sample=None, subgroups=(), columns=(), gates=(), decide=(),
    nearest=NearView(("site",), SHARE, LOW, Difference(0.2, 0.1, 0.3), 1.0, 2.0, (), NEAR),
)  # fmt: skip
FAILED = (GateView("singling out beyond the control", 0.3, 0.1, False, False, "simulated"),)
WITHDRAWN = WithdrawalView("olga", "2026-11-20T12:00:00+00:00", "a table was wrong")
VECTORS = IDP | {"method": "dp-mdav", "consistency": "none", "looks": None}

VIEWS = {
    "idp": of(IDP),
    "dp, nothing stated": of(DP, assessment=dict.fromkeys(STATED), internal=internal_view(gates=FAILED)),
    "rho, nothing measured": of(
        RHO | {"about": dataclasses.replace(ABOUT, coverage=Coverage(first="1974-01-01", last="1982-12-31"), sampling=None)},
        internal=EMPTY,
    ),
    "rho, little said": of(RHO),
    "no noise, a candidate": of(MDAV, state="candidate", published=None),
    "little is known": of(
        DP | {"epsilon": None, "columns": columns_of("noise", noise=None)},
        state="candidate",
        published=None,
        internal=EMPTY,
    ),
    "vectors, retracted": of(VECTORS, state="retracted", withdrawn=WITHDRAWN),
    "swapped": of(
        DP
        | {
            "swap": SwappedView(10, 10, ("site",), ("income",), "A row does not belong to one person."),
            "columns": columns_of("swap", noise=None),
        },
        internal=internal_view(swap=SwapView(10, ("income",), ("site",), 40, 10)),
    ),
    "superseded": of(DP, state="superseded", withdrawn=dataclasses.replace(WITHDRAWN, why="rand-hie/1/r2: a table was wrong")),
    "public": of(IDP, assessment=None, internal=None),
}
