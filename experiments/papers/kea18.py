"""KEA18: what epsilon and k do to the error, to linking and to what must be suppressed, with OLA's classes and with Mondrian's.

**(k,epsilon)-anonymity is not differential privacy**, nor individual differential privacy. Epsilon is here of
*indistinguishability within a class*: any two records of a class could have given one released number with probabilities within
a factor e^epsilon, for discrete Laplace noise of scale ceil(diam / epsilon). diam is the greatest less the least number of the
class. Classes, scales and what is suppressed are read off the data, and nothing bounds what a changed record does to them.

UCI Adult, 32,561 records; age, sex, race and marital status are generalised, and a height is masked. Ages have the paper's
Table I: years, 2, 4, 8 years, nothing. Adult has no heights, so they are made up: normal, by sex and age, in whole millimetres,
domain 1 to 2.5 m, the same in every run; absolute risks cannot be compared with the paper's. `ola` gives a column one level of
its hierarchy in all records: the node of least loss among those where at most 5% of the records are in classes below k, and
these are dropped. `mondrian` recodes class by class and drops nobody; age is cut between any two years.

- **Error**: the mean over records in classes of (released - original) / original, without its sign: `measured_error` after
  numbers were moved back into the domain, `expected_error` by the closed form before that, `global_error` the closed form for
  noise by the diameter of the whole table. `mean_error` is that of one who takes the class's mean for each height.
- **Linking risk** (`linking`): of a released record 1/|G| if its own original is among those nearest to it in its class, G,
  else 0; the mean over records in classes. The attacker knows everybody's exact height and class. `chance`, classes / records,
  is the risk of a guess. `linking_left` is of the records that confidence leaves.
- **Suppression by confidence** (`exposed`, `left_too_small`): a record goes if some of its class's originals are in the box that
  holds its original with 99% confidence, and fewer than k; then what is left of classes with fewer than k. Shares of all records.
- **Information loss** (`penalty`): the normalised certainty penalty, (values that occur and that the label stands for - 1) /
  (values that occur - 1), mean over columns and over records in classes; in `penalty_all` a dropped record counts as 1. `node`
  has the levels that OLA chose, and its own loss, the mean over columns of level / (levels - 1).

Left out: figures 1, 2 (uniform noise), 7 and 8 (times), registers of voters, which name people, and (epsilon, delta).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from experiments.papers.reporting import OURS, Chapter, Claim, divide, divide_steps, pick, spread_out, write_table
from experiments.papers.runs import RUN, Setting
from experiments.papers.tables import Numbers, draw_normal, read_hierarchy, read_table
from release_pipeline.mechanisms import Epsilon, Grid, Hierarchy
from release_pipeline.mechanisms.clusters.cuts import Cuts, cut_classes
from release_pipeline.mechanisms.clusters.lattice import Generalisation, search_lattice
from release_pipeline.mechanisms.columns.class_noise import (
    add_class_noise,
    class_diameters,
    class_ends,
    class_scales,
    expect_relative_errors,
)
from release_pipeline.mechanisms.risk.standing_out import confidence_widths, find_exposed, find_small_classes

QUASI = ("age", "sex", "race", "marital_status")
AGE_LEVELS, OLDEST = (2, 4, 8), 99  # years that a label of each level stands for: the paper's Table I
AGE = QUASI.index("age")
GROUPINGS = ("ola", "mondrian")
KS = (2, 5, 10, 20, 50, 100)
EPSILONS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50", "100")
SUPPRESSED_AT_MOST = Fraction(1, 20)
CONFIDENCE = Decimal("0.99")
RUNS = 10
NEEDS = ("adult", *QUASI[1:])
PAPER = "KEA18"
LINKED, SUPPRESSED, ERROR_AT = 0.05, 0.02, 0.0255  # bounds of the paper; its error is 2.5%
LARGE = 5.0  # epsilon from which on suppression is compared
EXCHANGED = 2.0  # tests/oracles/test_confidence.py has the counterexample
QUICK_KS, QUICK_EPSILONS, QUICK_RUNS = (2, 5, 20), ("0.01", "5", "20", "100"), 3  # where counts are none or not few
QUICK_MONDRIAN = (("mondrian", 20, "5"),)  # one: each process that cuts classes compiles for four seconds before

DOMAIN, STEP = (1000, 2500), 1  # millimetres
GRID = Grid.declare(DOMAIN, STEP)
HEIGHTS = {  # sex: (the first age of the band, mean), and the standard deviation of all bands
    "Male": (((0, 1770), (30, 1765), (50, 1750), (70, 1725)), 72),
    "Female": (((0, 1635), (30, 1630), (50, 1615), (70, 1590)), 66),
}

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class People:
    """The table as numbers: of each quasi-identifier the place of the value in its hierarchy, ages in years, heights in
    millimetres and in grid units."""

    codes: Ints
    hierarchies: tuple[Hierarchy, ...]
    age: Ints
    heights: Numbers
    units: Ints

    @property
    def numbers(self) -> Ints:
        """The quasi-identifiers with age in years."""
        return np.column_stack([self.age if place == AGE else self.codes[:, place] for place in range(len(QUASI))])


@dataclass(frozen=True, slots=True)
class Grouped:
    """The class of each record, -1 where it was dropped, and for each record and column how many of the values that occur in the
    table its label stands for."""

    group: Ints
    covered: Ints


def list_settings(*, quick: bool) -> list[Setting]:
    """Every grouping with every k and epsilon; a quick run has Mondrian's once."""
    ks, runs = (QUICK_KS, QUICK_RUNS) if quick else (KS, RUNS)
    ola = [("ola", k, epsilon) for k in ks for epsilon in (QUICK_EPSILONS if quick else EPSILONS)]
    cut = QUICK_MONDRIAN if quick else tuple(("mondrian", k, epsilon) for _, k, epsilon in ola)
    return [
        *(Setting.of("noise", runs, grouping=grouping, k=k, epsilon=epsilon) for grouping, k, epsilon in (*ola, *cut)),
        *(Setting.of("grouping", 1, grouping=name, k=k) for name in (("ola",) if quick else GROUPINGS) for k in ks),
        *(Setting.of("node", 1, k=k) for k in ks),
    ]


