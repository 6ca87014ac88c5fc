"""What the reviewers must decide, asked with the figures of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from release_pipeline.policy.plan import name_some
from release_pipeline.privacy.figures import show_figure
from release_pipeline.report.internal_view import AttackView, InternalView
from release_pipeline.report.sections.distributions import MOST_ATOMS, describe_atoms, describe_ks
from release_pipeline.report.sections.parts import FAR
from release_pipeline.stages.checks import HEAVY_CLAMPING

SINGLING = "singling out"
ATTACKS = {  # by how the attack's name begins: what the attacker knows and tries
    SINGLING: "The attacker sees the released rows of one half of the table, and makes descriptions that fit one of them alone; "
    "one succeeds if exactly one person of that half meets it (control: of the other half)",
    "linking": "The attacker has half of a person's columns from one source and half from another, and looks for a row near both",
    "inferring": "The attacker knows all columns of a person but one, and takes that one from the nearest released row",
}


def list_questions(view: InternalView, *, is_dp: bool) -> Iterator[str]:
    """What no software can decide, with the figures that it hangs on. `is_dp`: whether the claim is differential privacy, or
    individual differential privacy."""
    if view.stopped_at:
        failed = [gate.name for gate in view.gates if not gate.passed]
        yield f"Nothing yet: the release is stopped{f' by its limit on {name_some(failed)}' if failed else ''}."
        return
    worst = max(view.columns, key=lambda column: column.actual_error)
    yield (
        f"Is the table good enough for what it is published for? The worst column is {worst.name}, with an error of "
        f"{show_figure(worst.actual_error)}, where 1 is no better than its mean for everybody."
    )
    parted = [column.name for column in view.columns if column.parted]
    if parted:
        yield f"Why does the error of {name_some(parted)} lie outside of the range that was expected?"
    for column in view.columns:
        if column.clamped is not None and column.clamped_variance is not None and column.clamped_variance > HEAVY_CLAMPING:
            yield (
                f"May {column.name} be published as it was clamped? {column.clamped:.2%} of its records lay outside the domain, "
                f"and moving them there took {show_figure(column.clamped_variance)} of its variance, which is not in its error."
            )
    yield from _ask_about_distributions(view)
    yield from _ask_about_attacks([attack for attack in view.attacks if attack.attack.tried])
    if view.linkage is not None and view.linkage.value > 10 * view.linkage_chance:
        yield (
            f"{view.linkage.value:.1%} of the released records are nearest to their own original in the masked columns "
            f"(chance: {view.linkage_chance:.2%}). Who could have these columns with names, as exact as the original?"
        )
    if view.classes is not None and view.classes.smallest < 5:
        yield f"Is a group of {view.classes.smallest} with the same quasi-identifiers large enough?"
    alike = [name for name, least in view.classes.diversity if least == 1] if view.classes is not None else []
    if alike:
        yield f"There are groups in which everybody has the same {name_some(alike)}. May that be known of them?"
    open_scopes = [scope for scope, bound in view.wider if "not bounded" in bound]
    if not is_dp:
        yield f"Is the claim enough, which is no differential privacy: {view.definition}?"
    elif open_scopes:
        yield f"Is it acceptable that nothing is proved for the wider scope: {name_some(open_scopes)}?"
    if view.suppression is not None and view.suppression.rows_out < view.suppression.rows_in:
        gone = view.suppression.rows_in - view.suppression.rows_out
        yield f"Whom do the {gone:,} records that were left out stand for, and may they be missing?"


def _ask_about_distributions(view: InternalView) -> Iterator[str]:
    """Of each column with declared atoms: what readers will count. Of the others, which lie far from the original."""
    for column in view.columns:
        if column.atoms:
            yield f"Can what became of {column.name} be counted on? {describe_atoms(column).capitalize()}; {describe_ks(column)}."
    far = [column for column in view.columns if not column.atoms and column.ks > FAR]
    if far:
        told = "; ".join(f"{column.name} {describe_ks(column)}" for column in far[:MOST_ATOMS])
        more = f"; and {len(far) - MOST_ATOMS} more" if len(far) > MOST_ATOMS else ""
        yield f"Is the distribution of each column good enough? The largest gap is over {FAR} in {told}{more}."


def _ask_about_attacks(tried: Sequence[AttackView]) -> Iterator[str]:
    """What is clearly beyond the control, the worst of each kind; or how far an attack could be beyond it that is not."""
    if not tried:
        yield "No attack could be tried, which says nothing about the risk. Is it acceptable nevertheless?"
        return
    for kind in ATTACKS:
        beyond = [attack for attack in tried if attack.name.startswith(kind) and attack.risk.low > 0]
        if not beyond:
            continue
        worst = max(beyond, key=lambda attack: attack.risk.low)
        more = f" ({len(beyond) - 1} more like it below)" if len(beyond) > 1 else ""
        if kind == SINGLING:
            yield (
                f"Is it acceptable that {worst.attack.value:.1%} of the descriptions made by {worst.name} meet one person only, "
                f"and {worst.control.value:.1%} in the half of the table that they were not made from?{more}"
            )
        else:
            yield (
                f"Is it acceptable that {worst.name} succeeds for {worst.attack.value:.1%} of the people tried, and for "
                f"{worst.control.value:.1%} of those whose own row is not there?{more}"
            )
    if all(attack.risk.low <= 0 for attack in tried):
        open_to = max(tried, key=lambda attack: attack.risk.high)
        yield (
            f"No attack tried here is clearly beyond its control; {open_to.name} could still be beyond it by "
            f"{open_to.risk.high:.1%} ({open_to.attack.tried:,} tried). Would another attack be?"
        )
