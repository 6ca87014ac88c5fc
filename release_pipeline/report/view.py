"""All that the public is told of a release, as a type: whatever is not a field of it cannot get into the package.

Texts are of the policy or written by us, numbers are declared or counts of released rows. There is no float: figures that are
computed from the data (errors, scales, exact losses) have no field to go to, and are refused.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from release_pipeline.policy.published import name_data
from release_pipeline.policy.typed import Plain
from release_pipeline.report.about import AboutView

BLOCKS_FILE = "data.blocks.csv"  # noisy counts of several columns together
SHORT = 10_000  # characters of any one text: no table of people fits


@dataclass(frozen=True, slots=True)
class MadeView:
    """How a column was made of other published ones: by what (sum, difference, ...), of which, and in words."""

    by: str
    of: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class CalibratedView:
    """Which published tables a column of weights was made of, and how far from them it is, in words."""

    to: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One released column. `noise`: how large the mean absolute noise of a value can be, in words, from declared facts alone;
    `law`: what is known of the law of that noise; `hierarchy`: what a generalised one was made coarser by,
    `levels` its levels in words, `level` the one of all records; `atoms`: declared values that readers count; `centre` and
    `tail`: of a column that was counted by value, where its cells are finest, and whether its tail was proved or trusted;
    `made`: how one was made of other published columns. `label` and `labels`: what it and its entries are called.
    `calibrated`: what weights were made of. `description`, `unit`, `question`: what else the policy says of it."""

    name: str
    role: str
    done: str
    type: str
    why: str
    domain: tuple[str, str] | None = None
    grid: str | None = None
    values: tuple[str, ...] = ()
    epsilon: str | None = None
    noise: str | None = None
    missing: str | None = None
    hierarchy: str | None = None
    levels: tuple[str, ...] = ()
    level: int | None = None
    law: str | None = None
    atoms: tuple[str, ...] = ()
    centre: str | None = None
    tail: str | None = None
    rho: str | None = None
    made: MadeView | None = None
    label: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    calibrated: CalibratedView | None = None
    description: str | None = None
    unit: str | None = None
    question: str | None = None

    @property
    def label_of(self) -> dict[str, str]:
        """The label of each entry that has one."""
        return dict(self.labels)


@dataclass(frozen=True, slots=True)
class LevelView:
    """A level of a table beside the rows: its number, how many cells it has, the law of the noise of each as a program reads it,
    and both in words."""

    level: int
    cells: int
    noise: str
    words: str


@dataclass(frozen=True, slots=True)
class WeightView:
    """The column that a table counts records by, or multiplies by: the least and the largest weight that it may have, as
    decimals."""

    column: str
    least: str
    largest: str


@dataclass(frozen=True, slots=True)
class TableView:
    """A table beside the rows. `sum`: the column that is added up, None where records are counted; `weight`: what each counts by;
    `having`: the masked column that counted records have a value in; `lacking`: what records without a value add to a sum, where
    there may be such; `epsilon`, `rho`: what it may lose for a person with all of their records; `step`: a step of its noise, as
    a decimal; `deep`: the column that has several levels."""

    name: str
    file: str
    by: tuple[str, ...]
    sum: str | None
    epsilon: str | None
    rho: str | None
    step: str
    levels: tuple[LevelView, ...]
    deep: str | None = None
    weight: WeightView | None = None
    having: str | None = None
    lacking: str | None = None


@dataclass(frozen=True, slots=True)
class SwappedView:
    """That the values of `columns` changed places at random, each column by itself, inside blocks of at least `k` people with the
    same entries in the columns `within`, and at least so many `records`; `words` says whose values a row has."""

    k: int
    records: int
    within: tuple[str, ...]
    columns: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True)
class LooksView:
    """How many looks at the data came before the charge, the day of the last, at what (`source`, `file`), and how many of them
    were runs that released nothing."""

    count: int
    last: str
    on: tuple[str, ...]
    runs: int = 0


@dataclass(frozen=True, slots=True)
class PublicView:
    """One release. `wider`: (scope, bound in words) of what the claim does not cover by itself. `diversity`: how many
    different values of every kept confidential column each class has, where that is promised (l). `hierarchies`: files and
    their rows. `delta`, `rho`: under zcdp, at which delta every epsilon holds, and what is spent. `counts`: the files with
    the noisy counts that values were made of. `tables`: those beside the rows. `parts`: what random parts of the records
    mean, in sentences. `values`: whether masked values lie `inside` their domain, or `anywhere`; `grid`: whether all of them
    are `on` their declared grid, or `off`. `analysis`: what the analyst's kit offers, in sentences. `statement`: the claim as
    one formal statement. `privacy_unit`: whose records it is about, a `person` or a `household`; `record_count`: where one may
    have several, whether how many is `protected` or `not protected`. `headline`: the claim as one number, where one holds for
    the whole package; `cannot_occur`: what the policy says of entries that no record has together. `looks`: those at
    the data that parameters were chosen by. `data_files`: of formats whose rows lie in several files, in how many. `about`: what
    the data are, as the policy declares it. `swap`: how values changed places, where they did."""

    release: str
    policy: str
    steward: str
    population: str
    published: str
    tool: str
    method: str
    method_words: str
    paper: str
    definition: str
    definition_words: str
    neighbours: str
    claim: str
    statement: str
    epsilon: str | None
    records_per_person: int
    scope: str
    wider: tuple[tuple[str, str], ...]
    k: int | None
    k_words: str
    anonymity_k: int | None
    consistency: str
    series_epsilon: str | None
    cap: str
    cap_unit: str
    population_spent: str
    rows_in: int
    rows_out: int
    cells_blanked: int
    suppression: str
    not_protected: tuple[str, ...]
    how_to_use: tuple[str, ...]
    columns: tuple[ColumnView, ...]
    formats: tuple[str, ...]
    policy_hash: str
    candidate_hash: str
    head_event: int
    head_hash: str
    head_first: str
    supersedes: str | None = None
    diversity: int | None = None
    hierarchies: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    parts: tuple[str, ...] = ()
    values: str = "inside"
    grid: str = "off"
    analysis: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    tables: tuple[TableView, ...] = ()
    delta: str | None = None
    rho: str | None = None
    privacy_unit: str = "person"
    record_count: str | None = None
    headline: str | None = None
    cannot_occur: tuple[str, ...] = ()
    looks: LooksView | None = None
    about: AboutView | None = None
    data_files: tuple[tuple[str, int], ...] = ()
    swap: SwappedView | None = None

    def __post_init__(self) -> None:
        check_public(dataclasses.asdict(self))

    @property
    def together(self) -> bool:
        """Whether several columns were counted together."""
        return BLOCKS_FILE in self.counts

    def name_data(self, form: str) -> list[str]:
        """The files that have the rows in a format."""
        return name_data(form, dict(self.data_files).get(form, 1))


def check_public(value: Plain) -> None:
    """Refuse what is neither a short text, a whole number nor nothing."""
    if isinstance(value, dict):
        for part in value.values():
            check_public(part)
    elif isinstance(value, list | tuple):
        for part in value:
            check_public(part)
    elif isinstance(value, str):
        if len(value) > SHORT:
            raise TypeError("a text of this length is not for the public view")
    elif value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise TypeError(f"a {type(value).__name__} is not for the public view")
