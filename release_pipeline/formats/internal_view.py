"""All that the internal report shows the reviewers of a candidate, or of a release that a gate stopped, as a type.

Figures here are computed against the confidential records: the page is for the reviewers and the auditor, and never published.
None is a figure that does not exist for this method, or was not requested."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean

from release_pipeline.formats.about import About, ColumnWords
from release_pipeline.formats.attack_views import CriterionView, NearView, RungView, ShareView
from release_pipeline.formats.budgets import PopulationView
from release_pipeline.mechanisms.basis.dates import Clock

Curve = tuple[tuple[float, float], ...]  # points (value, share of records at most that), ascending


@dataclass(frozen=True, slots=True)
class GateView:
    """A limit of the policy. `basis`: what the figure is computed from: the scales, or only the released table. `at_least`: the
    limit is a smallest value. `value` None: there is no figure, and the gate does not pass. `error_of`: the column whose error
    the gate limits, so that the limit can be shown with that error; empty where it limits something else. `is_proved`: the value
    is a bound for all possible records, and nothing was measured."""

    name: str
    value: float | None
    limit: float
    at_least: bool
    passed: bool
    basis: str
    error_of: str = ""
    is_proved: bool = False


@dataclass(frozen=True, slots=True)
class SpreadView:
    """Summary figures of a column: mean, standard deviation, and the quantiles at 1, 5, 25, 50, 75, 95 and 99 percent; `deciles`:
    at 10 and 90 percent."""

    mean: float
    deviation: float
    quantiles: tuple[float, ...]
    deciles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class AtomView:
    """A declared value that readers count, and the share of records that have it: in the original on its grid (None: too few to
    be shown), as released, and as simulated noise let expect it."""

    value: str
    original: float | None
    released: float
    expected: float | None


@dataclass(frozen=True, slots=True)
class NoiseColumnView:
    """One masked column. Errors are mean squares over the variance: 1 is no better than the mean for everybody. They compare with
    the values that the method saw, in the domain and on the grid. The effect of clamping before that: `clamped`, the share of
    records outside the domain, and `clamped_variance`, the mean square of how far they were moved over the variance of the raw
    values.

    `forecast`: the sentence of `check` about the noise only, before a release. `expected_*`: from the scales, with the range that
    should hold 99 of 100 releases of these data; None if there is no forecast. `parted`: the actual error is outside that range.
    `ks`: Kolmogorov-Smirnov distance (0..1), and its expected value; `wasserstein` in the column's unit. `clock`: its values are
    dates or times."""

    name: str
    role: str
    epsilon: str | None
    forecast: str
    expected_error: float | None
    expected_low: float | None
    expected_high: float | None
    actual_error: float
    mean_absolute_error: float
    partitioned: bool
    original: SpreadView
    released: SpreadView
    ks: float
    wasserstein: float
    original_curve: Curve
    released_curve: Curve
    clamped: float | None = None
    clamped_variance: float | None = None
    expected_ks: float | None = None
    atoms: tuple[AtomView, ...] = ()
    clock: Clock | None = None


@dataclass(frozen=True, slots=True)
class CorrelationView:
    """Correlations of the masked columns, in the original and as released, row by row; None where a column is constant."""

    names: tuple[str, ...]
    original: tuple[tuple[float | None, ...], ...]
    released: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True, slots=True)
class GroupMeanView:
    """The mean of one column in one group, original and synthetic; `off` over the standard deviation of the column."""

    by: str
    label: str
    column: str
    original: float
    released: float
    off: float
    records: int


@dataclass(frozen=True, slots=True)
class GroupMeansView:
    """The error of means of groups, on average; the same for records drawn again; and the worst of all that were
    `compared`."""

    mean: float
    by_chance: float
    compared: int
    worst: tuple[GroupMeanView, ...]


@dataclass(frozen=True, slots=True)
class PairDistance:
    """The distance of the table of two columns from the original table."""

    one: str
    other: str
    distance: float


@dataclass(frozen=True, slots=True)
class StructureView:
    """Synthetic rows compared with the original ones. Total variation distances (0 to 1): of the table of each column, and on
    average of the tables of one, two and three columns, each with that of records drawn again. Also the pairs with the largest
    distance, and means of groups."""

    columns: dict[str, float]
    columns_by_chance: float | None
    pairs: float | None
    pairs_by_chance: float | None
    worst_pairs: tuple[PairDistance, ...]
    triples: float | None
    triples_by_chance: float | None
    triples_tried: int
    group_means: GroupMeansView | None = None

    @property
    def means(self) -> tuple[tuple[int, float, float], ...]:
        """Return, for each number of columns of a table: that number, the mean distance of such tables, and the distance by
        chance."""
        means = (
            (1, fmean(self.columns.values()), self.columns_by_chance),
            (2, self.pairs, self.pairs_by_chance),
            (3, self.triples, self.triples_by_chance),
        )
        return tuple((count, value, chance) for count, value, chance in means if value is not None and chance is not None)


@dataclass(frozen=True, slots=True)
class ClosestView:
    """The distance of the nearest synthetic row from people that rows were made from, and from people they were made without."""

    median: float
    equal: ShareView | None
    control_median: float
    control_equal: ShareView | None


@dataclass(frozen=True, slots=True)
class ClassesView:
    """Groups of records that share their released quasi-identifiers. `bars`: (smallest size, largest size, number of groups).
    `diversity`: the fewest different values in a group, by confidential column. Risks of re-identification by somebody who knows
    the quasi-identifiers: prosecutor (knows that the person is in the table; at worst), journalist (knows the table that the
    release was drawn from; at worst). `least`: the limit that the policy or the method sets, 0 for none."""

    number: int
    smallest: int
    mean: float
    largest: int
    bars: tuple[tuple[int, int, int], ...]
    diversity: dict[str, int]
    prosecutor: float
    journalist: float
    quasi: tuple[str, ...] = ()
    least: int = 0


@dataclass(frozen=True, slots=True)
class Weighted:
    """Weighted mean and quartiles, and the unweighted mean (`plain`) of the records; None if no record has a weight."""

    mean: float | None
    plain: float | None
    low: float | None
    median: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class WeightedPair:
    """A column before and after."""

    original: Weighted
    released: Weighted


@dataclass(frozen=True, slots=True)
class PopulationRisk:
    """Estimates from a sample of so many records for the population that it was drawn from (`mechanisms.basis.samples`): how many
    records are unique by their released quasi-identifiers, how many of these are expected to be unique in the population, how
    many records somebody who knows the population is expected to identify correctly, and the largest risk of one record."""

    records: int
    sample_uniques: int
    population_uniques: float
    identified: float
    worst: float


@dataclass(frozen=True, slots=True)
class SampleView:
    """Figures of records with weights; `population` is None if no quasi-identifier is released."""

    weight: str
    weighted: dict[str, WeightedPair] = field(default_factory=dict[str, WeightedPair])
    population: PopulationRisk | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """The quality of a model of one target, learned from released and from original records: F-measures, 0 to 1."""

    model: str
    released: float
    original: float


@dataclass(frozen=True, slots=True)
class PredictionView:
    """The models of one target, all tested on the same original records. `guess`: the F-measure of answering yes for
    everybody."""

    models: tuple[Learned, ...]
    guess: float
    trained: int
    tested: int
    target: str = ""


@dataclass(frozen=True, slots=True)
class SubgroupColumn:
    """A column of one declared group: its means before and after, and the error of its own records. `expected`: the error
    forecast before the charge, by simulated noise or by the scales."""

    original: float | None
    released: float | None
    error: float | None
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class SubgroupView:
    """One group of a declared column: the number of its records, the number of records released as members of it, and its
    columns; without these it is too small to be measured."""

    label: str
    records: int
    released: int
    columns: dict[str, SubgroupColumn]


@dataclass(frozen=True, slots=True)
class SubgroupsView:
    """The groups by one declared column, worst served first. `whole`: the errors of all records, by column; `least`: the smallest
    number of records of a group that is measured."""

    by: str
    groups: tuple[SubgroupView, ...]
    whole: dict[str, float]
    least: int


@dataclass(frozen=True, slots=True)
class SuppressionView:
    """Suppression: records before and after, blanked cells, the share affected, the limit (None: none is set), and how many for
    each reason."""

    rows_in: int
    rows_out: int
    cells: int
    share: float
    limit: float | None
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class HierarchyView:
    """The levels of one column by name, from the value itself to the coarsest. `at`: the level of all records, or the mean of
    their levels; None if labels follow no levels."""

    column: str
    levels: tuple[str, ...]
    at: float | None


@dataclass(frozen=True, slots=True)
class LookView:
    """A trial on the data before the charge: the number of its event, when it was noted, who made it, whether by `mask`, by a
    `run` or on a file that they called `public`, and the settings compared."""

    event: int
    noted: str
    by: str
    on: str
    compared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SwapView:
    """The swapping of the values of `columns`: inside blocks of at least `k` people with the same entries in the `alike`
    columns. `blocks` and `smallest`: the number of blocks, and the records of the smallest; 0 before there are any."""

    k: int
    columns: tuple[str, ...]
    alike: tuple[str, ...]
    blocks: int = 0
    smallest: int = 0


@dataclass(frozen=True, slots=True)
class InternalView:
    """One candidate, or one release that gates stopped (`stopped_at`: "before the charge" or "after the charge"; figures that
    could not be measured are then empty). `decide`: what the reviewers must decide, one sentence each. `linkage_words`: what
    record linkage shows and what it does not. `released_range`: what happens to values that noise carries out of their domain.
    `rows_in`: the records for which `check` gave its forecasts, 0 without any. `generalises`: the policy makes columns coarser,
    and `has_weights`: records stand for others, whether or not the release came so far. `clusters`: records share values in
    groups of size k. `statement`: the claim as one formal statement; `scales`: what it assumes about the noise scales, if
    anything. `is_synthetic`: rows are synthetic; `structure` shows how they differ from the original ones, `nearest` what the row
    nearest to a person reveals. `swap`: values were swapped, so that a row does not belong to one person. `are_ranks`:
    `correlations` are Spearman's. `looks`: the trials on the data before the charge. `attacked`: how many released records were
    attacked and linked, of how many, where they are a sample. `linkage`: what somebody finds who knows all released columns;
    `linkage_ladder` shows it from the kept columns on. `criteria`: attacks by the criterion that they test; `before_charge`: they
    are on simulated releases, because the release was stopped before there was a table. `output_check`: the questions of an
    output checker, each with its answers."""

    release: str
    policy: str
    tool: str
    claim: str
    definition: str
    wider: tuple[tuple[str, str], ...]
    method_words: str
    candidate_hash_words: str
    stopped_at: str
    gates: tuple[GateView, ...]
    decide: tuple[str, ...]
    warnings: tuple[str, ...]
    columns: tuple[NoiseColumnView, ...]
    sse_paper: float | None
    linkage: ShareView | None
    linkage_chance: float
    linkage_words: str
    correlations: CorrelationView | None
    classes: ClassesView | None
    predictions: tuple[PredictionView, ...]
    prediction_words: str
    suppression: SuppressionView | None
    budget: PopulationView | None
    ladders: tuple[HierarchyView, ...]
    ladder_words: tuple[tuple[str, str], ...]
    released_range: str = ""
    rows_in: int = 0
    generalises: bool = False
    clusters: bool = False
    statement: str = ""
    scales: str = ""
    sample: SampleView | None = None
    has_weights: bool = False
    tables: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    subgroups: tuple[SubgroupsView, ...] = ()
    structure: StructureView | None = None
    closest: ClosestView | None = None
    nearest: NearView | None = None
    are_ranks: bool = False
    is_synthetic: bool = False
    looks: tuple[LookView, ...] = ()
    attacked: tuple[int, int] | None = None
    linkage_ladder: tuple[RungView, ...] = ()
    about: About | None = None
    before_charge: bool = False
    column_words: tuple[ColumnWords, ...] = ()
    criteria: tuple[CriterionView, ...] = ()
    swap: SwapView | None = None
    output_check: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def clocks(self) -> dict[str, Clock]:
        """Return the clock of each masked column of dates or times, by which its values are written."""
        return {column.name: column.clock for column in self.columns if column.clock is not None}

    @property
    def is_nobodys(self) -> bool:
        """Return whether no row is that of one record, so that errors are of ranks and strangers are the control group."""
        return self.is_synthetic or self.swap is not None
