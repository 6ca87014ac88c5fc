"""Consistency rules between gates, audit and the other parts of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from release_pipeline.mechanisms.basis.figures import join_last
from release_pipeline.policy.file.about import Everybody, name_readers
from release_pipeline.policy.file.options import AnyOptions, KEpsilonOptions
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.sections import ColumnSketch, Person, Suppress
from release_pipeline.policy.kinds import ListedColumn, NoiseColumn, find_clamping, pick
from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.values.formats import ask_for_near, decimal_text
from release_pipeline.policy.values.text import Path, Problem

MOST_EPSILON = Decimal(10)  # for the whole table: a larger epsilon means little
MOST_LINKED = Decimal("0.1")  # share of the rows, for everybody: the paper of (k,epsilon)-anonymity calls more excessively risky


def check_readers(parts: Parts) -> Iterator[Problem]:
    """Yield what a release for everybody lacks: it needs synthetic rows under one claim, a limit on linkage, swapping, or a
    reason."""
    audience, protect = parts.audience, parts.protect
    if audience is None or protect is None or not parts.complete or name_readers(audience) != "public":
        return
    epsilon, swap = getattr(protect, "epsilon", None), protect.swapped
    linkage = parts.gates.linkage if parts.gates is not None and not protect.is_synthetic else None
    is_claimed = protect.is_synthetic and epsilon is not None and Decimal(epsilon.nano).scaleb(-9) <= MOST_EPSILON
    is_swapped = swap is not None and Decimal(1) / swap.k <= MOST_LINKED
    is_enough = is_claimed or is_swapped or (linkage is not None and linkage <= MOST_LINKED)
    if not is_enough and not isinstance(audience, Everybody):
        limit = "nothing limits how many rows can be linked"
        if linkage is not None:
            limit = f"linkage may be {(100 * linkage).normalize():f}%"
        what = (
            "everybody may read this release, its rows are not synthetic under one claim of epsilon 10 or less, "
            f"and {limit}; 10% is the most."
        )
        remedy = (
            "Add gates: {linkage: 10%} or swap: {k: 10, within: kept}, or use dp-table with epsilon 10 or less; "
            "or name licensed readers with their terms (audience: {licensed: TERMS}); "
            "or give a reason that the card shows (audience: {public: REASON})."
        )
        yield ("audience",), what, remedy
    elif is_enough and isinstance(audience, Everybody):
        what = "this release needs no reason: its claim, its gate or its swapping is enough."
        yield ("audience", "public"), what, "Say audience: public."


def check_gates(parts: Parts) -> Iterator[Problem]:
    """Yield a problem for limits that apply to nothing."""
    if parts.gates is None:
        return
    if parts.gates.min_rows is not None and parts.protect and parts.protect.k and parts.gates.min_rows < 2 * parts.protect.k:
        yield (
            ("gates", "min_rows"),
            f"min_rows is below 2 k = {2 * parts.protect.k:,}: a release has two clusters of k records at least.",
            "Lower k, if a release may have fewer records; otherwise raise min_rows.",
        )
    if parts.gates.differencing_below is not None and parts.releases == "once":
        what = "there is one release, and nothing to compare it with."
        yield ("gates", "differencing_below"), what, "Remove differencing_below."
    elif parts.gates.differencing_below and parts.person == "each-row":
        what = "each row is a person of its own, so nobody can be seen to join or leave."
        yield ("gates", "differencing_below"), what, "Name the person's column, or set differencing_below to 0."
    clamping = find_clamping(parts.columns)
    if isinstance(parts.gates.clamped_at_most, dict):
        for name in parts.gates.clamped_at_most:
            if parts.complete and name not in clamping:
                what = f"'{name}' is not a column with outside: clamp."
                yield ("gates", "clamped_at_most", name), what, _propose(parts, name, clamping)
    elif parts.gates.clamped_at_most is not None and parts.complete and not clamping:
        yield ("gates", "clamped_at_most"), "no column has outside: clamp.", "Remove it."
    for name in parts.gates.atom_share:
        if name in parts.noise_columns and not (parts.noise_columns[name].atoms or parts.noise_columns[name].reasons):
            what = f"'{name}' declares no atoms."
            yield ("gates", "atom_share", name), what, "Declare them with the column, like atoms: [0], or remove the limit."
    groups = parts.audit.groups if parts.audit is not None else ()
    swapped = [name for name in groups if name in parts.kept_columns and parts.kept_columns[name].is_swapped]
    for gate, limits in (("group_mean", parts.gates.group_mean), ("group_error", parts.gates.group_error)):
        if limits and not groups:
            what = f"no groups are declared whose {'means' if gate == 'group_mean' else 'errors'} could be limited."
            yield ("gates", gate), what, "Name kept columns, like audit: {groups: [region, sex]}."
        elif limits and len(swapped) == len(groups):
            what = "every column of audit.groups is swapped, and entries that change places make no groups to limit."
            yield ("gates", gate), what, f"Add a kept column to audit.groups, or remove {gate}."
        is_of_classes = gate == "group_error" and isinstance(parts.protect, KEpsilonOptions)  # for all parts
        if limits and parts.count > 1 and not is_of_classes:
            what = "it is expected of all records together, and they are masked in random parts."
            yield ("gates", gate), what, "Use expected_error or ks."
    for name in parts.gates.relative_error:
        if name in parts.noise_columns and parts.noise_columns[name].dated is not None:
            what = f"'{name}' is a column of dates, of which no error is a share."
            yield ("gates", "relative_error", name), what, "Limit the expected_error of another column, or remove it."
    for gate in ("expected_error", "relative_error", "atom_share", "ks", "group_mean", "group_error"):
        for name in getattr(parts.gates, gate):
            if parts.complete and name not in parts.noise_columns:
                what = f"'{name}' is not a column with do: noise."
                yield ("gates", gate, name), what, _propose(parts, name, parts.noise_columns)


def check_group_gates(parts: Parts) -> Iterator[Problem]:
    """Yield a problem for limits on groups without released quasi-identifiers that make groups, and for limits on a column's
    values without a confidential one."""
    if parts.gates is None or not parts.complete:
        return
    makes_groups = any(column.role in RECOGNISED for column in (parts.kept_columns | parts.generalised_columns).values())
    if parts.protect is not None and not parts.protect.spec.is_noisy:  # whose exact values make groups, too
        makes_groups = makes_groups or any(column.role in RECOGNISED for column in parts.noise_columns.values())
    for gate, limit in parts.gates.on_released.items():
        if not makes_groups:
            yield ("gates", gate), "no quasi-identifier is released as it is or coarser, so there are no groups.", "Remove it."
            continue
        for name in limit:
            column = (parts.kept_columns | parts.noise_columns).get(name)
            if column is None or column.role != "confidential":
                yield ("gates", gate, name), f"'{name}' is not a released column with role: confidential.", "Remove it."
            elif gate == "l_diversity" and 0 < (values := len(column.value_texts)) < parts.gates.l_diversity[name]:
                what = f"'{name}' has {values} declared values, so that no group can have so many."
                yield ("gates", gate, name), what, "Lower it."
            elif gate == "l_diversity" and name in parts.noise_columns:
                what = f"'{name}' gets noise, so that different values of it say nothing."
                yield ("gates", gate, name), what, "Remove it."


def check_audit(parts: Parts) -> Iterator[Problem]:
    """Yield a problem for a model's target that is not released, or is a number or an entry unlike its column; and for groups
    that are not by entries."""
    if parts.audit is None or not parts.complete:
        return
    for number, name in enumerate(parts.audit.groups):
        if name not in parts.listed_columns and name not in parts.generalised_columns:
            what = f"'{name}' is not a column with do: keep or generalise."
            yield ("audit", "groups", str(number)), what, _propose(parts, name, parts.listed_columns | parts.generalised_columns)
    for name, target in parts.audit.predict.items():
        here = ("audit", "predict", name)
        if name in parts.noise_columns:
            low, high = parts.noise_columns[name].domain
            if target.above is None:
                of, say = ("numbers", "NUMBER") if parts.noise_columns[name].dated is None else ("dates", "DATE")
                yield (*here, "equals"), f"'{name}' is a column of {of}.", f"Say above: {say}."
            elif not low <= target.above < high:
                yield (*here, "above"), "it is outside the column's domain, so that nothing would be left to tell.", "Change it."
        elif name in parts.listed_columns:
            if target.equals is None:
                yield (*here, "above"), f"'{name}' is a column of entries.", "Say equals: ENTRY."
            elif str(target.equals) not in {str(value) for value in parts.listed_columns[name].values}:
                yield (*here, "equals"), "it is none of the column's declared values.", "Name one of them."
        else:
            what = f"'{name}' is not a released column with do: noise or keep."
            yield here, what, _propose(parts, name, parts.kept_columns | parts.noise_columns)


def _propose(parts: Parts, name: str, fitting: Iterable[str]) -> str:
    """Return what to do about a name that does not fit: remove it, or use another name if it is none of the policy's columns."""
    return "Remove it." if name in parts.names else ask_for_near(name, fitting, "Remove it.")


