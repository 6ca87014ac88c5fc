"""Public views to render: one like the demo's, and any that Hypothesis can think of."""

from __future__ import annotations

import dataclasses
from datetime import date
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from release_pipeline.formats.about import About, Contact, Licence, Publisher, cite
from release_pipeline.formats.card import (
    Anonymity,
    Audience,
    Budget,
    Card,
    Claim,
    ColumnView,
    Definition,
    EntryLabel,
    Groups,
    Hashes,
    Looks,
    Method,
    PolicyName,
    RegistryHead,
    Rows,
    Scope,
    Series,
    Suppression,
    WiderScope,
)
from release_pipeline.formats.package import PackageView
from release_pipeline.mechanisms.catalogue import METHODS, list_methods
from release_pipeline.publish.public import complete_card

WORST = "the worst over all data; usually far less"
ABOUT = About(
    title="Families of six sites",
    description="Yearly waves of the same people.",
    licence=Licence(name="House rules", title="House rules", url="https://example.org/rules"),
    publisher=Publisher(name="Town", url=None),
    contact=Contact(name=None, email=None, url="https://example.org"),
    citation="Families of six sites, as the town counts them.",
    recipients="Everybody.",
)


def noise_column(name: str, upper: str, grid: str, why: str, noise: str) -> ColumnView:
    """One of the demo's four masked columns."""
    return ColumnView(
        name=name,
        role="confidential",
        done="noise",
        type="number",
        why=why,
        domain=("0", upper),
        grid=grid,
        epsilon="0.5",
        noise=noise,
        law="no law: the noise scales depend on the data and are not published",
        missing="none: a missing value stops the release",
    )


AS_THEY_ARE = (
    *("release", "population", "published", "tool", "headline", "looks", "supersedes", "parts", "swap"),
    *("columns", "tables", "how_to_use", "analysis", "formats"),
)

FACTS: dict[str, Any] = dict(  # noqa: C408 (read as what the demo's first release says)
    release="rand-hie/1/r1",
    policy="rand-hie",
    steward="ana",
    population="rand-hie-participants",
    published="2026-11-20T12:00:00+00:00",
    tool="release-pipeline 0.1.0",
    method="idp-cbls",
    method_words="individual ranking in clusters of k, trimmed means, noise by cluster sensitivity",
    paper='Soria-Comas, Sanchez, Domingo-Ferrer, Martinez, Del Vasto-Terrientes, "Conciliating Privacy and Utility in Data '
    'Releases via Individual Differential Privacy and Microaggregation", Transactions on Data Privacy 18 (2025); '
    "arXiv 2312.13712",
    definition="idp",
    definition_words="eps-iDP (individual differential privacy): for the neighbours of the actual data, every outcome is at "
    "most e^epsilon times likelier under one table than under the other",
    neighbours="two tables are neighbours when one record is replaced; the number of records is public",
    claim="epsilon 2 in all (0.5 for each of 4 columns), iDP, for the list of values of each masked column; "
    "whole table: not bounded",
    statement="For the actual table D, every table D' that differs from it in one record, and every set S of outcomes: "
    "P[M(D) in S] <= e^epsilon P[M(D') in S]",
    epsilon="2",
    records_per_person=1,
    scope="column",
    wider=(("table", "not bounded"),),
    k=25,
    k_words="25 records per cluster of one column (the last cluster has up to 49)",
    anonymity_k=84,
    consistency="isotonic",
    series_epsilon="2",
    cap="10",
    cap_unit="epsilon, iDP, column",
    population_spent="2",
    rows_in=5638,
    rows_out=5638,
    cells_blanked=0,
    suppression="groups of equal site and female below 5 lose a cell where that suffices, else the record; "
    "at most 5% of the records",
    not_protected=(
        "groups of people: epsilon is for one record",
        "which records were ranked together in a column: their released values are equal",
        "site and female: they are released as they are",
        "that the data passed the declared checks, and how many records there are",
    ),
    how_to_use=(
        "Treat a masked value as the value of a group of about 25 similar records, not of one person.",
        "Prefer means, quantiles and models over many records; do not look at single rows.",
        "Do not link the rows to other data about people.",
    ),
    columns=(
        ColumnView(
            "site",
            "quasi",
            "keep",
            "integer",
            "six known sites",
            values=("1", "2", "3", "4", "5", "6"),
            missing="blank where a small group was suppressed",
        ),
        ColumnView(
            "female",
            "quasi",
            "keep",
            "integer",
            "needed for every table",
            values=("0", "1"),
            missing="blank where a small group was suppressed",
        ),
        noise_column("income", "50000", "1", "survey top code", f"at most 28,699 (57.4% of the domain), {WORST}"),
        noise_column("mhi", "100", "0.1", "score by construction", f"at most 57.4 (57.4% of the domain), {WORST}"),
        noise_column("mdvis", "40", "1", "top code of visits in a year", f"at most 23 (57.5% of the domain), {WORST}"),
        noise_column("outpdol", "1000", "0.01", "top code of dollars in a year", f"at most 574 (57.4% of the domain), {WORST}"),
    ),
    formats=("parquet", "csv"),
    analysis=("Means of a whole column (mean): an interval from a worst-case bound.", "Slopes: it declines."),
    policy_hash="3f" * 32,
    candidate_hash="a7" * 32,
    head_event=41,
    head_hash="5c" * 32,
    head_first="1f" * 32,
    supersedes=None,
    hierarchies=(),
    parts=(),
    values="inside",
    grid="off",
    counts=(),
    tables=(),
    delta=None,
    rho=None,
    privacy_unit="person",
    record_count=None,
    headline=None,
    looks=None,
    about=ABOUT,
    audience=Audience(readers="public", terms=None),
    data_files=(),
    swap=None,
)

