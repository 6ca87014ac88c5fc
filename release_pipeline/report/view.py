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
from release_pipeline.report.card import ColumnView, SwappedView, TableView

BLOCKS_FILE = "data.blocks.csv"  # noisy counts of several columns together
SHORT = 10_000  # characters of any one text: no table of people fits


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
    """One release. `wider`: (scope, bound in words) of what the claim does not cover by itself. `hierarchies`: files and
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
    about: AboutView
    supersedes: str | None = None
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
