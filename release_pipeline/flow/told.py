"""What a policy says of its data and columns, for pages: that of the reviewers has it as the public will have it."""

from __future__ import annotations

from release_pipeline.policy.about import About, Coverage
from release_pipeline.policy.kinds.labels import LabelledColumn
from release_pipeline.policy.published import labels_of
from release_pipeline.report.about import AboutView, ColumnWords
from release_pipeline.report.card import ContributorView


def tell_about(about: About) -> AboutView:
    """What the policy says of the data as a whole."""
    covered = about.coverage or Coverage.model_construct()
    first, last = (None, None) if covered.days is None else (day.isoformat() for day in covered.days)
    licence = about.licence
    return AboutView(
        title=about.title,
        description=about.description,
        licence=(licence.name, licence.title, licence.address),
        publisher=(about.publisher.name, about.publisher.url),
        contact=(about.contact.name, about.contact.email, about.contact.url),
        contributors=tuple(ContributorView(one.name, one.role, one.organisation, one.orcid) for one in about.contributors),
        places=covered.places,
        first=first,
        last=last,
        sampling=about.sampling,
        keywords=about.keywords,
        citation=about.citation,
        intended_use=about.intended_use,
        recipients=about.recipients,
    )


def tell_column(name: str, column: LabelledColumn) -> ColumnWords:
    """What the policy says of a released column."""
    return ColumnWords(name, column.label, column.unit, column.description, column.question, tuple(labels_of(column).items()))
