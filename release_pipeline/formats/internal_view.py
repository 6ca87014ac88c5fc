"""All that the internal report shows the reviewers of a candidate, or of a release that a gate stopped, as a type.

Figures here are computed against the confidential records: the page is for the reviewers and the auditor, and never published.
None stands for a figure that does not exist for this method, or was not asked for."""

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
    """A limit of the policy. `basis`: what the figure is of: the scales, or the released table alone. `at_least`: the
    limit is a smallest value. `value` None: there is no figure, and the gate does not pass. `error_of`: the column whose
    error the gate limits, so that the limit can be shown with that error; empty where it limits something else. `is_proved`:
    the value is a bound that holds for whatever records, and nothing was measured."""

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
    """A column in numbers: mean, standard deviation, and the quantiles at 1, 5, 25, 50, 75, 95 and 99 percent; `deciles`: at 10
    and 90 percent."""

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
    """One masked column. Errors are mean squares over the variance: 1 is no better than the mean for everybody. They are the
    method's, against the values as it saw them, in the domain and on the grid. What clamping took before: `clamped`, the share of
    records that lay outside, and `clamped_variance`, the mean square of how far they were moved over the variance of the values
    as they came.

    `forecast`: what `check` says of the noise alone, before a release, in words. `expected_*`: from the scales, with the
    range in which 99 of 100 releases of these data should lie; None where nothing gives it. `parted`: the actual error lies
    outside of it. `ks`: Kolmogorov-Smirnov distance (0..1), and what was expected of it; `wasserstein` in the column's unit.
    `clock`: its values are dates or times."""

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
    """How far means of groups are off, on average, those of records drawn again, and the worst of so many `compared`."""

    mean: float
    by_chance: float
    compared: int
    worst: tuple[GroupMeanView, ...]


@dataclass(frozen=True, slots=True)
class PairDistance:
    """How far the table of two columns is from the original one."""

    one: str
    other: str
    distance: float


@dataclass(frozen=True, slots=True)
class StructureView:
    """Synthetic rows compared with the original ones. Total variation distances (0 to 1): of the table of each column, and on
    average of the tables of one, two and three columns, each with that of records drawn again. The pairs that are furthest off,
    and means of groups."""

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
        """How many columns a table has, the mean distance of such tables, and that by chance."""
        means = (
            (1, fmean(self.columns.values()), self.columns_by_chance),
            (2, self.pairs, self.pairs_by_chance),
            (3, self.triples, self.triples_by_chance),
        )
        return tuple((count, value, chance) for count, value, chance in means if value is not None and chance is not None)


@dataclass(frozen=True, slots=True)
class ClosestView:
    """How far the nearest synthetic row is from people that rows were made of, and from people that they were made without."""

    median: float
    equal: ShareView | None
    control_median: float
    control_equal: ShareView | None


