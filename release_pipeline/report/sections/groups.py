"""The section on groups of records that share their quasi-identifiers."""

from __future__ import annotations

from operator import itemgetter

from release_pipeline.formats.internal_view import ClassesView, InternalView, SuppressionView, SwapView
from release_pipeline.mechanisms.basis.figures import count_things, format_apart, format_count, format_number, format_share
from release_pipeline.pages.escaping import end_sentence, format_text
from release_pipeline.pages.prose import Name, Sentence, is_number, list_heads, list_names, review
from release_pipeline.report.sections.parts import Section, Table
from release_pipeline.sentences import FIGURES, REVIEWERS


def describe_classes(view: InternalView) -> Section:
    """Return the section: groups of equal quasi-identifiers, and what they reveal."""
    anchor, title = "classes", REVIEWERS("classes.title")
    if view.classes is None:
        return Section(anchor, title, absent=REVIEWERS("classes.absent"))
    classes = view.classes
    rows = [(_format_sizes(low, high), format_count(count)) for low, high, count in classes.bars]
    rows += [
        (REVIEWERS("classes.limit"), format_count(classes.least) if classes.least > 0 else REVIEWERS("classes.limit_none")),
        (REVIEWERS("classes.groups"), format_count(classes.number)),
    ]
    rows += [
        (REVIEWERS("classes.smallest"), format_count(classes.smallest)),
        (REVIEWERS("classes.mean"), format_number(classes.mean)),
        (REVIEWERS("classes.largest"), format_count(classes.largest)),
    ]
    is_swapped = view.swap is not None
    return Section(
        anchor,
        title,
        shows=REVIEWERS("classes.shows"),
        read=REVIEWERS("classes.read_swapped") if is_swapped else REVIEWERS("classes.read"),
        sign=REVIEWERS("classes.sign_swapped") if is_swapped else REVIEWERS("classes.sign"),
        says=tuple(_judge_classes(classes, view.swap)),
        tables=(Table(REVIEWERS("classes.table_groups_by_size"), list_heads("classes.head"), tuple(rows)),),
    )


def _format_sizes(low: int, high: int) -> str:
    """Return a range of sizes."""
    return format_count(low) if low == high else REVIEWERS("classes.sizes", low=format_count(low), high=format_count(high))


def _judge_classes(classes: ClassesView, swap: SwapView | None) -> list[Sentence]:
    known: tuple[str, ...] = list_names(classes.quasi) if classes.quasi else (REVIEWERS("classes.quasi"),)
    limit = REVIEWERS("classes.no_limit")
    if classes.least > 0:
        least = format_count(classes.least)
        is_kept = classes.smallest >= classes.least
        limit = REVIEWERS("classes.kept", limit=least) if is_kept else REVIEWERS("classes.broken", limit=least)
    sentences: list[Sentence] = [
        review(
            "classes.k",
            groups=count_things(classes.number, "group"),
            records=count_things(classes.smallest, "record"),
            limit=limit,
            mean=format_number(classes.mean),
            largest=format_count(classes.largest),
            quasi=known,
        )
    ]
    if swap is not None and swap.blocks:
        blocks, records = count_things(swap.blocks, "block"), count_things(swap.smallest, "record")
        sentences.append(REVIEWERS("classes.blocks", blocks=blocks, records=records))
    for name, fewest in classes.diversity.items():
        values, column = count_things(fewest, "different_value"), Name(name)
        if swap is None and fewest <= 1:
            sentences.append(review("classes.l_of_one", column=column))
        elif swap is None:
            sentences.append(review("classes.l", values=values, column=column))
        elif fewest <= 1:
            sentences.append(review("classes.l_of_one_swapped", column=column))
        else:
            sentences.append(review("classes.l_swapped", values=values, column=column))
    if swap is not None:
        return [
            *sentences,
            REVIEWERS("classes.prosecutor_swapped", risk=format_share(classes.prosecutor)),
            REVIEWERS("classes.journalist_swapped", risk=format_share(classes.journalist)),
        ]
    return [
        *sentences,
        REVIEWERS("classes.prosecutor", risk=format_share(classes.prosecutor)),
        REVIEWERS("classes.journalist", risk=format_share(classes.journalist)),
    ]


