"""What a site's release says in another language: made anew from its registry and its evidence, as publication made it."""

from __future__ import annotations

from release_pipeline.flow.evidence import load_evidence
from release_pipeline.flow.policies import policy_of
from release_pipeline.flow.publication.public_view import build_view
from release_pipeline.flow.reviewing.page import render_report
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import PUBLISHING, read_statuses
from release_pipeline.report.datapackage import render_datapackage
from release_pipeline.report.public import render_card_html, render_card_json, render_note
from release_pipeline.report.standards import STANDARDS, name_standards
from release_pipeline.store.registry import ReleaseId


def tell_again(site: Site, release: ReleaseId, language: str = "en") -> dict[str, str]:
    """Card, page, note, package and standards of a published release, and its reviewers' page, by their files."""
    with site.open_registry(read_only=True) as registry:
        intent = max(event.number for event in registry.events if (event.kind, event.release) == (PUBLISHING, release))
        events = [event for event in registry.events if event.number <= intent]
        status = read_statuses(events)[release]
        policy = policy_of(registry, status.policy_hash).model_copy(update={"language": language})
    view = build_view(site, events, status, policy)
    data = [
        *(name for form in view.formats for name in view.name_data(form)),
        *view.counts,
        *(table.file for table in view.tables),
    ]
    known = dict.fromkeys((*data, *(name for name, _ in view.hierarchies)), ("0" * 64, 1))
    return {
        "privacy-card.json": render_card_json(view),
        "privacy-card.html": render_card_html(view),
        "RELEASE_NOTE.md": render_note(view),
        "datapackage.json": render_datapackage(view, known),
        **{name: STANDARDS[name](view, known) for name in name_standards(view)},
        "report.html": render_report(policy, load_evidence(site.candidate(str(release)))),
    }
