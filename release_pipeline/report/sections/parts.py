"""The parts of a section of the internal report."""

from __future__ import annotations

from dataclasses import dataclass

from release_pipeline.formats.budgets import PopulationView
from release_pipeline.formats.internal_view import HierarchyView
from release_pipeline.pages.charts import Picture
from release_pipeline.pages.prose import Sentence

_MOST_OPEN = 24  # rows of a table that is open from the start
FAR = 0.1  # from which on the page calls a Kolmogorov-Smirnov distance, or a difference of correlations, large


@dataclass(frozen=True, slots=True)
class Table:
    """The figures of a section: the first cell of a row names it. Names in cells are `Name`s. `note`: a figure that belongs
    to no row. `picture`: the same figures drawn, with its `legend`."""

    caption: Sentence
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    picture: Picture | None = None
    legend: Sentence = ""

    @property
    def is_open(self) -> bool:
        """Return whether a reader sees it without opening it."""
        return self.picture is None and len(self.rows) <= _MOST_OPEN


@dataclass(frozen=True, slots=True)
class Section:
    """One question of the reviewers. `says`: the meaning of this release's figures. `sign`: what would be a bad one. `absent`:
    why there is nothing to show, and then there is nothing else; `settled`: whether it was stopped or not."""

    anchor: str
    title: str
    shows: str = ""
    read: str = ""
    sign: str = ""
    says: tuple[Sentence, ...] = ()
    tables: tuple[Table, ...] = ()
    absent: Sentence = ""
    settled: bool = False
    budget: PopulationView | None = None
    ladders: tuple[HierarchyView, ...] = ()
