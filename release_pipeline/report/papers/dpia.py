"""An annex for a data protection impact assessment: the three criteria of Opinion 05/2014 of the Article 29 Working Party (WP216)
with what was measured for each, what a recipient can do, and which risk is left."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.figures import count_of, format_count, format_number, format_share
from release_pipeline.report.escaping import describe_word
from release_pipeline.report.papers.common import (
    state_attacks,
    state_claim,
    state_columns_as_they_are,
    state_each,
    state_gates,
    state_hashes,
    state_looks,
    state_publication,
    state_recipients,
    state_rows,
    state_sums,
    state_wider,
)
from release_pipeline.report.papers.statements import Paper, Section, Statement, make_item, make_paper, quote, state_fact
from release_pipeline.report.papers.view import Fields, PaperView
from release_pipeline.report.prose import format_interval, format_tried
from release_pipeline.sentences import PAPERS

NAME = "dpia-annex"
SINGLING, LINKING, INFERRING = ("singling out",), ("linking",), ("inferring",)  # how the names of attacks begin
GATES_ON_SINGLING = ("singling out", "smallest group", "marketer", "anonymity")
GATES_ON_LINKING = ("linking", "linkage", "linkability")
GATES_ON_INFERRING = ("inferring", "inference", "l-diversity", "t-closeness")


def write_dpia(view: PaperView) -> Paper:
    """The paper. It is of the site: figures in it were measured against the confidential records."""
    fields, titles = Fields(view), PAPERS.read_section("dpia.item")
    processing = (
        make_item("purpose", titles, quote(fields, "purpose")),
        make_item("basis", titles, quote(fields, "lawful_basis")),
        make_item("necessity", titles, quote(fields, "necessity")),
        make_item("data", titles, state_rows(fields), state_data(fields)),
        make_item("consulted", titles, quote(fields, "consulted")),
    )
    criteria = (
        make_item(
            "singling", titles, state_groups(fields), state_attacks(fields, SINGLING), state_gates(fields, GATES_ON_SINGLING)
        ),
        make_item(
            "linking", titles, state_linkage(fields), state_attacks(fields, LINKING), state_gates(fields, GATES_ON_LINKING)
        ),
        make_item(
            "inference",
            titles,
            state_diversity(fields),
            state_nearest(fields),
            state_attacks(fields, INFERRING),
            state_gates(fields, GATES_ON_INFERRING),
        ),
        make_item("attacks", titles, state_meaning(fields)),
    )
    measures = (
        make_item("claim", titles, state_claim(fields), state_wider(fields)),
        make_item("uncovered", titles, state_each(fields, "public.not_protected"), state_columns_as_they_are(fields)),
        make_item("limits", titles, state_gates(fields)),
        make_item("releases", titles, state_sums(fields), state_looks(fields)),
    )
    recipients = (
        make_item("terms", titles, state_recipients(fields)),
        make_item("could", titles, quote(fields, "recipients_could")),
        make_item("controls", titles, quote(fields, "controls")),
    )
    left = (
        make_item("risk", titles, quote(fields, "residual_risk")),
        make_item("decision", titles, quote(fields, "decision"), state_publication(fields)),
        make_item("record", titles, state_hashes(fields)),
    )
    sections = (
        Section(PAPERS("dpia.processing"), processing),
        Section(PAPERS("dpia.criteria"), criteria),
        Section(PAPERS("dpia.measures"), measures),
        Section(PAPERS("dpia.recipients"), recipients),
        Section(PAPERS("dpia.left"), left),
    )
    titles = PAPERS("dpia.title"), PAPERS("dpia.standard"), PAPERS("dpia.limits")
    return make_paper(view, NAME, sections, *titles)


def state_meaning(fields: Fields) -> Statement:
    """What follows from attacks, and what does not."""
    tried = [attack for _, attack in fields.each("internal.attacks") if attack.attack.tried]
    if not tried:
        return state_fact("attack.none", fields("internal.attacks"))
    return state_fact("attack.prove_nothing", count=fields("internal.attacks", count_of(len(tried), "attack")))


def state_data(fields: Fields) -> Iterator[Statement]:
    """Every published column, what it is and what was done to it."""
    for at, column in fields.each("public.columns"):
        role, done = fields(f"{at}.role", describe_word(column.role)), fields(f"{at}.done", describe_word(column.done))
        yield state_fact("data.column", column=fields(f"{at}.name"), role=role, done=done)


def state_groups(fields: Fields) -> Iterator[Statement]:
    """How small groups of equal quasi-identifiers are, and what a sample tells of the population."""
    found = fields("internal.classes")
    if found.value is None:
        yield state_fact("groups.none", found)
    else:
        classes = found.value
        yield state_fact(
            "groups.smallest",
            groups=fields("internal.classes.groups", format_count(classes.groups)),
            smallest=fields("internal.classes.smallest", format_count(classes.smallest)),
            prosecutor=fields("internal.classes.prosecutor", format_share(classes.prosecutor)),
            marketer=fields("internal.classes.marketer", format_share(classes.marketer)),
        )
    sample = fields("internal.sample").value
    if sample is not None and sample.sample_uniques is not None:
        yield state_fact(
            "groups.uniques",
            sample=fields("internal.sample.sample_uniques", format_count(sample.sample_uniques)),
            population=fields("internal.sample.population_uniques", format_number(sample.population_uniques)),
        )


def state_linkage(fields: Fields) -> Iterator[Statement]:
    """How many released records somebody links who knows all released columns, and who knows the kept ones only."""
    found = fields("internal.linkage")
    internal = fields.view.internal
    if internal is not None and internal.swap is not None:
        yield state_fact("linkage.swapped", people=fields("internal.swap.k"))
    if found.value is None:
        yield state_fact("linkage.none", found)
    else:
        share = found.value
        chance = fields("internal.linkage_chance", format_share(fields("internal.linkage_chance").value))
        yield state_fact(
            "linkage.share",
            share=fields("internal.linkage", format_interval(share)),
            tried=fields("internal.linkage", format_tried(share)),
            chance=chance,
        )
    for at, rung in fields.each("internal.linkage_ladder"):
        if rung.masked == 0:
            yield state_fact("linkage.kept", share=fields(f"{at}.linked", format_share(rung.linked.value)))


def state_diversity(fields: Fields) -> Iterator[Statement]:
    """How many values of a confidential column a group has at the least, and how far its values are from those of all."""
    internal = fields.view.internal
    is_swapped = internal is not None and internal.swap is not None
    for at, _ in fields.each("internal.classes.diversity"):
        column, least = fields(f"{at}.0"), fields(f"{at}.1")
        if is_swapped:
            yield state_fact("groups.diversity_swapped", column=column, least=least)
        else:
            yield state_fact("groups.diversity", column=column, least=least)
    for at, (_, far) in fields.each("internal.classes.closeness"):
        column, distance = fields(f"{at}.0"), fields(f"{at}.1", format_number(far))
        if is_swapped:
            yield state_fact("groups.closeness_swapped", column=column, distance=distance)
        else:
            yield state_fact("groups.closeness", column=column, distance=distance)


def state_nearest(fields: Fields) -> Iterator[Statement]:
    """Of synthetic rows: what the row nearest to a person tells of them, beside what it tells of strangers."""
    near = fields("internal.nearest").value
    if near is None or near.overall is None:
        return
    at = "internal.nearest.overall"
    value, low, high = (format_share(part) for part in near.overall.beyond)
    yield state_fact(
        "nearest.overall",
        people=fields(f"{at}.people", format_interval(near.overall.people)),
        strangers=fields(f"{at}.strangers", format_interval(near.overall.strangers)),
        guess=fields(f"{at}.guess", format_share(near.overall.guess)),
        beyond=fields(f"{at}.beyond", PAPERS("nearest.beyond", value=value, low=low, high=high)),
    )
