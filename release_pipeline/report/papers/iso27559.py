"""The context of a release by the parts of ISO/IEC 27559:2022, in our own words: context, data, identifiability and its
mitigation, governance. Nothing of the standard's text is here."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.privacy.figures import count_of
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
from release_pipeline.report.papers.dpia import INFERRING, LINKING, SINGLING, state_data, state_groups, state_linkage
from release_pipeline.report.papers.output_check import state_approvals, state_eyes, state_policy
from release_pipeline.report.papers.statements import Paper, Section, Statement, make_item, make_paper, quote, state_fact
from release_pipeline.report.papers.view import Fields, PaperView
from release_pipeline.sentences import PAPERS

NAME = "iso-iec-27559-context"


def write_iso27559(view: PaperView) -> Paper:
    """The paper, of the site."""
    fields, titles = Fields(view), PAPERS.read_section("iso.item")
    context = (
        make_item("recipients", titles, state_recipients(fields), quote(fields, "recipients_could")),
        make_item("controls", titles, quote(fields, "controls")),
        make_item("environment", titles, quote(fields, "environment")),
        make_item("purpose", titles, quote(fields, "purpose")),
    )
    data = (
        make_item("people", titles, state_rows(fields), state_coverage(fields), quote(fields, "collection")),
        make_item("attributes", titles, state_data(fields), state_columns_as_they_are(fields)),
    )
    identifiability = (
        make_item("adversary", titles, state_attacks(fields, (*SINGLING, *LINKING, *INFERRING))),
        make_item("groups", titles, state_groups(fields), state_linkage(fields)),
        make_item("mitigation", titles, state_method(fields), state_claim(fields), state_wider(fields)),
        make_item("thresholds", titles, state_gates(fields)),
        make_item("residual", titles, state_each(fields, "public.not_protected"), quote(fields, "residual_risk")),
    )
    governance = (
        make_item("roles", titles, state_policy(fields), state_eyes(fields), state_approvals(fields)),
        make_item("over_time", titles, state_sums(fields), state_looks(fields), state_retention(fields)),
        make_item("decision", titles, quote(fields, "decision"), state_publication(fields), state_hashes(fields)),
    )
    sections = (
        Section(PAPERS("iso.context"), context),
        Section(PAPERS("iso.data"), data),
        Section(PAPERS("iso.identifiability"), identifiability),
        Section(PAPERS("iso.governance"), governance),
    )
    titles = PAPERS("iso.title"), PAPERS("iso.standard"), PAPERS("iso.limits")
    return make_paper(view, NAME, sections, *titles)


def state_coverage(fields: Fields) -> Iterator[Statement]:
    """Places, times and sampling, as the policy tells everybody."""
    about = fields("public.about")
    if about.value is None:
        yield state_fact("about.none", about)
        return
    for at, _ in fields.each("public.about.places"):
        yield state_fact("about.place", place=fields(at))
    first = fields("public.about.first")
    if first.value is not None:
        yield state_fact("about.time", first=first, last=fields("public.about.last"))
    sampling = fields("public.about.sampling")
    if sampling.value is None:
        yield state_fact("about.no_sampling", sampling)
    else:
        yield state_fact("about.sampling", words=sampling)


def state_method(fields: Fields) -> Iterator[Statement]:
    """How values were masked and what was suppressed."""
    yield state_fact("nist.method", method=fields("public.method"), words=fields("public.method_words"))
    yield state_fact("nist.suppression", words=fields("public.suppression"))


def state_retention(fields: Fields) -> Statement:
    """How long intermediate tables are kept."""
    kept = fields("checked.retain")
    if kept.value is None:
        return state_fact("retain.unlimited", kept)
    return state_fact("retain.days", days=fields("checked.retain", count_of(kept.value, "day")))
