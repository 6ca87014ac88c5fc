"""Simulated releases: a policy tried on some records again and again with fresh noise, and how far
each release is from them.

Every draw goes through the strategy of the policy as a release does, from groups to suppression,
and is compared with the records by a few figures, all of them distances: none is a value of the
data. What they reveal is as confidential as the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.audit.audit import draw_attacked, without_reasons
from release_pipeline.audit.columns import compare_values
from release_pipeline.audit.gates import BLOCKED, NOBODYS, Gate
from release_pipeline.audit.gates import LINKED as LINKED_WORDS
from release_pipeline.audit.linkage import Rung, measure_ladder
from release_pipeline.audit.subgroups import LEAST
from release_pipeline.masking import RECORD, Strategy, Suppressed, find_strategy
from release_pipeline.masking.strategy import Progress, be_quiet, draw_release
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.utility import column_error, correlation_matrix, covariance_matrix, variance_of
from release_pipeline.mechanisms.noise import Context, NoiseStream, noise_stream
from release_pipeline.policy import Policy
from release_pipeline.policy.file.describe import keeps_linkage, propose_swap
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.rows.columns import Read, load_table, select_cells

MOST_GROUPS, MOST_LABELS = 3, 60
LINKED = 500  # records of one draw that linkage is tried on

Numbers = npt.NDArray[np.float64]
Groups = Mapping[str, tuple[IntArray, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Records:
    """Some records as stages have them, by column."""

    columns: Mapping[str, pa.Array]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(next(iter(self.columns.values())))

    def take(self, numbers: npt.NDArray[np.intp]) -> Records:
        """Some of them, in this order, with repetition."""
        return Records({name: column.take(pa.array(numbers)) for name, column in self.columns.items()})

    def read(self, table: str, columns: Sequence[str] | None, /, *, where: tuple[str, str] | None = None) -> pa.Table:
        """As a strategy reads them."""
        if table != "records":
            raise KeyError(table)
        return select_cells(pa.table(self.columns), columns, where)


@dataclass(frozen=True)
class Reference:
    """Figures of the records themselves, for the columns that every setting masks. `labels`: of the
    groups of each grouping, where they are those of other records."""

    records: Records
    columns: Mapping[str, NoiseColumn]
    groupings: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def resample(self, numbers: npt.NDArray[np.intp]) -> Reference:
        """That of some of the records, drawn again and again, with the same groups."""
        labels = {name: labels for name, (_, labels) in self.groups.items()}
        return Reference(self.records.take(numbers), self.columns, self.groupings, labels)

    @cached_property
    def seen(self) -> dict[str, Numbers]:
        """The numbers in their domain and on their grid."""
        return {name: column.coded_grid.snap(self.records.columns[name].to_numpy()) for name, column in self.columns.items()}

    @cached_property
    def variance(self) -> dict[str, float]:
        """Of those that have a value."""
        valued = {name: known(column, self.seen[name]) for name, column in self.columns.items()}
        return {name: variance_of(values) if len(values) else 0.0 for name, values in valued.items()}

    @cached_property
    def groups(self) -> Groups:
        """The place of each record's group, -1 where it has none, and the groups' labels, by the
        column that makes them."""
        return {name: group_by(self.records.columns[name], self.labels.get(name)) for name in self.groupings}

    @cached_property
    def means(self) -> dict[str, Numbers]:
        """The mean of each column, and then those of all groups."""
        return {name: list_means(column, self.seen[name], self.groups) for name, column in self.columns.items()}

    @cached_property
    def correlations(self) -> Numbers:
        """Those of all columns."""
        return correlate(list(self.columns.values()), [self.seen[name] for name in self.columns])


@dataclass(frozen=True, slots=True)
class Simulated:
    """What simulated releases were like, a figure for each draw. `columns`: of each its `error`
    (the mean squared difference over the variance), and how far its `mean` and that of the group
    which is furthest (`group-mean`) are off; `correlation`: how far those of two columns are off on
    average, NaN with one column; `suppressed`: the share of the records that lose a cell;
    `linkage`: of one draw; `refusal`: why no such release would be made."""

    draws: int
    columns: Mapping[str, Mapping[str, Numbers]] = field(default_factory=dict[str, Mapping[str, Numbers]])
    correlation: Numbers = field(default_factory=lambda: np.empty(0))
    suppressed: Numbers = field(default_factory=lambda: np.empty(0))
    linkage: tuple[Rung, ...] = ()
    refusal: str = ""


def simulate(
    policy: Policy,
    references: Sequence[Reference],
    *,
    secret: bytes,
    draws: int,
    with_linkage: bool = True,
    linked: Reference | None = None,
) -> Simulated:
    """So many simulated releases of a policy, each of the records of a reference, one after the
    other. The same secret gives the same draws. `linked`: whose release linkage is tried on, the
    first reference where none is given. It must have no record twice: no attacker could tell it
    from itself."""
    strategy = find_strategy(policy)
    grouped: tuple[Reference, Mapping[str, pa.Table]] | None = None

    def release(reference: Reference, *context: str | int) -> tuple[Suppressed, Read]:
        """A release, and what reads the records and tables that it was made of."""
        nonlocal grouped
        if grouped is None or grouped[0] is not reference or policy.parts > 1:
            made = strategy.group(reference.records.read, secret=secret, context=context, progress=be_quiet)
            grouped = reference, made.tables
        return draw_release(strategy, grouped[1], reference.records.read, secret=secret, context=context)

    def link(read: Read, table: pa.Table) -> tuple[Rung, ...]:
        return measure_ladder(strategy.compare(read, table), noise_stream(secret, "linkage"), sample=LINKED)

    compared: list[tuple[dict[str, dict[str, float]], float, float]] = []
    linkage: tuple[Rung, ...] = ()
    with_linkage = with_linkage and not policy.protect.is_synthetic
    for draw in range(draws):
        reference = references[draw % len(references)]
        suppressed, read = release(reference, "simulated", draw)
        if suppressed.obstacle:
            return Simulated(draw, refusal=suppressed.obstacle)
        table = load_table(suppressed.table)
        compared.append((*_compare(policy, reference, table), suppressed.share))
        if draw == 0 and with_linkage and (linked is None or linked is reference):
            linkage = link(read, table)
    if with_linkage and linked is not None and linked is not references[0]:
        suppressed, read = release(linked, "simulated", "linked")
        linkage = () if suppressed.obstacle else link(read, load_table(suppressed.table))
    columns, correlation, shares = zip(*compared, strict=True)
    return Simulated(
        draws,
        {
            name: {figure: np.array([one[name][figure] for one in columns]) for figure in figures}
            for name, figures in columns[0].items()
        },
        np.array(correlation),
        np.array(shares),
        linkage,
    )


def _compare(policy: Policy, reference: Reference, table: pa.Table) -> tuple[dict[str, dict[str, float]], float]:
    """The figures of every column, and of correlations."""
    records, nobodys = table.column(RECORD).to_numpy(), policy.rows_are_nobodys
    groups = {by: group_by(table.column(by), labels) for by, (_, labels) in reference.groups.items()}
    columns: dict[str, dict[str, float]] = {}
    released: list[Numbers] = []
    for name, column in reference.columns.items():
        numbers: Numbers = table.column(name).to_numpy()
        released.append(numbers)
        before = reference.seen[name] if nobodys else reference.seen[name][records]
        compared = compare_values(column, before, numbers, is_nobodys=nobodys)
        off = np.abs(list_means(column, numbers, groups) - reference.means[name])
        columns[name] = {
            "error": column_error(*compared, variance=reference.variance[name]),
            "mean": float(off[0]),
            "group-mean": float(np.nanmax(off[1:])) if np.isfinite(off[1:]).any() else np.nan,
        }
    if len(released) < 2:
        return columns, np.nan
    off = np.abs(correlate(list(reference.columns.values()), released) - reference.correlations)
    pairs = off[np.triu_indices(len(off), 1)]
    return columns, float(np.nanmean(pairs)) if np.isfinite(pairs).any() else 0.0


def list_groupings(policy: Policy, records: Records) -> tuple[str, ...]:
    """The columns whose groups are looked at: those of the policy's audit, or the first with few
    entries."""
    listed = [name for name in policy.listed_columns if name in records.columns]
    named = [name for name in policy.audit.groups if name in listed]
    few = [name for name in listed if len(pa.chunked_array([records.columns[name]]).unique()) <= MOST_LABELS]
    return tuple((named or few)[:MOST_GROUPS])


def known(column: NoiseColumn, numbers: Numbers) -> Numbers:
    """Those that are values."""
    return numbers[column.find_reasons(numbers) < 0] if column.reasons else numbers


def group_by(entries: pa.Array | pa.ChunkedArray, labels: tuple[str, ...] | None) -> tuple[IntArray, tuple[str, ...]]:
    """The place of each record's group among the labels, -1 for none; the labels are those that
    occur, in order, unless given."""
    whole = entries.combine_chunks() if isinstance(entries, pa.ChunkedArray) else entries
    texts = whole.cast(pa.string()).dictionary_encode()
    occurring = texts.dictionary.to_pylist()
    if labels is None:
        labels = tuple(sorted(occurring, key=lambda text: (len(text), text)))
    place = {label: at for at, label in enumerate(labels)}
    moved = np.array([*(place.get(text, -1) for text in occurring), -1], dtype=np.int64)
    return moved[texts.indices.fill_null(-1).to_numpy()], labels


def list_means(column: NoiseColumn, numbers: Numbers, groups: Groups) -> Numbers:
    """The mean of a column's values, and then those of all groups; NaN where there is no value, and
    of groups where fewer than ten have one."""
    values = known(column, numbers)
    own = without_reasons(column, numbers)
    return np.concatenate(
        [[float(np.mean(values)) if len(values) else np.nan], *(_mean_by(own, *one) for one in groups.values())]
    )


def _mean_by(numbers: Numbers, place: IntArray, labels: tuple[str, ...]) -> Numbers:
    use = (place >= 0) & ~np.isnan(numbers)
    count = np.bincount(place[use], minlength=len(labels))
    sums = np.bincount(place[use], numbers[use], minlength=len(labels))
    return np.divide(sums, count, out=np.full(len(labels), np.nan), where=count >= LEAST)


def correlate(columns: Sequence[NoiseColumn], numbers: Sequence[Numbers]) -> Numbers:
    """Correlations of the records that have a value in all columns."""
    there = np.ones(len(numbers[0]), dtype=np.bool_)
    for column, own in zip(columns, numbers, strict=True):
        if column.reasons:
            there &= column.find_reasons(own) < 0
    valued = list(numbers) if there.all() else [own[there] for own in numbers]
    return correlation_matrix(covariance_matrix(valued)) if len(valued[0]) else np.full((len(columns),) * 2, np.nan)


# How much an attacker who knows all released columns will link, by simulated releases and before
# budget is spent.
#
# These releases are never published: their noise is drawn with a secret that is none of a release's, and
# their linkage is compared with a limit of the policy. The figure of the release itself is
# measured afterwards and limits nothing, since a limit on it would choose the noise that is
# released (docs/decisions/0026-limits-by-criterion.md).


DRAWS = 3  # simulated releases; of a table that is attacked in a sample one, which hardly differs from the next
PURPOSE = "linkage"

Ladder: TypeAlias = tuple[Rung, ...]


def expect_linkage(policy: Policy, strategy: Strategy, read: Read, *, secret: bytes, progress: Progress) -> Ladder:
    """The ladder of the simulated release that links most, or of the first that is over the policy's limit.

    Empty where no simulated release has rows. The highest of the draws is judged: the release is one more draw, and exceeds all
    of them in one of four cases. All records are masked, and of many released rows a sample is linked, as the audit does: fewer
    masked records would link less, as their clusters are wider. The same records and method give the same figures.
    """
    worst: Ladder = ()
    grouped: Mapping[str, pa.Table] | None = None
    for draw in range(DRAWS):
        progress(f"linking a simulated release, {draw + 1} of {DRAWS} at most")
        context = (PURPOSE, draw)
        if grouped is None or policy.parts > 1:  # other parts are drawn each time
            grouped = strategy.group(read, secret=secret, context=context, progress=be_quiet).tables
        suppressed, of_draw = draw_release(strategy, grouped, read, secret=secret, context=context)
        released = suppressed.table  # how much may be suppressed is judged elsewhere
        if not released.num_rows:
            continue

        def stream(*purpose: Context, of: tuple[Context, ...] = context) -> NoiseStream:
            return noise_stream(secret, *of, *purpose)

        compared = strategy.compare(of_draw, released)
        attacked = draw_attacked(compared, stream)
        ladder = measure_ladder(attacked, stream("linked"))
        if not worst or ladder[-1].linked.value > worst[-1].linked.value:
            worst = ladder
        if worst[-1].linked.value > float(policy.gates.linkage or 0) or attacked is not compared:
            break
    return worst


def needs_no_draws(policy: Policy) -> bool:
    """Whether the policy sets no limit on linkage, or one that its method keeps for whatever records."""
    return policy.gates.linkage is None or keeps_linkage(policy, policy.gates.linkage)


def judge_linkage(policy: Policy, linked: float | None) -> list[Gate]:
    """The gate on linkage, where the policy sets one: on what the method promises, where that is enough, or else on what
    simulated releases linked, which fails where that is not known."""
    limit = policy.gates.linkage
    if limit is None:
        return []
    name = "linkage by all released columns"
    value, basis = np.nan if linked is None else linked, LINKED_WORDS
    if policy.protect.is_synthetic:
        value, basis = 0.0, NOBODYS
    elif policy.swap is not None and keeps_linkage(policy, limit):
        name, value, basis = "linkage of one swapped value", 1 / policy.swap.k, BLOCKED
    return [Gate(name, value, float(limit), basis=basis)]


def explain_linkage(policy: Policy, ladder: Ladder) -> str:
    """Which columns link more than the policy allows, and what to do, without a figure of the data."""
    if policy.gates.linkage is None or not ladder:
        return ""
    sentences: list[str] = []
    for rung in ladder[:-1]:
        links = "more than that" if rung.linked.value > float(policy.gates.linkage) else "no more than that"
        known = (
            f"{' and '.join(rung.columns)}{' too' if ladder[0].masked == 0 else ''}" if rung.masked else "only the kept columns"
        )
        sentences.append(f"Knowing {known} links {links}.")
    sentences += [
        propose_swap(policy, policy.gates.linkage),
        "Release fewer columns, coarser groups, or synthetic rows (dp-table).",
    ]
    return " ".join(filter(None, sentences))
