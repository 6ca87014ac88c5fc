"""What a section of the internal report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from release_pipeline.report.budgets import PopulationView
from release_pipeline.report.charts.drawing import Picture
from release_pipeline.report.internal_view import HierarchyView
from release_pipeline.report.prose import Sentence
from release_pipeline.sentences import REVIEWERS

T = TypeVar("T")
_MOST_BESIDE = 5  # columns of a table
FAR = 0.1  # of a Kolmogorov-Smirnov distance, or of a correlation: what the page calls large


@dataclass(frozen=True, slots=True)
class Table:
    """The figures of a picture, for who does not see it: the first cell of a row names it. Names in cells are `Name`s. `note`: a
    figure that belongs to no row."""

    caption: Sentence
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    @property
    def is_broad(self) -> bool:
        """Whether it has more columns than there is room for beside another."""
        return len(self.head) > _MOST_BESIDE


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its caption and the table of its figures. `wide`: it keeps its size and scrolls in a box of its own."""

    picture: Picture
    caption: Sentence
    table: Table
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One question of the reviewers. `says`: what the figures of this release say. `sign`: what would be a bad one. `absent`: why
    there is nothing to show, and then there is nothing else; `settled`: whether it was stopped or not. `many`: small pictures
    side by side."""

    anchor: str
    title: str
    shows: str = ""
    read: str = ""
    sign: str = ""
    says: tuple[Sentence, ...] = ()
    figures: tuple[Figure, ...] = ()
    absent: Sentence = ""
    settled: bool = False
    budget: PopulationView | None = None
    ladders: tuple[HierarchyView, ...] = ()
    many: bool = False


def split(items: Sequence[T], most: int) -> list[tuple[T, ...]]:
    """Parts of at most so many, as even as can be: what one picture has room for."""
    parts = max(-(-len(items) // most), 1)
    return [tuple(items[len(items) * part // parts : len(items) * (part + 1) // parts]) for part in range(parts)]


def describe_part(part: int, parts: int) -> str:
    """Which of several pictures this is, if there are several."""
    return f" {REVIEWERS('section.part', part=part + 1, parts=parts)}" if parts > 1 else ""