# The requirements of swapping: blocks of k people or more, all with the same kept entries.


def check_swap(parts: Parts, protect: AnyOptions) -> Iterator[Problem]:
    """Yield a problem for columns that are not swapped though others are, for groups smaller than a block, and for random
    parts."""
    swap = protect.swapped
    for name, column in parts.kept_columns.items():
        if column.is_swapped and swap is None:
            what = f"nothing says in which blocks the entries of '{name}' change places."
            yield ("columns", name, "do"), what, "Add swap: {k: 10, within: kept} under protect, or drop the column."
        if swap is not None and column.role == "confidential" and not column.is_swapped:
            what = f"'{name}' would keep its place while other columns change theirs, and help to tell whose row it is."
            yield ("columns", name, "do"), what, "Say do: swap, or drop the column."
    if swap is None:
        return
    if protect.partitions is not None:
        what = "blocks are made of all records together, and random parts are masked each on its own."
        yield ("protect", "swap"), what, "Remove partitions, or swap."
    records = parts.person.records_per_release if isinstance(parts.person, Person) else 1
    least = swap.k * records
    if parts.gates is not None and parts.gates.min_rows is not None and parts.gates.min_rows < least:
        what = f"min_rows is below {least}, the records of one block in which values are swapped."
        yield ("gates", "min_rows"), what, "Lower k of swap, or raise min_rows."
    quasi = [name for name, column in parts.kept_columns.items() if column.role in RECOGNISED]
    if not quasi or not parts.complete:
        return
    each = "" if records == 1 else f", {swap.k} for each of the {records} records that one may have"
    if not isinstance(parts.suppress, Suppress) or parts.suppress.quasi_groups_below < least:
        what = f"a block has {least} records or more{each}, and groups of {join_last(quasi)} may have fewer."
        remedy = f"Write suppress: {{quasi_groups_below: {least}, at_most: 5%}} with the share you mean."
        yield ("suppress",), what, remedy


