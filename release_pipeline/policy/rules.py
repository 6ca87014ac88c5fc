"""What several parts of a policy must agree on. Each rule runs as soon as the parts that it needs are valid, so that one
broken part does not hide what is wrong elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.expectation_rules import find_idle_and_unknown
from release_pipeline.policy.expectations import Expectation
from release_pipeline.policy.hierarchies import Intervals, Listed
from release_pipeline.policy.model import (
    AnyColumn,
    Audit,
    Gates,
    GeneraliseColumn,
    KeepColumn,
    MissingCategory,
    NoiseColumn,
    Person,
    PlainProtect,
    Protect,
    ProtectAlike,
    ProtectClasses,
    ProtectVectors,
    Scheduled,
    Source,
    Suppress,
    SuppressClasses,
    find_clamping,
    order_of,
    split_epsilon,
)
from release_pipeline.policy.scalars import look_alike_key
from release_pipeline.policy.text import Path
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.catalogue.together import STATISTICS
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.curve import MAX_COLUMNS
from release_pipeline.privacy.hierarchy import Hierarchy, find_ambiguous_label
from release_pipeline.privacy.methods import check_sizes
from release_pipeline.privacy.sensitivity import scales_for
from release_pipeline.privacy.vectors import Alike, Insensitive, check_vector_sizes

MAX_NODES = 1_000_000  # of the lattice of levels
MOST_ATOMS = 100  # of one column
Problem: TypeAlias = tuple[Path, str, str]  # where, what, remedy


@dataclass(slots=True)
class Parts:
    """The parts of a policy that are valid by themselves; None or absent where they are not. `names` are all columns named."""

    source: Source | None = None
    person: Person | str | None = None
    releases: tuple[str, ...] | Scheduled | str | None = None
    protect: PlainProtect | None = None
    suppress: Suppress | SuppressClasses | None = None
    gates: Gates | None = None
    audit: Audit | None = None
    columns: dict[str, AnyColumn] = field(default_factory=dict[str, AnyColumn])
    drop: tuple[str, ...] = ()
    expect: dict[str, Expectation] = field(default_factory=dict[str, Expectation])
    names: tuple[str, ...] = ()
    complete: bool = True  # whether every column is valid

    @property
    def is_series(self) -> bool:
        names = self.releases.list or () if isinstance(self.releases, Scheduled) else self.releases
        return isinstance(names, tuple) and (len(names) > 1 or names == ())

    @property
    def noise(self) -> dict[str, NoiseColumn]:
        return {name: column for name, column in self.columns.items() if isinstance(column, NoiseColumn)}

    @property
    def generalised(self) -> dict[str, GeneraliseColumn]:
        return {name: column for name, column in self.columns.items() if isinstance(column, GeneraliseColumn)}

    @property
    def kept(self) -> dict[str, KeepColumn]:
        return {name: column for name, column in self.columns.items() if isinstance(column, KeepColumn)}


def find_contradictions(parts: Parts) -> Iterator[Problem]:
    """Every disagreement between the valid parts, in the order of the file."""
    yield from _names(parts)
    yield from _source(parts)
    yield from _person(parts)
    if isinstance(parts.protect, ProtectClasses):
        yield from _protect_classes(parts, parts.protect)
    elif isinstance(parts.protect, Protect):
        yield from _protect(parts, parts.protect)
    elif parts.protect is not None:
        yield from _protect_together(parts, parts.protect)
    if parts.protect is not None:
        yield from _noise(parts, parts.protect)
        yield from _partitions(parts, parts.protect)
    yield from _columns(parts)
    yield from _expectations(parts)
    yield from _suppress(parts)
    yield from _gates(parts)
    yield from _group_gates(parts)
    yield from _audit(parts)


def _names(parts: Parts) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name in parts.names:
        other = seen.setdefault(look_alike_key(name), name)
        if other != name:
            yield ("columns", name), f"'{name}' and '{other}' look alike.", "Rename one of them in the source."
    for i, name in enumerate(parts.drop):
        if name in parts.names:
            yield ("drop", i), f"'{name}' is under columns too.", "Declare it in one place."
        elif (other := seen.setdefault(look_alike_key(name), name)) != name:
            yield ("drop", i), f"'{name}' and '{other}' look alike.", "Rename one of them in the source."


def _source(parts: Parts) -> Iterator[Problem]:
    if parts.source is None:
        return
    column = parts.source.release_column
    if column is not None and (column in parts.names or column in parts.drop):
        yield (
            ("source", "release_column"),
            f"'{column}' is declared again under columns or drop.",
            "The release column is never released: name it here only.",
        )
    if parts.releases == "once" and column is not None:
        yield (
            ("source", "release_column"),
            "a policy that is released once has no release column.",
            "List the releases, or leave release_column out and drop the column.",
        )
    if parts.is_series and column is None and (parts.protect is None or parts.protect.publish_parts is None):
        yield (
            ("releases",),
            "several releases need source.release_column to tell their records apart.",
            "Name the column, or set releases to once.",
        )


def _person(parts: Parts) -> Iterator[Problem]:
    if not isinstance(parts.person, Person):
        return
    column = parts.columns.get(parts.person.column)
    if parts.names and column is None and parts.person.column not in parts.names:
        yield (
            ("person", "column"),
            f"'{parts.person.column}' is not declared under columns.",
            "Add it there with {role: identifier, do: drop}.",
        )
    elif column is not None and column.role != "identifier":
        yield (
            ("person", "column"),
            f"'{parts.person.column}' must have the role identifier.",
            "Set its role, with do: drop.",
        )
    if parts.protect is None or parts.person.records_per_release == 1 or _covers_groups(parts.protect):
        return
    why = "individual differential privacy does not cover groups."
    if isinstance(parts.protect, ProtectClasses | ProtectAlike):
        unit = "class" if isinstance(parts.protect, ProtectClasses) else "cluster"
        why = f"a {unit} counts records, and k of them may be fewer than k people."
    name = parts.protect.method
    if isinstance(parts.protect, ProtectVectors):
        name += " with trimmed sums"
    yield (
        ("person", "records_per_release"),
        f"{name} protects single records: {why}",
        "Aggregate to one record per person, or use laplace, dp-um or dp-mdav with plain sums.",
    )


def _covers_groups(protect: PlainProtect) -> bool:
    return protect.method in ("laplace", "dp-um") or (isinstance(protect, ProtectVectors) and protect.statistic == "plain")


def _protect(parts: Parts, protect: Protect) -> Iterator[Problem]:
    if protect.method == "laplace":
        if protect.k is not None:
            yield ("protect", "k"), "laplace masks every record on its own and has no k.", "Remove k."
    elif protect.k is None:
        yield (
            ("protect",),
            f"k is missing: {protect.method} needs the number of records per cluster.",
            "Add k, like k: 25.",
        )
    try:
        choose_consistency(protect.consistency, method=protect.method, scope=protect.scope)
    except ReleasePipelineError as error:
        yield ("protect", "consistency"), error.what, error.remedy
    for name in parts.generalised:
        what = f"{protect.method} works on single columns and generalises none."
        yield ("columns", name, "do"), what, "Keep, mask or drop the column, or use k-epsilon."


def _protect_together(parts: Parts, protect: ProtectVectors | ProtectAlike) -> Iterator[Problem]:
    """What is special to clusters of all noise columns together."""
    for name in parts.generalised:
        what = f"{protect.method} makes clusters of numbers and generalises no column."
        yield ("columns", name, "do"), what, "Keep, mask or drop the column, or use k-epsilon."
    if not isinstance(protect, ProtectVectors):
        return
    least = STATISTICS[protect.statistic][0].least_k
    if protect.k < least:
        what = f"{protect.statistic} sums need clusters of at least {least} records."
        yield ("protect", "k"), what, f"Raise k to {least} or more, or use plain sums."
    if protect.order == "hilbert" and len(parts.noise) > MAX_COLUMNS:
        what = f"a hilbert curve goes through {MAX_COLUMNS} columns at the most, and {len(parts.noise)} have do: noise."
        yield ("protect", "order"), what, "Use order: corner, or fewer columns."
    if protect.scope == "table":
        for name in parts.kept:
            what = "a column that is kept as it is has no bound, and the claim would be for the whole table."
            yield ("columns", name, "do"), what, "Mask or drop it, or claim scope: centroid."


def _partitions(parts: Parts, protect: PlainProtect) -> Iterator[Problem]:
    """Random parts, each large enough; and what it takes to publish them one by one."""
    if protect.partitions is None:
        for option in ("publish_parts", "amplification"):
            if getattr(protect, option) is not None:
                yield (
                    ("protect", option),
                    f"{option} is about random parts, and there are none.",
                    "Add partitions, like partitions: 5.",
                )
        return
    least = protect.partitions * max(2 * (protect.k or 1), 1)
    if parts.gates is not None and parts.gates.min_rows is None:
        what = f"{protect.partitions} parts need gates.min_rows: how many rows there are at least, so that no part is too small."
        yield ("protect", "partitions"), what, f"Declare min_rows of {least:,} or more."
    elif parts.gates is not None and parts.gates.min_rows is not None and parts.gates.min_rows < least:
        what = f"min_rows is below {least:,}, twice k in each of {protect.partitions} parts."
        yield ("gates", "min_rows"), what, "Raise it, or lower partitions or k."
    if protect.publish_parts is not None:
        yield from _published_parts(parts, protect.partitions)
    if protect.amplification is not None:
        yield from _amplification(parts, protect)


def _published_parts(parts: Parts, count: int) -> Iterator[Problem]:
    if parts.source is not None and parts.source.release_column is not None:
        what = (
            "the parts are taken from one and the same table, and a release column would choose other records for each release."
        )
        yield ("source", "release_column"), what, "Remove it, and drop the column if the source has it."
    releases = parts.releases.list if isinstance(parts.releases, Scheduled) else parts.releases
    if parts.releases is not None and (not isinstance(releases, tuple) or len(releases) != count):
        what = f"there are {count} parts, and one release is needed for each."
        yield ("releases",), what, f"List {count} releases, or change partitions."


def _amplification(parts: Parts, protect: PlainProtect) -> Iterator[Problem]:
    """Only where nobody can see who is in a part: that takes eps-DP for everything that a reader sees."""
    here: Path = ("protect", "amplification")
    if protect.publish_parts is None:
        what = "all parts are in one release, so that everybody is in it."
        yield here, what, "Remove amplification, or publish the parts one per release."
        return
    if isinstance(protect, ProtectVectors):
        is_covered = protect.scope == "table" and protect.statistic == "plain"
    else:
        is_covered = protect.method == "laplace"
    if not is_covered or parts.kept:
        why = (
            "the columns that are kept show" if parts.kept and is_covered else "what this method's claim does not cover can show"
        )
        what = f"{why} who is in a part, and then the choice of the part saves nothing."
        yield (
            here,
            what,
            "Remove it. It is for eps-DP of the whole table: laplace or dp-mdav with plain sums, and no column kept.",
        )
    if isinstance(parts.person, Person) and parts.person.records_per_release > 1:
        what = "it is proved for one record per person."
        yield here, what, "Remove it, or aggregate to one record per person."


def _protect_classes(parts: Parts, protect: ProtectClasses) -> Iterator[Problem]:
    """What is special to (k,epsilon)-anonymity: groups by generalised quasi-identifiers, nothing of them released raw."""
    if parts.complete and not parts.generalised:
        what = "no column has do: generalise, so there are no classes."
        yield ("columns",), what, "Declare the hierarchy of at least one quasi-identifier."
    for name, column in parts.kept.items():
        if column.role == "quasi":
            what = "k-epsilon releases no quasi-identifier as it is: with it groups would be smaller than k."
            yield ("columns", name, "do"), what, "Generalise it."
    if protect.l is not None and parts.complete and not parts.kept:
        what = "l counts different values of the confidential columns that are kept, and there are none."
        yield ("protect", "l"), what, "Remove l."
    for name, column in parts.kept.items():
        if protect.l is not None and len(column.values) < protect.l:
            what = f"'{name}' has {len(column.values)} declared values, so that no class can have l = {protect.l} of them."
            yield ("protect", "l"), what, "Lower l."
    if protect.l is not None and protect.l > protect.k:
        yield (
            ("protect", "l"),
            "l is above k, and a class of k records cannot have more different values.",
            "Raise k, or lower l.",
        )
    mondrian = protect.grouping == "mondrian"
    if mondrian and protect.metric is not None:
        yield ("protect", "metric"), "mondrian cuts by width and chooses by no metric.", "Remove metric."
    for name, column in parts.generalised.items():
        yield from _hierarchy(name, column, mondrian=mondrian)
    nodes = math.prod(column.hierarchy.levels for column in parts.generalised.values())
    if not mondrian and nodes > MAX_NODES:
        what = f"the hierarchies have {nodes:,} combinations of levels, and ola goes through {MAX_NODES:,} at the most."
        yield ("protect", "grouping"), what, "Use fewer columns or levels, or mondrian."


def _hierarchy(name: str, column: GeneraliseColumn, *, mondrian: bool) -> Iterator[Problem]:
    here: Path = ("columns", name, "hierarchy")
    spec, missing = column.hierarchy, column.missing_entry
    if isinstance(spec, Intervals):
        if mondrian and spec.intervals is not None:
            what = "mondrian cuts numbers where the data ask for it, not at declared intervals."
            yield (*here, "intervals"), what, "Remove intervals; domain, grid and outside are enough."
        elif not mondrian and spec.intervals is None:
            yield here, "ola needs the intervals that the numbers become.", "Add them, like intervals: [5, 10, 20]."
        if column.why is None:
            yield ("columns", name), "'why' is missing: where does the domain come from?", "Say it in a few words."
        if missing is not None and mondrian:
            what = "mondrian cuts numbers, and a missing one has no place among them."
            yield (*here[:2], "missing"), what, "Use missing: fail and fill the source by a rule of your own, or use ola."
        elif missing is not None and spec.may_release(missing, None):
            yield (*here[:2], "missing"), "the category for missing entries reads like a number.", "Choose a word."
        return
    if isinstance(spec, Listed):
        if missing is not None and missing not in spec.values:
            what = "the category for missing entries is not among the hierarchy's values."
            yield (*here[:2], "missing"), what, "Add it to them, with its labels."
        if mondrian and len({row[-1] for row in spec.rows}) > 1:
            what = "mondrian begins with everybody in one class, so the last level must be one label."
            yield here, what, "Add a level with * for all values."
        twice = find_ambiguous_label(Hierarchy.of(spec.rows)) if mondrian else None
        if twice is not None:
            what = f"'{twice}' stands for different values on two levels, which mondrian may release side by side."
            yield here, what, "Give the levels labels of their own."
    elif missing is not None and spec.may_release(missing, None):
        what = "the category for missing entries reads like one of the hierarchy's labels."
        yield (*here[:2], "missing"), what, "Choose a word."


_NO_ATOMS = {
    "mdav": "the means of mdav are of clusters of all columns together, and stay as they are",
    "dp-mdav": "dp-mdav restores no order that could move them, and its clusters mix them with other values",
    "k-epsilon": "k-epsilon restores no order that could move them, and has noise on every record",
}


def _noise(parts: Parts, protect: PlainProtect) -> Iterator[Problem]:
    """What holds for the noise columns of every method."""
    if parts.complete and not parts.noise:
        yield (
            ("columns",),
            "no column has do: noise, so there is nothing to protect with noise.",
            "Declare at least one.",
        )
    for name, column in parts.noise.items():
        if column.transform is not None and not isinstance(protect, ProtectVectors):
            what = f"transform is for the order of dp-mdav; {protect.method} has none."
            yield ("columns", name, "transform"), what, "Remove it."
        if column.atoms and not isinstance(protect, Protect):
            yield (
                ("columns", name, "atoms"),
                f"atoms are for methods that work column by column: {_NO_ATOMS[protect.method]}.",
                ("Remove them, or use idp-cbls, idp-ls or dp-um."),
            )
    if isinstance(protect, ProtectAlike):
        yield from _sizes(parts, Alike(protect.k, protect.blocks))
        return
    for name in protect.weights:
        if parts.complete and name not in parts.noise:
            yield ("protect", "weights", name), f"'{name}' is not a column with do: noise.", "Remove the weight."
    if parts.complete and len(parts.noise) == 1 and protect.weights:
        yield ("protect", "weights"), "weights share epsilon between several columns; there is one.", "Remove them."
    if parts.noise:
        shares = split_epsilon(protect, parts.noise)
        for name, share in shares.items():
            yield from _grid(parts, name, protect, share)
        if isinstance(protect, ProtectVectors) and all(share.nano for share in shares.values()):
            yield from _sizes(parts, order_of(protect, parts.noise))


def _sizes(parts: Parts, spec: Insensitive | Alike) -> Iterator[Problem]:
    """Sums and noise of the columns together that could leave 64 bits: for as many rows as the policy says there are at least."""
    try:
        widths = [column.exact_grid.width for column in parts.noise.values()]
    except ReleasePipelineError:
        return  # reported by _columns
    if not widths or spec.k < (STATISTICS[spec.statistic][0].least_k if isinstance(spec, Insensitive) else 1):
        return
    try:
        check_vector_sizes(widths, spec, clusters=max(_least_rows(parts, spec.k) // spec.k, 1))
    except ReleasePipelineError as error:
        yield ("protect",), error.what, error.remedy


def _least_rows(parts: Parts, k: int | None) -> int:
    """How many records there are at least to cut into clusters: those of the largest part where they are parted."""
    rows = (parts.gates.min_rows if parts.gates else None) or 2 * (k or 1)
    return -(-rows // ((parts.protect.partitions if parts.protect else None) or 1))


def _grid(parts: Parts, name: str, protect: PlainProtect, share: Epsilon) -> Iterator[Problem]:
    """Noise of a column that could leave 64 bits with as many rows as the policy says there are at least: with more rows it is
    not less, so that no release could be made."""
    if share.nano == 0:
        yield ("protect", "epsilon"), f"nothing of epsilon is left for '{name}'.", "Use a larger epsilon or other weights."
        return
    try:
        grid = parts.noise[name].exact_grid
    except ReleasePipelineError:
        return  # reported by _columns
    if not isinstance(protect, Protect):
        try:
            scales_for(np.array([grid.width]), share)
        except ReleasePipelineError as error:
            yield ("columns", name, "grid"), error.what, error.remedy
        return
    try:
        rows = _least_rows(parts, protect.k)
        check_sizes(method=protect.method, k=protect.k, grid=grid, epsilon=share, scope=protect.scope, records=rows)
    except ReleasePipelineError as error:
        if error.where != "k":
            yield ("columns", name, "grid"), error.what, error.remedy
        elif protect.k is not None and protect.method != "laplace":
            yield ("protect", "k"), error.what, error.remedy


def _columns(parts: Parts) -> Iterator[Problem]:
    for name, column in parts.columns.items():
        here: Path = ("columns", name)
        if isinstance(column, NoiseColumn):
            try:
                grid = column.exact_grid
            except ReleasePipelineError as error:
                yield (*here, "grid"), error.what, error.remedy
                continue
            if not isinstance(column.missing, str) and not grid.lo <= column.missing.fill <= grid.hi:
                yield (*here, "missing"), "the fill lies outside the domain.", "Choose a number inside it."
            try:
                grid.units_of(column.atoms)
            except ReleasePipelineError as error:
                yield (*here, "atoms"), error.what, error.remedy
            if len(column.atoms) > MOST_ATOMS:
                what = f"there are {len(column.atoms)} atoms, and a column has {MOST_ATOMS} at the most."
                yield (*here, "atoms"), what, "Name those that readers count."
        elif (
            isinstance(column, KeepColumn)
            and isinstance(column.missing, MissingCategory)
            and column.missing.category not in column.values
        ):
            yield (*here, "missing"), "the category for missing entries is not among the values.", "Add it to values."


def _expectations(parts: Parts) -> Iterator[Problem]:
    release_column = parts.source.release_column if parts.source else None
    yield from find_idle_and_unknown(
        parts.expect, parts.columns, names=parts.names, dropped=parts.drop, release_column=release_column
    )


def _suppress(parts: Parts) -> Iterator[Problem]:
    if isinstance(parts.protect, ProtectClasses):
        yield from _suppress_classes(parts, parts.protect)
        return
    if isinstance(parts.suppress, SuppressClasses):
        if parts.protect is not None:
            what = f"quasi_groups_below is missing: {parts.protect.method} suppresses small groups; the rest is for k-epsilon."
            yield ("suppress",), what, "Write {quasi_groups_below: 5, at_most: 5%} with the numbers you mean."
        return
    if parts.suppress is not None and isinstance(parts.protect, ProtectVectors):
        what = "dp-mdav suppresses nothing: which records were dropped would be covered by no claim."
        yield ("suppress",), what, "Remove it."
        return
    kept = [column for column in parts.kept.values() if column.role == "quasi"]
    if parts.suppress is not None and parts.complete and not kept:
        yield (
            ("suppress",),
            "there are no groups to suppress: no quasi-identifier is released.",
            "Remove suppress, or keep a column of role quasi.",
        )


def _suppress_classes(parts: Parts, protect: ProtectClasses) -> Iterator[Problem]:
    rule = parts.suppress
    if isinstance(rule, Suppress):
        what = "the classes of k-epsilon have k records already; quasi_groups_below is for other methods."
        yield ("suppress", "quasi_groups_below"), what, "Write grouping_at_most, confidence and at_most."
    elif rule is not None and protect.grouping == "mondrian" and rule.grouping_at_most:
        what = "mondrian cuts only where both parts are large enough, and drops nobody."
        yield ("suppress", "grouping_at_most"), what, "Remove it."


def _gates(parts: Parts) -> Iterator[Problem]:
    if parts.gates is None:
        return
    if parts.gates.min_rows is not None and parts.protect and parts.protect.k and parts.gates.min_rows < 2 * parts.protect.k:
        yield (
            ("gates", "min_rows"),
            f"min_rows is below 2 k = {2 * parts.protect.k}.",
            "Fewer records than two clusters are never released: raise it.",
        )
    if parts.gates.differencing_below is not None and parts.releases == "once":
        what = "there is one release, and nothing to compare it with."
        yield ("gates", "differencing_below"), what, "Remove differencing_below."
    elif parts.gates.differencing_below and parts.person == "each-row":
        what = "each row is a person of its own, so nobody can be seen to join or leave."
        yield ("gates", "differencing_below"), what, "Name the person's column, or set differencing_below to 0."
    if parts.gates.relative_error and parts.protect is not None and not isinstance(parts.protect, ProtectClasses):
        what = "relative errors are expected within the classes of k-epsilon; this method has none."
        yield ("gates", "relative_error"), what, "Use expected_error."
    clamping = find_clamping(parts.columns)
    if isinstance(parts.gates.clamped_at_most, dict):
        for name in parts.gates.clamped_at_most:
            if parts.complete and name not in clamping:
                yield ("gates", "clamped_at_most", name), f"'{name}' is not a column with outside: clamp.", "Remove it."
    elif parts.gates.clamped_at_most is not None and parts.complete and not clamping:
        yield ("gates", "clamped_at_most"), "no column has outside: clamp.", "Remove it."
    yield from _gates_of_shape(parts, parts.gates)
    for gate, limits in (
        ("expected_error", parts.gates.expected_error),
        ("relative_error", parts.gates.relative_error),
        ("atom_share", parts.gates.atom_share),
        ("ks", parts.gates.ks),
    ):
        for name in limits:
            if parts.complete and name not in parts.noise:
                yield ("gates", gate, name), f"'{name}' is not a column with do: noise.", "Remove it."


def _gates_of_shape(parts: Parts, gates: Gates) -> Iterator[Problem]:
    """Limits on what becomes of a column's distribution: with noise that can be simulated before the charge, and at atoms that
    are declared."""
    for gate in ("atom_share", "ks"):
        if getattr(gates, gate) and isinstance(parts.protect, ProtectClasses):
            what = "k-epsilon expects errors from closed formulas and simulates no released column before the charge."
            yield ("gates", gate), what, "Remove it, or use expected_error or relative_error."
    for name in gates.atom_share:
        if name in parts.noise and not parts.noise[name].atoms:
            what = f"'{name}' declares no atoms."
            yield ("gates", "atom_share", name), what, "Declare them with the column, like atoms: [0], or remove the limit."


def _group_gates(parts: Parts) -> Iterator[Problem]:
    """Limits on groups need released quasi-identifiers that make groups; those on a column's values, a confidential one."""
    if parts.gates is None or not parts.complete:
        return
    makes_groups = any(column.role == "quasi" for column in (parts.kept | parts.generalised).values())
    if isinstance(parts.protect, ProtectAlike):
        makes_groups = makes_groups or any(column.role == "quasi" for column in parts.noise.values())
    for gate, limit in parts.gates.of_groups.items():
        if not makes_groups:
            yield ("gates", gate), "no quasi-identifier is released as it is or coarser, so there are no groups.", "Remove it."
            continue
        for name in limit:
            column = (parts.kept | parts.noise).get(name)
            if column is None or column.role != "confidential":
                yield ("gates", gate, name), f"'{name}' is not a released column with role: confidential.", "Remove it."
            elif gate == "l_diversity" and name in parts.kept and parts.gates.l_diversity[name] > len(parts.kept[name].values):
                what = f"'{name}' has {len(parts.kept[name].values)} declared values, so that no group can have so many."
                yield ("gates", gate, name), what, "Lower it."
            elif gate == "l_diversity" and name in parts.noise:
                what = f"'{name}' gets noise, so that different values of it say nothing."
                yield ("gates", gate, name), what, "Use t_closeness, or remove it."


def _audit(parts: Parts) -> Iterator[Problem]:
    """What a model is to predict must be released, and be a number or an entry as the column is."""
    for name, target in parts.audit.predict.items() if parts.audit is not None and parts.complete else ():
        place = ("audit", "predict", name)
        if name in parts.noise:
            low, high = parts.noise[name].domain
            if target.above is None:
                yield (*place, "equals"), f"'{name}' is a column of numbers.", "Say above: NUMBER."
            elif not low <= target.above < high:
                yield (*place, "above"), "it is outside the column's domain, so that nothing would be left to tell.", "Change it."
        elif name in parts.kept:
            if target.equals is None:
                yield (*place, "above"), f"'{name}' is a column of entries.", "Say equals: ENTRY."
            elif str(target.equals) not in {str(value) for value in parts.kept[name].values}:
                yield (*place, "equals"), "it is none of the column's declared values.", "Name one of them."
        else:
            yield place, f"'{name}' is not a released column with do: noise or keep.", "Remove it."
