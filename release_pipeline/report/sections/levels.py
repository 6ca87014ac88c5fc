"""The section on how far columns were made coarser."""

from __future__ import annotations

from release_pipeline.privacy.figures import count_things
from release_pipeline.report.escaping import end_sentence, format_text
from release_pipeline.report.internal_view import InternalView
from release_pipeline.report.prose import Name, Sentence, review
from release_pipeline.report.sections.parts import Section
from release_pipeline.sentences import REVIEWERS


def describe_levels(view: InternalView) -> Section:
    """How far columns were made coarser."""
    anchor, title = "levels", REVIEWERS("levels.title")
    if not view.ladders and not view.ladder_words:
        words = REVIEWERS("section.not_measured") if view.generalises else REVIEWERS("levels.none")
        return Section(anchor, title, absent=words, settled=not view.generalises)
    said: list[Sentence] = []
    for hierarchy in view.ladders:
        steps = count_things(len(hierarchy.levels), "level")
        if hierarchy.at is None:
            said.append(review("levels.no_level", column=Name(hierarchy.column), levels=steps))
        elif float(hierarchy.at).is_integer() and 0 <= hierarchy.at < len(hierarchy.levels):
            said.append(
                review(
                    "levels.level",
                    column=Name(hierarchy.column),
                    level=f"{hierarchy.at:.0f}",
                    last=str(len(hierarchy.levels) - 1),
                    label=Name(hierarchy.levels[int(hierarchy.at)]),
                )
            )
        else:
            last = str(len(hierarchy.levels) - 1)
            said.append(review("levels.mean", column=Name(hierarchy.column), level=f"{hierarchy.at:.2f}", last=last))
    said += [review("levels.is", column=Name(name), words=end_sentence(format_text(words))) for name, words in view.ladder_words]
    return Section(
        anchor,
        title,
        shows=REVIEWERS("levels.shows"),
        read=REVIEWERS("levels.read"),
        sign=REVIEWERS("levels.sign"),
        says=tuple(said),
        ladders=view.ladders,
    )
