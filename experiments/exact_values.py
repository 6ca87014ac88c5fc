"""Which released values have no noise, as far as a reader can guess: clusters of scale 0, measured on the demo's data.

Under iDP a cluster that no single change of a record would move gets no noise: with trimmed sums one whose records agree. Where
values are left where the noise put them such a mean is easily told, for it lies on the grid, and one with noise about once in k.
On the grid all values look alike, and a reader has to guess by how many rows share a value. The guesses here are made from
released rows, k and the declared domain alone:

    2k rows    the value stands in 2k rows or more
    inside     the same, but at no end of the domain, to which noise is moved back
    4k rows    inside, and in 4k rows or more
    0          the value is 0, which many people have in most columns, and stands in 2k rows or more

Of each guess: the share of the clusters with such a value that have it without noise; the share of the clusters without noise
that are so found, of those that the order restored left where they were; and how often the number of rows with a rightly guessed
value is within 2k of the number of records that have it.

`python -m experiments.exact_values` prints the figures of docs/measured.md, the same in every run.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from experiments.papers.reporting import write_rows
from release_pipeline.mechanisms.columns.methods import Statistics, add_noise, compute_statistics
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.operate.demo import find_demo_data, find_demo_policy
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import load_policy

SECRETS = 20
ON_GRID = 1e-6  # of a step: what a float may be off
GUESSES = ("2k rows", "inside", "4k rows", "0")

Ints = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Guess:
    """How a guess went, over all columns, waves and secrets: counts of clusters, and of values."""

    guessed: int = 0
    right: int = 0
    exact: int = 0
    values: int = 0
    counted: int = 0

    @property
    def words(self) -> list[str]:
        """Three shares; a dash where there is nothing to divide by."""
        pairs = ((self.right, self.guessed), (self.right, self.exact), (self.counted, self.values))
        return [f"{part / of:.0%}" if of else "-" for part, of in pairs]


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured with one kind of consistency. `exact`: the share of clusters without noise; `moved`: the share of those
    that the restored order moved; `on_grid`: the share of clusters without noise among those that lie on the grid where values
    are left where the noise put them."""

    consistency: str
    exact: float
    moved: float
    on_grid: float
    guesses: Mapping[str, Guess]


def measure(consistency: str, *, secrets: int = SECRETS) -> Found:
    """Every guess on every wave of the demo, with the method, k and epsilon of its policy."""
    policy = load_policy(find_demo_policy("rand-hie"))
    guesses = {name: Guess() for name in GUESSES}
    clusters = exact = kept = on_grid = content = 0
    for wave in policy.release_names:
        for name, part in _statistics_of(policy, wave, consistency).items():
            for number in range(secrets):
                free = _release(part, name, number, clamp=False)
                lies = np.abs(free - np.rint(free)) < ON_GRID
                on_grid, content = on_grid + int(lies.sum()), content + int((lies & (part.scale == 0)).sum())
                released = np.rint(_release(part, name, number)).astype(np.int64)
                still = (part.scale == 0) & (released * part.size == part.statistic)
                clusters, exact, kept = clusters + len(released), exact + int((part.scale == 0).sum()), kept + int(still.sum())
                _judge(guesses, part, released, still, _count_records(wave, name), k=policy.protect.k or 1)
    return Found(consistency, exact / clusters, 1 - kept / exact, content / on_grid, guesses)


def choose_values(values: Ints, rows: Ints, *, k: int, width: int, zero: int) -> dict[str, Chosen]:
    """Which of the released values, in grid units and with the numbers of their rows, each guess takes for ones without noise."""
    often = rows >= 2 * k
    inside = often & (values > 0) & (values < width)
    return {"2k rows": often, "inside": inside, "4k rows": inside & (rows >= 4 * k), "0": often & (values == zero)}


def _judge(guesses: Mapping[str, Guess], part: Statistics, released: Ints, still: Chosen, records: Ints, *, k: int) -> None:
    values, place = np.unique(released, return_inverse=True)
    rows = np.bincount(place, weights=part.size).astype(np.int64)
    true = np.bincount(place, weights=still) > 0  # by value: whether a cluster has it without noise
    near = np.abs(rows - records[values]) <= 2 * k
    zero = -int(part.grid.lo / part.grid.step)
    for name, chosen in choose_values(values, rows, k=k, width=part.grid.width, zero=zero).items():
        guess = guesses[name]
        guess.guessed += int(chosen[place].sum())
        guess.right += int((chosen[place] & still).sum())
        guess.exact += int(still.sum())
        guess.values += int((chosen & true).sum())
        guess.counted += int((chosen & true & near).sum())


def _statistics_of(policy: Policy, wave: str, consistency: str) -> dict[str, Statistics]:
    return {
        name: compute_statistics(
            _read_wave(wave)[name],
            grid=column.exact_grid,
            method=policy.protect.method,
            epsilon=policy.column_epsilon[name],
            k=policy.protect.k,
            scope=policy.protect.scope,
            consistency=consistency,
            atoms=column.exact_atoms,
            secret=_secret(0),
            context=(wave, name),
        )
        for name, column in policy.noise_columns.items()
    }


def _release(part: Statistics, name: str, number: int, *, clamp: bool = True) -> npt.NDArray[np.float64]:
    """The released value of each cluster in grid units."""
    released = add_noise(part, clamp=clamp, secret=_secret(number), context=(name,))
    return (released - float(part.grid.lo)) / float(part.grid.step)


@cache
def _count_records(wave: str, name: str) -> Ints:
    """How many records have each value of a column, in grid units."""
    grid = load_policy(find_demo_policy("rand-hie")).noise_columns[name].exact_grid
    return np.bincount(grid.quantise(_read_wave(wave)[name]), minlength=grid.width + 1)


@cache
def _read_wave(wave: str) -> dict[str, npt.NDArray[np.float64]]:
    """The masked columns of one wave of the demo."""
    policy = load_policy(find_demo_policy("rand-hie"))
    with find_demo_data().open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row[str(policy.source.release_column)] == wave]
    return {name: np.array([float(row[name]) for row in rows]) for name in policy.noise_columns}


def _secret(number: int) -> bytes:
    return number.to_bytes(SECRET_BYTES, "big")


def describe(found: Sequence[Found]) -> str:
    """A table in Markdown: a row for each guess and kind of consistency."""
    head = ["consistency", "guess", "have no noise", "of those without noise", "count within 2k"]
    rows = [[one.consistency, name, *guess.words] for one in found for name, guess in one.guesses.items()]
    lines = [
        f"{one.consistency}: {one.exact:.0%} of clusters have no noise; of these the restored order moves {one.moved:.0%}; "
        f"of clusters that lie on the grid without rounding {one.on_grid:.0%} have none."
        for one in found
    ]
    return "\n".join([write_rows(head, rows), "", *lines])


if __name__ == "__main__":
    print(describe([measure(consistency) for consistency in ("none", "isotonic")]))
