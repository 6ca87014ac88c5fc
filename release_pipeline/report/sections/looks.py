"""The section on looks at the data: who chose parameters with knowledge of them, and what was compared."""

from __future__ import annotations

from release_pipeline.privacy.figures import count_things
from release_pipeline.report.internal_view import InternalView, LookView
from release_pipeline.report.prose import Name, Sentence, review
from release_pipeline.report.sections.parts import Section
from release_pipeline.sentences import REVIEWERS

_MOST_COMPARED = 24  # settings of one look; the registry has all


def describe_looks(view: InternalView) -> Section:
    """Who looked at the data before the charge, when, at what, what was compared, and why it matters."""
    return Section(
        "looks",
        REVIEWERS("looks.title"),
        shows=REVIEWERS("looks.shows"),
        read=REVIEWERS("looks.read"),
        sign=REVIEWERS("looks.sign"),
        says=(*map(_describe, view.looks), REVIEWERS("looks.matters")),
    )


def _describe(look: LookView) -> Sentence:
    compared = "; ".join(look.compared[:_MOST_COMPARED])
    if (more := len(look.compared) - _MOST_COMPARED) > 0:
        compared = REVIEWERS("looks.more", compared=compared, more=count_things(more, "other"))
    match look.on:
        case "mask":
            return review("looks.mask", day=look.noted[:10], by=Name(look.by), compared=Name(compared))
        case "run":
            return review("looks.run", day=look.noted[:10], compared=Name(compared))
        case _:
            return review("looks.public", day=look.noted[:10], by=Name(look.by), compared=Name(compared))
