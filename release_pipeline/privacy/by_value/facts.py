"""What is public of a column before anything is counted, and what a stage of counts has measured."""

from __future__ import annotations

from dataclasses import dataclass

from release_pipeline.privacy.by_value.noise_laws import Noise
from release_pipeline.privacy.grid import IntArray


@dataclass(frozen=True, slots=True)
class Facts:
    """Declared facts, and how many records there are. Values are grid units in 0..width. `atoms`: those that many records may
    share. `centre`: where cells are finest. `labels`: how many reasons there are for a record to have no value; they
    stand behind the values, width + 1, width + 2, ..."""

    width: int
    records: int
    centre: int = 0
    atoms: tuple[int, ...] = ()
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Stage:
    """Noisy counts of cells: nothing else of the data is in them."""

    edges: IntArray
    counts: IntArray
    noise: Noise