@dataclass(frozen=True, slots=True)
class ClassesView:
    """Groups of records that share their released quasi-identifiers. `bars`: (smallest size, largest size, number of groups).
    `diversity`: the fewest different values in a group, by confidential column. Risks of re-identification, by somebody who knows
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
    """Mean and quartiles of what the records stand for, and the `plain` mean of the records; None where nothing has a weight."""

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
    """What a sample of so many records says of the population that it was drawn from (`mechanisms.basis.samples`): how many are
    alone with their released quasi-identifiers, how many of these are expected to be alone in the population, how many records
    somebody who knows the population is expected to identify rightly, and the largest risk of one record."""

    records: int
    sample_uniques: int
    population_uniques: float
    identified: float
    worst: float


@dataclass(frozen=True, slots=True)
class SampleView:
    """What records with weights stand for; `population` is None where no quasi-identifier is released."""

    weight: str
    weighted: dict[str, WeightedPair] = field(default_factory=dict[str, WeightedPair])
    population: PopulationRisk | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """What a model learns of one target, from released and from original records: F-measures, 0 to 1."""

    model: str
    released: float
    original: float


@dataclass(frozen=True, slots=True)
class PredictionView:
    """The models of one target, all tested on the same original records. `guess`: the F-measure of who says yes to everybody."""

    models: tuple[Learned, ...]
    guess: float
    trained: int
    tested: int
    target: str = ""


@dataclass(frozen=True, slots=True)
class SubgroupColumn:
    """A column of one declared group: its means before and after, and the error of its own records. `expected`: the error that
    simulated noise, or the scales, let expect of it before the charge."""

    original: float | None
    released: float | None
    error: float | None
    expected: float | None = None


@dataclass(frozen=True, slots=True)
class SubgroupView:
    """One group of a declared column: its records, those that are released as of it, and its columns; without these it is too
    small to be measured."""

    label: str
    records: int
    released: int
    columns: dict[str, SubgroupColumn]


@dataclass(frozen=True, slots=True)
class SubgroupsView:
    """The groups by one declared column, worst served first. `whole`: the errors of all records, by column; `least`: the fewest
    records of a group that is measured."""

    by: str
    groups: tuple[SubgroupView, ...]
    whole: dict[str, float]
    least: int


@dataclass(frozen=True, slots=True)
class SuppressionView:
    """What was left out: records before and after, blanked cells, the share touched, the limit (None: none is set), and how many
    for each reason."""

    rows_in: int
    rows_out: int
    cells: int
    share: float
    limit: float | None
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class HierarchyView:
    """The levels of one column in words, from the value itself to the coarsest. `at`: the level of all records, or the mean of
    their levels; None where labels follow no levels."""

    column: str
    levels: tuple[str, ...]
    at: float | None


@dataclass(frozen=True, slots=True)
class LookView:
    """A trial on the data before the charge: the number of its event, when it was noted, who made it, by `mask`, by a `run` or on
    a file that they called `public`, and the settings compared."""

    event: int
    noted: str
    by: str
    on: str
    compared: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SwapView:
    """How the values of `columns` changed places: inside blocks of at least `k` people with the same entries in the columns
    `alike`. `blocks` and `smallest`: how many blocks there are and how many records the smallest has, 0 before there are any."""

    k: int
    columns: tuple[str, ...]
    alike: tuple[str, ...]
    blocks: int = 0
    smallest: int = 0


@dataclass(frozen=True, slots=True)
class InternalView:
    """One candidate, or one release that gates stopped (`stopped_at`: "before the charge" or "after the charge"; then what could
    not be measured is empty). `decide`: what the reviewers must decide, one sentence each. `linkage_words`: what record
    linkage shows and what not. `released_range`: what became of values that the noise carried out of their domain. `rows_in`: the
    records for which `check` gave its forecasts, 0 where it was given none. `generalises`: the policy makes columns coarser,
    and `has_weights`: records stand for others, whether or not the release came so far. `clusters`: records share values in
    groups of a k. `statement`: the claim as one formal statement; `scales`: what it supposes of the noise scales, where it
    does. `is_synthetic`: rows are nobody's, and `structure` says how they differ from the original ones, `nearest` what the row
    nearest to a person reveals. `swap`: values changed places, so that a row is not one person's. `are_ranks`:
    `correlations` are Spearman's. `looks`: those at the data before the charge.
    `attacked`: how many released records were attacked and linked, of how many, where they are a sample. `linkage`: what somebody
    finds who knows all released columns; `linkage_ladder` has that from the kept columns on. `criteria`: attacks by the criterion
    that they are tried for; `before_charge`: these are of simulated releases, for it was stopped before there was a table.
    `output_check`: what an output checker asks, each with its answers."""

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
        """The clock of each masked column of dates or times, by which its values are written."""
        return {column.name: column.clock for column in self.columns if column.clock is not None}

    @property
    def is_nobodys(self) -> bool:
        """Whether no row is that of one record, so that errors are of ranks and strangers are the control group."""
        return self.is_synthetic or self.swap is not None
