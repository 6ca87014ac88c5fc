"""An evaluation by NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees" (March 2025): the parts of its
pyramid one by one, from the parameter at its top to the collection of data at its bottom."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.catalogue.definitions import IDP, ZCDP
from release_pipeline.privacy.figures import format_number, format_share
from release_pipeline.report.families import find_texts
from release_pipeline.report.papers.common import (
    state_after,
    state_claim,
    state_each,
    state_hashes,
    state_looks,
    state_noise,
    state_publication,
    state_rows,
    state_sums,
    state_wider,
)
from release_pipeline.report.papers.statements import Paper, Section, Statement, make_item, make_paper, quote, state_fact
from release_pipeline.report.papers.view import Fields, PaperView
from release_pipeline.sentences import PAPERS

NAME = "nist-sp-800-226"


def write_nist(view: PaperView) -> Paper:
    """The paper; of a claim that is not differential privacy, that the standard does not apply."""
    fields, titles = Fields(view), PAPERS.read_section("nist.item")
    applies = Section(PAPERS("nist.applies"), (make_item("applies", titles, state_applies(fields)),))
    after = Section(PAPERS("nist.record"), (make_item("provenance", titles, state_publication(fields), state_hashes(fields)),))
    parts = (applies, *(_list_parts(fields, titles) if view.claims_dp else ()), after)
    titles = PAPERS("nist.title"), PAPERS("nist.standard"), PAPERS("nist.limits")
    return make_paper(view, NAME, parts, *titles)


def state_applies(fields: Fields) -> Statement:
    """Whether what is claimed is what the standard evaluates."""
    definition = fields("public.definition")
    if definition.value == IDP.key:
        return state_fact("nist.individual", definition, scope=fields("public.scope"))
    if fields.view.claims_dp:
        return state_fact("nist.dp", definition, words=fields("public.definition_words"), scope=fields("public.scope"))
    return state_fact("nist.no_dp", definition, words=fields("public.definition_words"))


def _list_parts(fields: Fields, titles: dict[str, str]) -> tuple[Section, ...]:
    tool = fields("public.tool")
    top = (
        make_item("epsilon", titles, state_claim(fields), _state_parameters(fields)),
        make_item("variant", titles, _state_variant(fields)),
        make_item("unit", titles, _state_unit(fields)),
        make_item("neighbours", titles, state_fact("nist.bounded", neighbours=fields("public.neighbours"))),
        make_item("composition", titles, state_sums(fields)),
        make_item("mixing", titles, state_wider(fields), state_each(fields, "public.not_protected")),
    )
    middle = (
        make_item("mechanisms", titles, _state_mechanisms(fields)),
        make_item("choice", titles, state_looks(fields)),
        make_item("utility", titles, state_noise(fields), _state_errors(fields)),
        make_item("bias", titles, _state_bias(fields), quote(fields, "bias")),
        make_item("after", titles, state_after(fields)),
    )
    bottom = (
        make_item("queries", titles, state_fact("nist.static", tool=tool), state_rows(fields)),
        make_item("threats", titles, state_fact("nist.central", tool=tool), quote(fields, "environment")),
        make_item("channels", titles, state_fact("nist.integers", tool=tool), state_fact("nist.timing", tool=tool)),
        make_item("security", titles, quote(fields, "environment"), quote(fields, "controls")),
        make_item("collection", titles, quote(fields, "collection")),
    )
    return (
        Section(PAPERS("nist.top"), top),
        Section(PAPERS("nist.middle"), middle),
        Section(PAPERS("nist.bottom"), bottom),
    )


def _state_parameters(fields: Fields) -> Iterator[Statement]:
    """Epsilon, and under zCDP rho with the delta that goes with it; of each column, where it has a part of its own."""
    epsilon, delta = fields("public.epsilon"), fields("public.delta")
    if epsilon.value is None:
        yield state_fact("nist.no_total", epsilon)
    elif delta.value is None:
        yield state_fact("nist.epsilon", delta, epsilon=epsilon, scope=fields("public.scope"))
    else:
        rho, scope = fields("public.rho"), fields("public.scope")
        yield state_fact("nist.epsilon_at_delta", epsilon=epsilon, delta=delta, rho=rho, scope=scope)
    for at, column in fields.each("public.columns"):
        if column.epsilon is not None:
            yield state_fact("nist.column_epsilon", column=fields(f"{at}.name"), epsilon=fields(f"{at}.epsilon"))
        elif column.rho is not None:
            yield state_fact("nist.column_rho", column=fields(f"{at}.name"), rho=fields(f"{at}.rho"))
    for at, table in fields.each("public.tables"):
        if table.epsilon is not None:
            yield state_fact("nist.table_epsilon", table=fields(f"{at}.name"), epsilon=fields(f"{at}.epsilon"))
        elif table.rho is not None:
            yield state_fact("nist.table_rho", table=fields(f"{at}.name"), rho=fields(f"{at}.rho"))


def _state_variant(fields: Fields) -> Iterator[Statement]:
    definition = fields("public.definition")
    yield state_fact("nist.definition", words=fields("public.definition_words"), statement=fields("public.statement"))
    if definition.value == IDP.key:
        yield state_fact("nist.variant_individual", definition)
    elif definition.value == ZCDP.key:
        yield state_fact("nist.variant_zcdp", definition)
    else:
        yield state_fact("nist.variant_pure", definition)


def _state_unit(fields: Fields) -> Iterator[Statement]:
    yield state_fact("nist.unit", unit=fields("public.privacy_unit"), records=fields("public.records_per_person"))
    count = fields("public.record_count")
    if count.value is not None:
        yield state_fact("nist.record_count", count=count)


def _state_mechanisms(fields: Fields) -> Iterator[Statement]:
    yield state_fact("nist.method", method=fields("public.method"), words=fields("public.method_words"))
    yield state_fact("nist.paper", paper=fields("public.paper"))
    k = fields("public.k")
    if k.value is not None:
        yield state_fact("nist.clusters", k=k, words=fields("public.k_words"))


def _state_errors(fields: Fields) -> Iterator[Statement]:
    """What was measured against the confidential records: for the internal edition alone."""
    if fields.view.edition == "public":
        yield state_fact("nist.errors_not_public", fields("edition"))
        return
    columns = fields("internal.columns")
    if not columns:
        yield state_fact("nist.errors_none", columns)
    is_synthetic = find_texts(fields.view.public).describe_kind_of_rows() is not None
    for at, column in fields.each("internal.columns"):
        actual = fields(f"{at}.actual_error", format_number(column.actual_error))
        expected = fields(f"{at}.expected_error", format_number(column.expected_error))
        name, method = fields(f"{at}.name"), fields("public.method")
        if is_synthetic:
            yield state_fact("nist.error_by_rank", method, column=name, actual=actual, expected=expected)
        else:
            yield state_fact("nist.error", method, column=name, actual=actual, expected=expected)


def _state_bias(fields: Fields) -> Iterator[Statement]:
    """What moves figures to one side: clamping, restored order, suppression; and who is served worse."""
    yield state_fact("nist.suppression", words=fields("public.suppression"))
    if fields.view.edition == "public":
        yield state_fact("nist.groups_not_public", fields("edition"))
        return
    for at, column in fields.each("internal.columns"):
        if column.clamped is not None:
            share = fields(f"{at}.clamped", format_share(column.clamped))
            yield state_fact("nist.clamped", column=fields(f"{at}.name"), share=share)
    groups = fields("internal.subgroups")
    if not groups:
        yield state_fact("nist.groups_none", groups)
    for at, _ in fields.each("internal.subgroups"):
        yield state_fact("nist.groups", column=fields(f"{at}.by"))
