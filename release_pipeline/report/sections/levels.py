"""The section on how far columns were made coarser."""

from __future__ import annotations

from release_pipeline.privacy.figures import (
    count_of,
)
from release_pipeline.report.escaping import end_sentence, format_text
from release_pipeline.report.internal_view import InternalView
from release_pipeline.report.prose import Name, Sentence
from release_pipeline.report.sections.parts import NOT_MEASURED, Section


def describe_levels(view: InternalView) -> Section:
    """How far columns were made coarser."""
    anchor, title = "levels", "Levels of generalisation"
    if not view.ladders and not view.ladder_words:
        words = NOT_MEASURED if view.generalises else "No column is generalised."
        return Section(anchor, title, absent=words, settled=not view.generalises)
    said: list[Sentence] = []
    for ladder in view.ladders:
        steps = count_of(len(ladder.levels), "level")
        if ladder.at is None:
            said.append((Name(ladder.column), f": {steps}; its labels follow no one level."))
        elif float(ladder.at).is_integer() and 0 <= ladder.at < len(ladder.levels):
            said.append(
                (
                    Name(ladder.column),
                    f": level {ladder.at:.0f} of {len(ladder.levels) - 1}, ",
                    Name(ladder.levels[int(ladder.at)]),
                    ".",
                )
            )
        else:
            said.append((Name(ladder.column), f": mean level {ladder.at:.2f} of {len(ladder.levels) - 1}."))
    said += [(Name(name), ": ", end_sentence(format_text(words))) for name, words in view.ladder_words]
    return Section(
        anchor,
        title,
        shows="How far each quasi-identifier was made coarser: from the value itself, at the left, to one label for everybody.",
        read="The level with the sign ● is the one that is released. Where records have different levels, the mean is said.",
        sign="A column at its last level says nothing any more; a level that is finer than the column's purpose needs.",
        says=tuple(said),
        ladders=view.ladders,
    )
