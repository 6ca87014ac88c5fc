"""Sentences that the public reads about a release, from the catalogue: by policy, family of methods, and public facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from release_pipeline.formats.package import file_of
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.basis.figures import join_names
from release_pipeline.mechanisms.catalogue import Family
from release_pipeline.policy import Policy
from release_pipeline.policy.families.columns import list_atoms
from release_pipeline.policy.file.published import may_be_blanked
from release_pipeline.policy.file.sections import Suppress, SuppressClasses
from release_pipeline.policy.kinds import Fill, GeneraliseColumn, MissingCategory
from release_pipeline.policy.kinds.base import reason_column
from release_pipeline.policy.plans.plan import describe_suppression as describe_limits
from release_pipeline.policy.values.formats import name_reasons, name_some
from release_pipeline.sentences import PUBLIC

INFINITE = "infinity"  # an amount, as programs read it


def describe_neighbours(policy: Policy) -> str:
    """Return which tables the claim compares."""
    if policy.method.family == "mdav":
        return PUBLIC("neighbours.none")
    if policy.method.family == "classes":
        return PUBLIC("neighbours.within_class")
    if policy.protect.by_rho:
        return _compare_tables_by_rho(policy)
    if policy.record_count is not None:
        return PUBLIC("neighbours.as_many_records", unit=policy.privacy_unit)
    if policy.claim.definition.covers_groups:
        return PUBLIC("neighbours.replaced_and_groups", unit=policy.privacy_unit)
    return PUBLIC("neighbours.replaced")


def _compare_tables_by_rho(policy: Policy) -> str:
    """Return which tables a claim in rho compares: groups of g lose g squared times the rho of one (BS16 Prop. 1.9), and not g
    times."""
    if policy.record_count is not None:
        return PUBLIC("neighbours.as_many_records_by_rho", unit=policy.privacy_unit)
    return PUBLIC("neighbours.replaced_and_groups_by_rho", unit=policy.privacy_unit)


def describe_k(policy: Policy) -> str:
    """Return what k counts."""
    match policy.method.family:
        case "mdav":
            return PUBLIC("k_words.mdav", names=name_some(policy.noise_columns))
        case "classes":
            return PUBLIC("k_words.classes", names=name_some(policy.generalised_columns))
        case "vectors":
            return PUBLIC("k_words.vectors")
        case "by-value":
            return PUBLIC("k_words.by_value")
        case "columns" if not policy.method.by_record:
            return PUBLIC("k_words.column")
        case _:
            return PUBLIC("k_words.none")


def list_parts(policy: Policy) -> Iterator[str]:
    """Yield the meaning of random parts for a reader."""
    if policy.parts == 1:
        return
    if policy.method.family == "classes":
        yield PUBLIC("parts.grouped", parts=policy.parts)
        yield PUBLIC("parts.united")
    else:
        yield PUBLIC("parts.masked", parts=policy.parts)
    if policy.adds_up:
        yield PUBLIC("parts.costs_one")


def describe_series(policy: Policy, series: int | None) -> str | None:
    """Return the sum over the releases of the policy; None where there is none."""
    if not policy.adds_up:
        return None
    return INFINITE if series is None else format_nano(policy.in_epsilon(series))


def describe_suppression(policy: Policy) -> str:
    """Return which values or records may be left out."""
    rule = policy.suppress
    if isinstance(rule, Suppress):
        return PUBLIC("suppression.groups", least=rule.quasi_groups_below)
    return PUBLIC("suppression.none") if rule is None else describe_limits(policy)


def describe_missing(policy: Policy, name: str) -> str:
    """What became of missing entries of a released column."""
    column, number = policy.released_columns[name], policy.noise_columns.get(name)
    if column.reasons and not column.separate_reasons:
        if column.is_coded or len(column.reasons) > 1:
            return PUBLIC("missing.labels", labels=join_names(column.reasons))
        return PUBLIC("missing.label", label=next(iter(column.reasons)))
    sentences: list[str] = []
    if column.reasons:
        reasons = name_reasons(column.reasons)
        separate = reason_column(name)
        if policy.protect.is_synthetic:
            sentences.append(PUBLIC("missing.synthetic_reasons", reasons=reasons, column=separate))
        elif number:
            sentences.append(PUBLIC("missing.reasons", reasons=reasons, column=separate))
        elif name in policy.swapped_columns:
            sentences.append(PUBLIC("missing.swapped_reasons", reasons=reasons, column=separate))
        else:
            sentences.append(PUBLIC("missing.kept_reasons", reasons=reasons, column=separate))
    if number and isinstance(number.missing, Fill):
        fill = number.missing.fill
        sentences.append(PUBLIC("missing.value", value=format(fill, "f") if number.clock is None else number.say(fill)))
    if isinstance(column.missing, MissingCategory):
        sentences.append(PUBLIC("missing.entry", entry=column.missing.category))
    words = " ".join(sentences)
    if not may_be_blanked(column, policy.suppress):
        return words or PUBLIC("missing.none")
    return PUBLIC("missing.also_blanked", filled=words) if words else PUBLIC("missing.blanked")


def describe_hierarchy(policy: Policy, name: str, column: GeneraliseColumn, level: str | None) -> str:
    """Return how a generalised column was made coarser, and how it is released."""
    if level:
        how = PUBLIC("hierarchy.one_level", level=_say_level(level))
    elif name in policy.cut_columns:
        how = PUBLIC("hierarchy.by_class_ranges")
    else:
        how = PUBLIC("hierarchy.by_class")
    return PUBLIC("hierarchy.released", words=column.hierarchy.describe(), how=how)


def _say_level(noted: str) -> str:
    """Return the level of all records as facts note it: "1 of 3"."""
    level, of, last = noted.partition(" of ")
    return PUBLIC("hierarchy.level", level=level, last=last) if of else noted


def list_uses(policy: Policy, *, together: bool = False, blanked: bool = True) -> Iterator[str]:
    """Yield what an analyst must know to draw right conclusions, from the policy, and from whether columns were counted together
    and cells blanked."""
    yield from _use_whole_table(policy, together=True) if together else _USES[policy.method.family](policy)
    if policy.swap is not None:
        yield PUBLIC("use.swapped")
        yield PUBLIC("use.swapped_links", records=policy.block_size)
    if policy.tables:
        yield PUBLIC("use.tables", files=name_some(map(file_of, policy.tables)))
    if isinstance(policy.suppress, SuppressClasses):
        yield PUBLIC("use.missing")
    elif policy.suppress is not None:
        yield PUBLIC("use.blank") if blanked else PUBLIC("use.no_blank")
    if policy.releases != "once":
        yield PUBLIC("use.rows")
    if policy.adds_up:
        yield PUBLIC("use.adds_up_by_rho") if policy.protect.by_rho else PUBLIC("use.adds_up")
    else:
        yield PUBLIC("use.alone")


def _use_columns(policy: Policy) -> Iterator[str]:
    if policy.method.by_record:
        yield PUBLIC("use.measured")
    else:
        for name, column in policy.noise_columns.items():
            if column.atoms and policy.claim.keeps_atoms:
                yield PUBLIC("use.atoms", name=name, atoms=list_atoms(column))
        yield PUBLIC("use.column_group", k=policy.protect.k)
        yield PUBLIC("use.column_spread")
    yield PUBLIC("use.many")
    if policy.swap is None:
        yield PUBLIC("use.links_weaker")


def _use_by_value(policy: Policy) -> Iterator[str]:
    yield PUBLIC("use.by_value_ranks")
    for name, column in policy.noise_columns.items():
        if column.atoms:
            yield PUBLIC("use.by_value_atoms", name=name, atoms=list_atoms(column))
    yield PUBLIC("use.by_value_counts")
    if policy.swap is None:
        yield PUBLIC("use.by_value_links")


def _use_whole_table(policy: Policy, *, together: bool = False) -> Iterator[str]:
    yield PUBLIC("use.synthetic_rows")
    yield PUBLIC("use.synthetic_counts")
    yield PUBLIC("use.synthetic_together") if together else PUBLIC("use.synthetic_pairs")
    yield PUBLIC("use.synthetic_rare")


def _use_vectors(policy: Policy) -> Iterator[str]:
    yield PUBLIC("use.vectors_group", k=policy.protect.k)
    yield PUBLIC("use.vectors_spread")
    yield PUBLIC("use.many")
    yield PUBLIC("use.links_either")


def _use_mdav(policy: Policy) -> Iterator[str]:
    yield PUBLIC("use.alike_means", k=policy.protect.k)
    yield PUBLIC("use.alike_spread")
    yield PUBLIC("use.many")


def _use_classes(policy: Policy) -> Iterator[str]:
    yield PUBLIC("use.labels")
    yield PUBLIC("use.in_class")
    yield PUBLIC("use.class_ends")
    yield PUBLIC("use.star")
    yield PUBLIC("use.links_weaker")


_USES: dict[Family, Callable[[Policy], Iterator[str]]] = {
    "columns": _use_columns,
    "by-value": _use_by_value,
    "whole-table": _use_whole_table,
    "vectors": _use_vectors,
    "mdav": _use_mdav,
    "classes": _use_classes,
}