TEXT_FACTS = tuple(name for name, fact in FACTS.items() if isinstance(fact, str))


def sample_view(**changes: Any) -> PackageView:
    """The demo's first release; `changes` replaces facts of it."""
    return make_package(**FACTS | changes)


def make_package(**facts: Any) -> PackageView:
    """A release of which these are the facts."""
    known = SimpleNamespace(**facts)
    about = dataclasses.replace(known.about, citation=cite(known.about, known.release, known.published))
    epsilon = Budget(total=known.epsilon, delta=known.delta, rho=known.rho)
    claim = Claim(
        words=known.claim,
        statement=known.statement,
        definition=Definition(name=known.definition, words=known.definition_words),
        neighbours=known.neighbours,
        records_per_person=known.records_per_person,
        privacy_unit=known.privacy_unit,
        record_count=known.record_count,
        epsilon=epsilon,
        scope=Scope(name=known.scope),
        wider=tuple(WiderScope(scope=scope, bound=bound) for scope, bound in known.wider),
        not_protected=known.not_protected,
    )
    card = Card(
        claim=claim,
        policy=PolicyName(name=known.policy, steward=known.steward),
        method=Method(
            name=known.method,
            words=known.method_words,
            paper=known.paper,
            consistency=known.consistency,
            values=known.values,
            grid=known.grid,
        ),
        k=Groups(value=known.k, words=known.k_words),
        anonymity_k=Anonymity(value=known.anonymity_k),
        series=Series(
            epsilon=known.series_epsilon,
            population_spent=known.population_spent,
            cap=known.cap,
            cap_unit=known.cap_unit,
        ),
        rows=Rows(in_=known.rows_in, out=known.rows_out),
        suppression=Suppression(words=known.suppression, cells_blanked=known.cells_blanked),
        hashes=Hashes(policy=known.policy_hash, candidate=known.candidate_hash),
        registry_head=RegistryHead(event=known.head_event, hash=known.head_hash, first=known.head_first),
        **{name: facts[name] for name in AS_THEY_ARE},
        about=about,
        audience=known.audience,
    )
    return complete_card(PackageView(card, known.hierarchies, known.counts, known.data_files))


def _decimals() -> st.SearchStrategy[str]:
    return st.builds(lambda nano: f"{nano // 10**9}.{nano % 10**9:09d}".rstrip("0").removesuffix("."), st.integers(0, 10**13))


HOSTILE = st.sampled_from(
    [
        "a|b",
        "<script>alert(1)</script>",
        '" onload="x',
        "'; --",
        "`rm`",
        "two\nlines",
        "# heading",
        "- item",
        "[text](javascript:alert(1))",
        "![x](http://example.com/x.png)",
        "{{ view }}",
        "{% raw %}",
        "&lt;b&gt;",
        "\u202egnp.exe",
        "\x1b[31mred",
        "</style><b>",
        "-->",
        "\\",
        "grö\u00dfe",
        "$x$",
        "1. one",
        "\ud800",
    ]
)
TEXTS = st.one_of(st.text(max_size=30), HOSTILE)


