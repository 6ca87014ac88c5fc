"""The questions for reviewers, asked with the figures of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from release_pipeline.formats.attack_views import CriterionView, NearView, ShareView
from release_pipeline.formats.internal_view import InternalView, StructureView, SwapView
from release_pipeline.mechanisms.attacks import CRITERIA, INFERENCE, LINKABILITY, SINGLING_OUT
from release_pipeline.mechanisms.basis.figures import (
    count_things,
    format_count,
    format_number,
    format_percent,
    join_names,
    show_figure,
)
from release_pipeline.policy.file.describe import RISKY
from release_pipeline.policy.values.formats import name_some, say_scope
from release_pipeline.report.sections.columns import MOST_ATOMS, describe_atoms, describe_ks, find_differences
from release_pipeline.report.sections.parts import FAR
from release_pipeline.rows.checks import HEAVY_CLAMPING
from release_pipeline.sentences import POLICY, REVIEWERS

SINGLING, LINKING, INFERRING = (CRITERIA[name].begins for name in (SINGLING_OUT, LINKABILITY, INFERENCE))


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its yardstick: the meaning of such a figure, what is usual, and what to check."""

    words: str
    yardstick: str


def ask(words: str, weighed_by: str) -> Question:
    """Return a question with its yardstick."""
    return Question(words, REVIEWERS.read_section("weigh")[weighed_by])


def list_yardsticks() -> dict[str, str]:
    """Return the subject of each kind of question, and its yardstick."""
    words = REVIEWERS.read_section("weigh")
    return {title: words[kind] for kind, title in REVIEWERS.read_section("weighed").items()}


def name_attacks(*, is_synthetic: bool, is_swapped: bool = False) -> dict[str, str]:
    """Return the knowledge and aim of the attacker, by how the name of an attack begins."""
    if is_synthetic:
        return {
            SINGLING: REVIEWERS("attacker.singling_synthetic"),
            INFERRING: REVIEWERS("attacker.inferring_synthetic"),
        }
    if is_swapped:
        return {
            SINGLING: REVIEWERS("attacker.singling_swapped"),
            INFERRING: REVIEWERS("attacker.inferring"),
        }
    return {
        SINGLING: REVIEWERS("attacker.singling"),
        LINKING: REVIEWERS("attacker.linking"),
        INFERRING: REVIEWERS("attacker.inferring"),
    }


def list_questions(view: InternalView, *, is_dp: bool) -> Iterator[Question]:
    """Yield the questions that no software can decide, with the figures that they depend on. `is_dp`: whether the claim is
    differential privacy, or individual differential privacy."""
    if view.stopped_at:
        failed = [gate.name for gate in view.gates if not gate.passed]
        words = REVIEWERS("question.stopped_by", gates=name_some(failed)) if failed else REVIEWERS("question.stopped")
        yield ask(words, "stopped")
        return
    if view.structure is not None:
        yield from _ask_about_structure(view.structure)
    elif view.swap is not None:
        yield from _ask_about_swap(view, view.swap)
    elif view.columns:
        worst = max(view.columns, key=lambda column: column.actual_error)
        yield ask(REVIEWERS("question.good_enough", column=worst.name, error=show_figure(worst.actual_error)), "useful")
    partitioned = [column.name for column in view.columns if column.partitioned]
    if partitioned:
        yield ask(REVIEWERS("question.outside", columns=name_some(partitioned)), "outside")
    for column in view.columns:
        if column.clamped is not None and column.clamped_variance is not None and column.clamped_variance > HEAVY_CLAMPING:
            variance = show_figure(column.clamped_variance)
            yield ask(
                REVIEWERS("question.clamped", column=column.name, share=format_percent(column.clamped, 2), variance=variance),
                "clamped",
            )
    yield from _ask_about_distributions(view)
    yield from _ask_about_attacks(list(_list_tried(view)), view)
    if view.nearest is not None:
        yield from _ask_about_strangers(view.nearest)
    if view.linkage is not None and (view.linkage.value > RISKY or view.linkage.value > 10 * view.linkage_chance):
        yield ask(
            REVIEWERS(
                "question.linkage", share=format_percent(view.linkage.value), chance=format_percent(view.linkage_chance, 2)
            ),
            "linkage",
        )
    if view.classes is not None and view.classes.smallest < 5:
        yield ask(REVIEWERS("question.small", k=view.classes.smallest), "small")
    alike = [name for name, least in view.classes.diversity.items() if least == 1] if view.classes is not None else []
    if alike:
        if view.swap is not None:
            yield ask(REVIEWERS("question.alike_swapped", columns=name_some(alike)), "alike")
        else:
            yield ask(REVIEWERS("question.alike", columns=name_some(alike)), "alike")
    if view.looks:
        yield ask(REVIEWERS("question.looks", looks=count_things(len(view.looks), "trial")), "looks")
    open_scopes = [scope for scope, bound in view.wider if POLICY("bound.none") in bound]
    if not is_dp:
        yield ask(REVIEWERS("question.no_dp", definition=view.definition), "no_dp")
    elif open_scopes:
        yield ask(REVIEWERS("question.wider", scopes=name_some(map(say_scope, open_scopes))), "wider")
    if view.suppression is not None and view.suppression.rows_out < view.suppression.rows_in:
        gone = view.suppression.rows_in - view.suppression.rows_out
        yield ask(REVIEWERS("question.gone", records=format_count(gone)), "gone")