def measure(data: Path, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """One setting in all of its runs."""
    people, k = read_people(data), setting.number("k")
    if setting.kind == "noise":
        return _measure_noise(people, group_people(data, setting.text("grouping"), k).group, setting, secrets)
    if setting.kind == "grouping":
        return [_measure_grouping(people, group_people(data, setting.text("grouping"), k))]
    node = _search(people, k)
    return [{"loss": node.loss, **dict(zip(QUASI, map(float, node.levels), strict=True))}]


@lru_cache(maxsize=1)
def read_people(data: Path) -> People:
    """Adult with made-up heights."""
    table = read_table(data, "adult")
    hierarchies = (make_ages(), *(read_hierarchy(data, name) for name in QUASI if name != "age"))
    codes = np.column_stack([hierarchy.encode(table[name]) for name, hierarchy in zip(QUASI, hierarchies, strict=True)])
    age = np.array(table["age"], dtype=np.int64)
    heights = draw_heights(age, np.array(table["sex"], dtype=object))
    return People(codes, hierarchies, age, heights, GRID.quantise(heights))


def make_ages() -> Hierarchy:
    """Years, intervals of 2, 4 and 8 years, and nothing at all: the paper's Table I."""
    return Hierarchy.of([(str(a), *(f"{a - a % w}-{a - a % w + w - 1}" for w in AGE_LEVELS), "*") for a in range(OLDEST + 1)])


def draw_heights(age: Ints, sex: npt.NDArray[np.object_]) -> Numbers:
    """Made-up heights in whole millimetres; the same for the same ages and sexes."""
    mean, deviation = np.zeros(len(age)), np.zeros(len(age))
    for which, (bands, spread) in HEIGHTS.items():
        mine = sex == which
        starts, means = zip(*bands, strict=True)
        mean[mine] = np.array(means)[np.searchsorted(starts, age[mine], side="right") - 1]
        deviation[mine] = spread
    return np.clip(np.rint(mean + deviation * draw_normal(len(age), "kea18", "heights")), *DOMAIN)


@lru_cache(maxsize=32)
def group_people(data: Path, grouping: str, k: int) -> Grouped:
    """The classes that this grouping makes of the table."""
    people = read_people(data)
    occurring = [np.unique(column) for column in people.codes.T]
    if grouping == "ola":
        node = _search(people, k)
        levels = np.tile(np.array(node.levels, dtype=np.int64), (len(people.age), 1))
        return Grouped(node.group, _count_covered(people, levels, occurring))
    cuts = _cut(people, k)
    levels = cuts.level[cuts.label]
    covered = _count_covered(people, np.maximum(levels, 0), occurring)
    years = np.unique(people.age)
    low, high = class_ends(people.age, cuts.label)
    covered[:, AGE] = (np.searchsorted(years, high, side="right") - np.searchsorted(years, low))[cuts.label]
    return Grouped(cuts.label, covered)


def _search(people: People, k: int) -> Generalisation:
    return search_lattice(people.codes, people.hierarchies, k, int(SUPPRESSED_AT_MOST * len(people.codes)))


def _cut(people: People, k: int) -> Cuts:
    labelled = {place: hierarchy for place, hierarchy in enumerate(people.hierarchies) if place != AGE}
    return cut_classes(people.numbers, k, hierarchies=labelled)


def _count_covered(people: People, levels: Ints, occurring: Sequence[Ints]) -> Ints:
    """For each record and column the occurring values that share its label on this level."""
    covered = np.empty_like(people.codes)
    for place, (hierarchy, values) in enumerate(zip(people.hierarchies, occurring, strict=True)):
        own = hierarchy.codes[levels[:, place], people.codes[:, place]]
        counts = np.zeros((hierarchy.levels, len(hierarchy.values)), dtype=np.int64)
        for level in range(hierarchy.levels):
            counts[level] = np.bincount(hierarchy.codes[level, values], minlength=len(hierarchy.values))
        covered[:, place] = counts[levels[:, place], own]
    return covered


def penalise(people: People, covered: Ints) -> Numbers:
    """The normalised certainty penalty of each record in each column: (values its label stands for - 1) / (values that occur
    - 1), 0 where its own is published and 1 where nothing is told."""
    occurring = np.array([len(np.unique(column)) for column in people.codes.T])
    return (covered - 1) / (occurring - 1)


def _measure_grouping(people: People, found: Grouped) -> dict[str, float]:
    """`penalty` is the mean over columns and records in classes (by column after it), `penalty_all` that over all records, 1 for
    those that are dropped. `same` is the share of records in classes that have one height only, which is published exactly;
    `mean_error` the relative error of one who takes the mean of the class for each height."""
    group, kept = found.group[found.group >= 0], found.group >= 0
    by_column = penalise(people, found.covered)
    penalty = by_column.mean(axis=1)
    diameters, heights = class_diameters(people.units, found.group), people.heights[kept]
    means = np.bincount(group, weights=heights) / np.bincount(group)
    return {
        "classes": float(len(diameters)),
        "records": float(np.count_nonzero(kept)),
        "dropped": float(np.mean(~kept)),
        "penalty": float(penalty[kept].mean()),
        **{f"penalty_{name}": float(by_column[kept, place].mean()) for place, name in enumerate(QUASI)},
        "penalty_all": float(np.where(kept, penalty, 1.0).mean()),
        "same": float((diameters[group] == 0).mean()),
        "mean_error": float((np.abs(means[group] - heights) / heights).mean()),
    }


def _measure_noise(people: People, group: Ints, setting: Setting, secrets: Sequence[bytes]) -> list[dict[str, float]]:
    """Shares are of 1, not percent. `global_error` is the closed form for one scale in all classes, by the diameter of the whole
    table. `chance` is the linking risk of a guess, classes / records. `expected_error` is the closed
    form, before numbers are moved back into the domain, `measured_error` what a reader gets, after; both relative. `linking` is
    over all records in classes, `linking_left` over those that the confidence boxes leave, 0 where they leave none; `exposed` and
    `left_too_small` are what these suppress, of all records of the table."""
    q, kept, k = people.units, group >= 0, setting.number("k")
    scale = class_scales(q, group, Epsilon.of(setting.text("epsilon")))
    by_class, count = expect_relative_errors(people.heights, group, scale, STEP)
    together = np.where(kept, 0, -1)
    widest = class_scales(q, together, Epsilon.of(setting.text("epsilon")))
    [over_all], _ = expect_relative_errors(people.heights, together, widest, STEP)
    widths = confidence_widths([scale], CONFIDENCE)
    known = Known.of(q, group)
    found: list[dict[str, float]] = []
    for secret in secrets:
        noisy = add_class_noise(q, group, scale, GRID, secret=secret, context=("kea18", setting.key))
        exposed = find_exposed([q], [noisy], group, widths, k)
        small = find_small_classes(group, kept & ~exposed, k=k)
        linked, left = known.link(noisy), kept & ~exposed & ~small
        found.append(
            {
                "chance": len(scale) / int(np.count_nonzero(kept)),
                "expected_error": float(np.sum(by_class * count) / count.sum()),
                "global_error": float(over_all),
                "measured_error": float((np.abs(noisy - q) * STEP / people.heights)[kept].mean()),
                "linking": float(linked[kept].mean()),
                "linking_left": float(linked[left].mean()) if left.any() else 0.0,
                "exposed": float(exposed.mean()),
                "left_too_small": float(small.mean()),
            }
        )
    return found


@dataclass(frozen=True, slots=True)
class Known:
    """The originals of each class, sorted, as one who links knows them; and for each record how many there are below its own and
    how many not above it, in this order of all."""

    original: Ints
    group: Ints
    apart: int
    ordered: Ints
    below: Ints
    up_to: Ints

    @classmethod
    def of(cls, original: Ints, group: Ints) -> Known:
        """Originals with the class of each, -1 for none: such a record is not linked, and near to nobody."""
        apart = 8 * (int(np.abs(original).max(initial=0)) + 1)
        keys = group * apart + original
        ordered = np.sort(keys)
        return cls(original, group, apart, ordered, np.searchsorted(ordered, keys), np.searchsorted(ordered, keys, side="right"))

    def link(self, released: Ints) -> Numbers:
        """For each record 1/|G| if its own original is among the nearest originals G of its class, else 0; exactly.

        The measure of `privacy.risk.record_linkage`, of every record instead of a sample, for one column. The own original x is
        among those nearest to the released y if no original of the class lies strictly between x and its mirror image 2y - x,
        and G are those at these two.
        """
        mirror = np.clip(2 * released - self.original, -self.apart // 4, self.apart // 4)  # beyond all originals of the class
        keys = self.group * self.apart + mirror
        below, up_to = np.searchsorted(self.ordered, keys), np.searchsorted(self.ordered, keys, side="right")
        above = mirror > self.original
        between = np.where(above, below - self.up_to, self.below - up_to)
        at_ends = self.up_to - self.below + np.where(mirror == self.original, 0, up_to - below)
        return np.where((self.group >= 0) & (between <= 0), 1 / np.maximum(at_ends, 1), 0.0)


def report(tables: Mapping[str, pd.DataFrame]) -> Chapter:
    """What is said of it."""
    noise, groups = tables["noise"], tables["grouping"]
    noise = noise.assign(suppressed=noise["exposed"] + noise["left_too_small"])
    single = groups.droplevel(RUN)
    epsilon = noise.index.get_level_values("epsilon").astype(float)
    both = ["grouping", "k"]
    least = pick(noise["linking"].groupby(level=[*both, "epsilon"]).max().groupby(level=both).min())
    rough = spread_out(single["mean_error"], noise)
    useful = noise["measured_error"] < rough
    safe = useful & (noise["linking"] < LINKED) & (noise["suppressed"] < SUPPRESSED)
    works = safe[rough.notna()].groupby(level=[*both, "epsilon"]).all().groupby(level=both).max().astype(float)
    paper_setting = pick(pick(noise, grouping="ola"), k=5, epsilon="10")
    met = np.minimum(LINKED / paper_setting["linking"], ERROR_AT / paper_setting["measured_error"])
    left = noise[(epsilon >= LARGE) & (noise["linking_left"] > 0)]
    lost = single["penalty_all"]
    claims = [
        Claim("The error falls as epsilon grows.", PAPER, divide_steps(noise["measured_error"], "epsilon"),
              note="The error at one epsilon over that at the next", why="Where noise fills the domain, luck decides."),
        Claim("Noise by the class has less error than noise by the whole table.", PAPER,
              noise["global_error"] / noise["expected_error"], note="The one error over the other, closed forms"),
        Claim("OLA drops 1.67 to 4.80 percent of the records.", "KEA18, Table IV", 100 * pick(single["dropped"], grouping="ola"),
              1.665, 4.805, "Percent that is dropped", "With all ages in one class fewer records are left over."),
        Claim("A linking risk under 5% is reachable.", PAPER, LINKED / least,
              note="5% over the risk, at the epsilon of the least", why="It is no feat: a guess within the class does."),
        Claim("At k 5 and epsilon 10 less than 5% are linked, at an error of 2.5%.", PAPER, met,
              note="5% over the risk, or 2.5% over the error, whichever is less",
              why="The heights are made up here, and linking depends on them."),
        Claim("99%-confident k-anonymity suppresses under 2% for small epsilon.", PAPER, noise["suppressed"][epsilon <= 1],
              -inf, SUPPRESSED, "What is suppressed for epsilon up to 1"),
        Claim("There is an epsilon at which released numbers are nearer than the class's mean, linking is under 5% and "
              "suppression under 2%.", OURS, works, 0.5, note="1 where there is one for all runs, 0 where there is none",
              why="Where noise is small enough to be of use, it links and stands out."),
        Claim("(k,epsilon)-anonymity is at least as strong as k-anonymity and epsilon-differential privacy by themselves.", PAPER,
              pd.Series([EXCHANGED / 1.0], index=pd.Index(["{0, 10}"], name="class")), -inf, 1,
              "The log-ratio for two people exchanged in a class at epsilon 1, a counterexample that tests compute"),
        Claim("More k, less linking.", OURS, divide_steps(noise["linking"], "k"), note="The risk at one k over that at the next",
              why="Classes are nearly the same, and noise is not."),
        Claim("Who stands out is whom linking finds: without them the risk is lower.", OURS,
              left["linking"] / left["linking_left"], note=f"All over those that confidence leaves, epsilon {LARGE:g} on"),
        Claim("Mondrian loses less of the generalised columns than OLA at the same k, if a dropped record counts as lost.", OURS,
              divide(lost, "grouping", "ola", "mondrian"), note="OLA's penalty over Mondrian's"),
        Claim("Linking is likelier in Mondrian's classes than in OLA's at the same k.", OURS,
              divide(noise["linking"], "grouping", "mondrian", "ola"), note="Mondrian's risk over OLA's in smaller classes"),
    ]  # fmt: skip
    return Chapter(
        "KEA18: (k,epsilon)-anonymity with OLA and with Mondrian",
        claims,
        {
            "Classes by k": write_table(single.assign(size=single["records"] / single["classes"])),
            "The levels that OLA chose": write_table(tables["node"]),
            "Relative error": write_table(noise["measured_error"], "epsilon", "eps"),
            "Linking risk": write_table(noise["linking"], "epsilon", "eps"),
            "Suppressed by confidence": write_table(noise["suppressed"], "epsilon", "eps"),
        },
        ("Classes by k",),
    )  # fmt: skip
