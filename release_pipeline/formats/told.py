"""A policy's description of its data and columns, for pages: reviewers see it as the public will. Pages do not import
policies."""

from __future__ import annotations

from release_pipeline.formats.about import About, ColumnWords, Contact, ContributorView, Coverage, Licence, Publisher
from release_pipeline.policy.file import about as file
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.published import labels_of
from release_pipeline.policy.kinds.base import LabelledColumn


def view_about(about: file.About, policy: Policy) -> About:
    """Return the policy's description of the data as a whole; `citation` is empty if it is built at publication."""
    covered = about.coverage or file.Coverage.model_construct()
    first, last = (None, None) if covered.days is None else (day.isoformat() for day in covered.days)
    licence = about.licence
    return About(
        title=about.title,
        description=about.description,
        licence=Licence(name=licence.name, title=licence.title, url=licence.address),
        publisher=Publisher(name=about.publisher.name, url=about.publisher.url),
        contact=Contact(name=about.contact.name, email=about.contact.email, url=about.contact.url),
        contributors=tuple(ContributorView(part.name, part.role, part.organisation, part.orcid) for part in about.contributors),
        coverage=Coverage(places=covered.places, first=first, last=last),
        sampling=about.sampling,
        keywords=about.keywords,
        citation=about.citation or "",
        intended_use=about.intended_use,
        recipients=file.describe_audience(policy.audience),
    )


def view_column(name: str, column: LabelledColumn) -> ColumnWords:
    """Return the policy's description of a released column."""
    return ColumnWords(name, column.label, column.unit, column.description, column.question, tuple(labels_of(column).items()))