def _ask_about_structure(structure: StructureView) -> Iterator[Question]:
    """Yield questions on synthetic rows: whether tables of two columns are near enough, and whether readers know what was not
    counted."""
    if structure.pairs is not None and structure.pairs_by_chance is not None:
        worst = structure.worst_pairs[0]
        yield ask(
            REVIEWERS(
                "question.synthetic",
                pairs=show_figure(structure.pairs),
                chance=show_figure(structure.pairs_by_chance),
                one=worst.one,
                other=worst.other,
                distance=show_figure(worst.distance),
            ),
            "synthetic",
        )
    yield ask(REVIEWERS("question.not_counted"), "not_counted")


def _ask_about_swap(view: InternalView, swap: SwapView) -> Iterator[Question]:
    """Yield questions on swapped values: whether columns and the links between them are good enough, and who could know the rest
    of a block."""
    if view.columns:
        worst = max(view.columns, key=lambda column: column.actual_error)
        error = show_figure(worst.actual_error)
        differences = [] if view.correlations is None else find_differences(view.correlations)
        known = [(abs(off), row, across) for row, across, off in differences if off is not None]
        if known and view.correlations is not None:
            off, row, across = max(known)
            one, other = view.correlations.names[across], view.correlations.names[row]
            asked = REVIEWERS(
                "question.swapped_linked", column=worst.name, error=error, one=one, other=other, off=show_figure(off)
            )
        else:
            asked = REVIEWERS("question.swapped", column=worst.name, error=error)
        yield ask(asked, "swapped")
    yield ask(REVIEWERS("question.members", others=format_count(swap.k - 1)), "members")
    masked = {column.name for column in view.columns}
    if exact := [name for name in swap.columns if name not in masked]:
        yield ask(REVIEWERS("question.exact", columns=name_some(exact)), "exact")


def _ask_about_distributions(view: InternalView) -> Iterator[Question]:
    """Yield questions on each column with declared atoms: what readers will count; and on the others that are far from the
    original."""
    for column in view.columns:
        if column.atoms:
            yield ask(
                REVIEWERS("question.atoms", column=column.name, atoms=_begin(describe_atoms(column)), ks=describe_ks(column)),
                "atoms",
            )
    far = [column for column in view.columns if not column.atoms and column.ks > FAR]
    if far:
        shown = [REVIEWERS("question.column", column=column.name, ks=describe_ks(column)) for column in far[:MOST_ATOMS]]
        columns = join_names(shown, "semicolon")
        more = len(far) - MOST_ATOMS
        columns = REVIEWERS("question.more_columns", columns=columns, more=more) if more > 0 else columns
        yield ask(REVIEWERS("question.distribution", limit=format_number(FAR), columns=columns), "distribution")


def _ask_about_strangers(near: NearView) -> Iterator[Question]:
    """Yield a question on the nearest row, where it clearly reveals more about the people behind the rows than about strangers,
    and more than the best constant."""
    overall = near.overall
    if overall is not None and overall.beyond.low > 0 and overall.people.low > overall.guess:
        people, strangers = format_percent(overall.people.value), format_percent(overall.strangers.value)
        guess = format_percent(overall.guess)
        if near.is_each_by_others:
            yield ask(REVIEWERS("question.nearest_each", people=people, strangers=strangers, guess=guess), "nearest")
        else:
            yield ask(REVIEWERS("question.nearest", people=people, strangers=strangers, guess=guess), "nearest")


_Tried = tuple[CriterionView, ShareView, ShareView]  # an attack, its control, and the difference


def _list_tried(view: InternalView) -> Iterator[_Tried]:
    """Yield the attacks that were tried next to a control group."""
    for attack in view.criteria:
        if attack.rate.tried and attack.control is not None and attack.beyond is not None:
            yield attack, attack.control, attack.beyond


def _ask_about_attacks(tried: Sequence[_Tried], view: InternalView) -> Iterator[Question]:
    """Yield a question on the worst attack of each kind that clearly exceeds both the control and a guess; or on how far the
    other attacks could exceed their controls."""
    if not tried:
        yield ask(REVIEWERS("question.no_attack"), "no_attack")
        return
    for kind in name_attacks(is_synthetic=view.is_synthetic, is_swapped=view.swap is not None):
        beyond = [entry for entry in tried if entry[0].attack.startswith(kind) and entry[0].is_finding]
        if not beyond:
            continue
        attack, control, _ = max(beyond, key=lambda entry: entry[2].low)
        share, with_control, guess = map(format_percent, (attack.rate.value, control.value, attack.guess))
        if view.is_nobodys:
            question = REVIEWERS(
                "question.attack_synthetic", attack=attack.attack, share=share, control=with_control, guess=guess
            )
        elif kind == SINGLING:
            question = REVIEWERS("question.singling", attack=attack.attack, share=share, control=with_control, guess=guess)
        else:
            question = REVIEWERS("question.attack", attack=attack.attack, share=share, control=with_control, guess=guess)
        more = len(beyond) - 1
        question = REVIEWERS("question.more_attacks", question=question, more=more) if more else question
        yield ask(question, "attack")
    if all(risk.low <= 0 for _, _, risk in tried):
        attack, _, risk = max(tried, key=lambda entry: entry[2].high)
        yield ask(
            REVIEWERS(
                "question.none_beyond",
                attack=attack.attack,
                share=format_percent(risk.high),
                tried=format_count(attack.rate.tried),
            ),
            "none_beyond",
        )


def _begin(words: str) -> str:
    """Return words at the beginning of a sentence; all other letters stay as they are."""
    return words[:1].upper() + words[1:]