# The section on how far columns were made coarser.


def describe_levels(view: InternalView) -> Section:
    """Return the section: how far columns were made coarser."""
    anchor, title = "levels", REVIEWERS("levels.title")
    if not view.ladders and not view.ladder_words:
        label = REVIEWERS("section.not_measured") if view.generalises else REVIEWERS("levels.none")
        return Section(anchor, title, absent=label, settled=not view.generalises)
    sentences: list[Sentence] = []
    for hierarchy in view.ladders:
        steps = count_things(len(hierarchy.levels), "level")
        if hierarchy.at is None:
            sentences.append(review("levels.no_level", column=Name(hierarchy.column), levels=steps))
        elif float(hierarchy.at).is_integer() and 0 <= hierarchy.at < len(hierarchy.levels):
            sentences.append(
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
            sentences.append(review("levels.mean", column=Name(hierarchy.column), level=f"{hierarchy.at:.2f}", last=last))
    for name, lost in view.ladder_words:
        sentences.append(review("levels.is", column=Name(name), words=end_sentence(format_text(lost))))
    return Section(
        anchor,
        title,
        shows=REVIEWERS("levels.shows"),
        read=REVIEWERS("levels.read"),
        sign=REVIEWERS("levels.sign"),
        says=tuple(sentences),
        ladders=view.ladders,
    )


# The section on what was left out.


def describe_suppression(view: InternalView) -> Section:
    """Return the section: what was left out."""
    anchor, title = "suppression", REVIEWERS("suppression.title")
    if view.suppression is None:
        return Section(anchor, title, absent=REVIEWERS("section.not_measured"))
    suppression = view.suppression
    share, limit = format_share(suppression.share), REVIEWERS("suppression.limit_none")
    if suppression.limit is not None:
        share, limit = (
            FIGURES("share.percent", number=words) for words in format_apart(100 * suppression.share, 100 * suppression.limit)
        )
    rows = [
        (REVIEWERS("suppression.before"), format_count(suppression.rows_in)),
        (REVIEWERS("suppression.after"), format_count(suppression.rows_out)),
    ]
    rows += [
        (REVIEWERS("suppression.cells"), format_count(suppression.cells)),
        (REVIEWERS("suppression.share"), share),
        (REVIEWERS("suppression.limit"), limit),
    ]
    rows += [(Name(reason), format_count(count)) for reason, count in suppression.reasons]
    return Section(
        anchor,
        title,
        shows=REVIEWERS("suppression.shows"),
        read=REVIEWERS("suppression.read"),
        sign=REVIEWERS("suppression.sign"),
        says=tuple(_judge_suppression(suppression, share, limit)),
        tables=(Table(REVIEWERS("suppression.table_what_was_left_out"), list_heads("suppression.head"), tuple(rows)),),
    )


def _judge_suppression(suppression: SuppressionView, share: str, limit: str) -> list[Sentence]:
    sentences: list[Sentence] = [
        REVIEWERS(
            "suppression.touched",
            out=format_count(suppression.rows_out),
            records=count_things(suppression.rows_in, "record"),
            cells=count_things(suppression.cells, "cell"),
            share=share,
        )
    ]
    if suppression.limit is None:
        sentences.append(REVIEWERS("suppression.no_limit"))
    elif not is_number(suppression.share):
        sentences.append(REVIEWERS("suppression.unknown", limit=limit))
    else:
        is_kept = suppression.share <= suppression.limit
        sentences.append(REVIEWERS("suppression.kept", limit=limit) if is_kept else REVIEWERS("suppression.broken", limit=limit))
    if suppression.reasons:
        reason, count = max(suppression.reasons, key=itemgetter(1))
        sentences.append(review("suppression.most_often", reason=Name(reason), count=format_count(count)))
    else:
        sentences.append(REVIEWERS("suppression.nothing") if not suppression.share else REVIEWERS("suppression.no_reason"))
    return sentences
