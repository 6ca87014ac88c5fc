"""Every kind of page that people open, rendered from made-up views: what is true of any page is looked at on all of these."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache

from release_pipeline.formats.card import LevelView, Looks, TableView
from release_pipeline.formats.package import PackageView
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.publish.papers import render_papers
from release_pipeline.publish.public import render_card_html
from release_pipeline.report.internal import render_internal
from tests.unit.report import internal_views, paper_views, test_standards, test_synthetic, views

TABLE = TableView(
    name="sex",
    file="tables/sex.csv",
    by=("female",),
    sum=None,
    epsilon="0.5",
    rho=None,
    step="1",
    words="how many records have each entry of female",
    levels=(LevelView(0, 1, "Laplace 2", "1 cell"), LevelView(1, 2, "Laplace 4", "2 cells by sex")),
)


def _card_of(view: PackageView) -> Callable[[], str]:
    return lambda: render_card_html(view)


def list_cards() -> Iterator[tuple[str, Callable[[], str]]]:
    """The card of each claim of each method, and one where everything is said that a policy can say."""
    for name, spec in METHODS.items():
        for claim in spec.claims:
            changes = {
                "method": name,
                "definition": claim.definition.key,
                "scope": claim.scope,
                "k": 25 if spec.takes_k else None,
                "headline": "epsilon 2 for everything" if spec.family == "whole-table" else None,
                "series_epsilon": "2" if claim.definition.composes else None,
            }
            yield f"card of {name}, {claim.definition.key}, {claim.scope}", _card_of(views.sample_view(**changes))
    yield "card with everything", _card_of(make_full())


def make_full() -> PackageView:
    """What a policy can say: labels, who made it, levels, looks, tables, parts, several files, what came before."""
    columns = test_standards.labelled()
    first = dataclasses.replace(columns[0], hierarchy="six sites, two regions, all", levels=("site", "region", "all"), level=1)
    return views.sample_view(
        **test_standards.FACTS["full"],
        columns=(first, *columns[1:]),
        hierarchies=(("hierarchies/site.csv", (("1", "east", "*"),)),),
        looks=Looks(count=2, runs=1, last="2026-11-19"),
        parts=("This is part 1 of one confidential table", "Charged: 2"),
        supersedes="rand-hie/1/r0",
        tables=(TABLE,),
    )


def list_reports() -> Iterator[tuple[str, Callable[[], str]]]:
    """What reviewers decide from."""
    yield "report", lambda: render_internal(internal_views.sample_view())
    yield "report of synthetic rows", lambda: render_internal(test_synthetic.make_view())
    yield "report of a stopped release", lambda: render_internal(internal_views.stopped_view())
    yield "report without figures", lambda: render_internal(internal_views.empty_view())
    yield "report of 40 columns", lambda: render_internal(internal_views.many_columns(40))


def list_papers() -> Iterator[tuple[str, Callable[[], str]]]:
    """What an officer files."""
    view = paper_views.of(paper_views.IDP)
    for name in render_papers(view):
        if name.endswith(".html"):
            yield f"paper {name.partition('.')[0]}", lambda name=name: render_papers(view)[name]


PAGES: dict[str, Callable[[], str]] = dict([*list_cards(), *list_reports(), *list_papers()])


@cache
def render(name: str) -> str:
    """One of these; made once."""
    return PAGES[name]()