@st.composite
def column_views(draw: st.DrawFn) -> ColumnView:
    """Any released column whose type, domain and values agree."""
    kind = draw(st.sampled_from(["number", "integer", "string"]))
    whole = st.integers(-(10**18), 10**18).map(str)
    bounds = st.tuples(_decimals(), _decimals()) if kind == "number" else st.tuples(whole, whole)
    listed = st.lists(TEXTS if kind == "string" else whole, max_size=3, unique=True).map(tuple)
    values = draw(listed if kind != "number" else st.just(()))
    labelled = values or draw(st.lists(TEXTS, max_size=2, unique=True))
    return ColumnView(
        name=draw(TEXTS),
        role=draw(TEXTS),
        done=draw(st.sampled_from(["noise", "keep", "generalise"])),
        type=kind,
        why=draw(TEXTS),
        domain=draw(st.none() | bounds) if kind != "string" else None,
        grid=draw(st.none() | _decimals()),
        values=values,
        label=draw(st.none() | TEXTS),
        labels=tuple(EntryLabel(value, draw(TEXTS)) for value in labelled) if draw(st.booleans()) else (),
        epsilon=draw(st.none() | _decimals()),
        noise=draw(st.none() | TEXTS),
        law=draw(st.none() | TEXTS),
        missing=draw(st.none() | TEXTS),
    )


def looks_views() -> st.SearchStrategy[Looks]:
    """Looks at the data of any number."""
    days = st.dates(min_value=date(1000, 1, 1)).map(date.isoformat)
    numbers = st.tuples(st.integers(0, 10**6), st.integers(1, 10**6))
    return st.builds(lambda number, day: Looks(count=sum(number), runs=number[0], last=day), numbers, days)


@st.composite
def public_facts(draw: st.DrawFn, *, methods: tuple[str, ...] = list_methods("columns")) -> dict[str, Any]:
    """Any facts of a release by these methods: hostile texts wherever a text may be, and what follows from the method."""
    spec = METHODS[draw(st.sampled_from(methods))]
    claim = draw(st.sampled_from(spec.claims))
    hashes = st.binary(min_size=32, max_size=32).map(bytes.hex)
    several = st.lists(TEXTS, max_size=3).map(tuple)
    amounts = _decimals() | st.just("infinity")
    strategies = (
        dict.fromkeys(TEXT_FACTS, TEXTS)
        | dict.fromkeys(("epsilon", "series_epsilon", "cap", "population_spent"), amounts)
        | dict.fromkeys(("policy_hash", "candidate_hash", "head_hash", "head_first"), hashes)
        | dict.fromkeys(("rows_in", "rows_out", "cells_blanked"), st.integers(0, 10**12))
        | dict.fromkeys(("not_protected", "how_to_use", "analysis"), several)
        | {
            "values": st.sampled_from(["inside", "anywhere"]),
            "grid": st.sampled_from(["on", "off"]),
            "wider": st.lists(st.tuples(TEXTS | st.just("table"), TEXTS | st.just("not bounded")), max_size=2).map(tuple),
            "anonymity_k": st.none() | st.integers(1, 10**6),
            "records_per_person": st.integers(1, 10_000),
            "head_event": st.integers(1, 10**9),
            "columns": st.lists(column_views(), max_size=3).map(tuple),
            "formats": st.sampled_from([("csv",), ("parquet",), ("parquet", "csv")]),
            "supersedes": st.none() | TEXTS,
            "privacy_unit": st.sampled_from(["person", "household"]),
            "record_count": st.sampled_from([None, "not protected"]),
            "looks": st.none() | looks_views(),
        }
    )
    of_method = {
        "method": spec.name,
        "definition": claim.definition.key,
        "scope": claim.scope,
        "k": draw(st.integers(1, 10**6)) if spec.takes_k else None,
        "headline": draw(TEXTS) if spec.family == "whole-table" else None,
    }
    if not claim.definition.composes:
        of_method["series_epsilon"] = None
    return FACTS | draw(st.fixed_dictionaries(strategies)) | of_method


def every_facts() -> st.SearchStrategy[dict[str, Any]]:
    """Any facts of any method. Pages leave out what some families have not: order, blank cells, epsilon."""
    return public_facts(methods=list_methods())