# Consistency rules between a sketch of the data and the columns of a policy.


_ALL = Decimal(1)
_SOME = Decimal("0.000001")


def check_sketch(parts: Parts) -> Iterator[Problem]:
    """Yield a problem for what a sketch says about columns that do not exist, or that they cannot have."""
    sketch = parts.shape
    if sketch is None or not parts.complete:
        return
    numbers, listed = pick(parts.columns, NoiseColumn), pick(parts.columns, ListedColumn)
    for name, sketched in sketch.columns.items():
        here: Path = ("shape", "columns", name)
        if name in numbers:
            yield from _check_number(here, sketched, numbers[name])
        elif name in listed:
            yield from _check_listed(here, sketched, listed[name])
        else:
            known = {**numbers, **listed}
            otherwise = "Leave it out: it is not released as numbers or listed values."
            yield here, f"'{name}' is no column that a table is made up of.", ask_for_near(name, known, otherwise)


def _check_number(here: Path, sketched: ColumnSketch, column: NoiseColumn) -> Iterator[Problem]:
    if sketched.shares:
        yield (*here, "shares"), "shares are of listed values.", "Say at, for single numbers."
    if column.dated is not None and (sketched.quantiles or sketched.at):
        yield here, "of dates no quantiles are sketched: they are even over the domain.", "Leave it out."
        return
    low, high = column.domain
    for key, values in (("quantiles", sketched.quantiles.values()), ("at", sketched.at)):
        if outside := [value for value in values if not low <= value <= high]:
            yield (
                (*here, key),
                f"{decimal_text(outside[0])} is outside the domain.",
                "Records there are moved to its ends: say what is left of them.",
            )
    for reason in sketched.missing:
        if reason not in column.reasons:
            known = ", ".join(column.reasons) or "none"
            yield (*here, "missing"), f"'{reason}' is no reason of this column.", f"There are: {known}."
    if sum([*sketched.at.values(), *sketched.missing.values()], Decimal(0)) > _ALL:
        yield here, "these are more than all records.", "Shares of at and missing add up to 100% at the most."


def _check_listed(here: Path, sketched: ColumnSketch, column: ListedColumn) -> Iterator[Problem]:
    for key in ("quantiles", "at", "missing"):
        if getattr(sketched, key):
            yield (*here, key), f"{key} is for numbers.", "Say shares, of the listed values."
    known = [*map(str, column.values), *column.reasons]
    for value in sketched.shares:
        if value not in known:
            yield (*here, "shares"), f"'{value}' is not among its values.", ask_for_near(value, known, "Name one of them.")
    total = sum(sketched.shares.values(), Decimal(0))
    if total > _ALL + _SOME or (total < _ALL - _SOME and not set(known) - sketched.shares.keys()):
        yield (*here, "shares"), f"these add up to {decimal_text(total * 100)}%.", "They are of all records: 100%."
