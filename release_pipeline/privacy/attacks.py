"""Singling out, linking and inferring, each beside a control group: the three attacks of GEM23, by code of our own.

An attack alone tells little: whoever knows that most people have no capital gain infers it of anybody. GEM23 therefore attacks
people who are in the data and people who are not, and calls a risk what the first lose beyond the second. Their control group
was held out before anything was released. Here the released table is made of all records, and nobody was held out. So the
control group is drawn from the people of the table, and the attacker is given the released table without these people's own
rows.

What that counts is what the own row tells beyond what the rows of others tell. What it does not count: a person also had a share
in what happened to the others. The mean of a cluster from which a control person's row is taken out still has 1/k of that
person's value in it, a cut or a trimmed sum may lie where it does because of that person, and the risk found is too low by what
this tells. With noise that covers the whole table the difference is small; with small clusters and no noise it is not. Taking
rows out also thins the table, for targets and control group alike: by at most a third, and for singling out by half.

Nearness is GEM23's, that of Gower: numbers by their difference over the range of the released column, codes equal or not, added
up; a column without any range is no help to anybody. Rows that are equally near are all found (`neighbours`), and the attacker
takes any of them with the same chance, so that successes are expectations, numbers from 0 to 1. Everything is computed against
the originals: for a review, never for the public. Intervals are of the people drawn, not of the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.neighbours import Nearest, Neighbours
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions
from release_pipeline.privacy.shares import Difference, Share, difference_beyond, measure_share, subtract_shares

TARGETS = 1_000  # people attacked, at most, and as many in the control group
INFERRED = 500  # the same for inference, where each of them is attacked once for every column
PREDICATES = 1_000  # with which it is tried to single somebody out, at most
ATTEMPTS = 20_000  # to make one of several columns
TOLERANCE = 0.05  # of the mean absolute deviation: a number is inferred if the guess is as near as this

_ATTEMPTS_PER_ROW = 10
_MOST_COLUMNS = 5  # in one predicate
_FIRST_LOOK = 4_096  # rows that most attempts fail on already
_AT_ONCE = 16  # targets whose lists of ties are held together

Rows: TypeAlias = npt.NDArray[np.intp]
Comparison: TypeAlias = Literal["<=", ">=", "=="]
Predicate: TypeAlias = tuple[tuple[int, Comparison, float], ...]


@dataclass(frozen=True, slots=True, repr=False)
class AttackedColumn:
    """One column before and after: float64 for numbers, or integers that number categories (-1: blank) in the same way in
    both. `own` is the row of the original of each released one, where they do not lie in the same order: so that nobody need
    put a column into it."""

    name: str
    original: npt.NDArray[Any]
    released: npt.NDArray[Any]
    own: Rows | None = None

    def of_people(self, people: Rows) -> npt.NDArray[Any]:
        """The originals of some released rows."""
        rows: Rows = people if self.own is None else self.own[people]
        return np.take(self.original, rows)

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers rather than categories."""
        return self.original.dtype.kind == "f"


@dataclass(frozen=True, slots=True, repr=False)
class Attacked:
    """A released table and what it was made of: row i of every released column comes from row i of every original one, or from
    row own[i] of it."""

    columns: tuple[AttackedColumn, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidArgument("there is no column to attack.")
        for column in self.columns:
            kinds = {column.original.dtype.kind, column.released.dtype.kind}
            if kinds != {"f"} and not kinds <= {"i", "u"}:
                raise InvalidType("a column is neither float64 nor integer codes, before and after.", where=column.name)
            own = column.original if column.own is None else column.own
            if {own.shape, column.released.shape} != {(len(self),)}:
                raise InvalidArgument("the columns do not have equally many rows.", where=column.name)
            if column.is_numeric and not (np.isfinite(column.original).all() and np.isfinite(column.released).all()):
                raise InvalidArgument(
                    "there are missing or infinite numbers.",
                    where=column.name,
                    remedy="Leave these records out, or give the column as codes, -1 for blank.",
                )
        if len(self) < 3:
            raise InvalidArgument("fewer than three records leave nobody to compare with.")

    def __len__(self) -> int:
        return len(self.columns[0].released)


@dataclass(frozen=True, slots=True)
class Attack:
    """What an attack came to.

    attack   the share of successes against people whose own rows were there
    control  the same against people whose own rows had been taken out
    guess    the share of successes of somebody who does not look at any row that is near
    risk     the attack's successes beyond the control group's, as a share of what was left to gain (`difference_beyond`)
    worst    the column that most of the risk is in, where the attack can tell; empty where it cannot or where there is no risk
    """

    name: str
    attack: Share
    control: Share
    guess: float
    risk: Share
    worst: str


@dataclass(frozen=True, slots=True)
class Inference:
    """The attack on every column as the secret: `overall` is the mean over the columns, person by person."""

    overall: Attack
    columns: tuple[Attack, ...]


class _Groups(NamedTuple):
    """Rows drawn at random: those to attack, as many for the control group, and all but these, in their order."""

    targets: Rows
    control: Rows
    left: Rows


def link(table: Attacked, *, stream: NoiseStream, known: tuple[Sequence[str], Sequence[str]] | None = None) -> Attack:
    """How often the released table joins what two sources know about the same person, who is in both under different names.

    `known` names the columns of the one source and those of the other; without it, every other column each. The attacker takes
    one of the rows nearest by the first source's columns, one of those nearest by the second's, and wins if it is the same row:
    with sets A and B of rows equally near, the chance is |A and B| / (|A| |B|). Without ties this is GEM23's attack with one
    neighbour; k equal rows, however near, link with 1/k, while with ties broken by the order of rows they would always. Two rows
    at random are the same one once in as many as there are: that is `guess`.
    """
    names = [column.name for column in table.columns]
    sources = (names[::2], names[1::2]) if known is None else (list(known[0]), list(known[1]))
    if set(sources[0]) & set(sources[1]) or not set(sources[0]) | set(sources[1]) <= set(names):
        raise InvalidArgument("the two sources share a column, or know one that the table does not have.", where="known")
    groups = _draw_groups(len(table), stream, most=TARGETS)
    one, other = (_View([column for column in table.columns if column.name in source], groups.left) for source in sources)
    join = _Join(one.neighbours, other.neighbours)
    tried = [
        np.array([join.chance(*lists) for lists in zip(one.lists(people), other.lists(people), strict=True)])
        for people in (groups.targets, groups.control)
    ]
    return _judge("linking", tried[0], tried[1], guess=1 / len(groups.left), among=len(table))


@dataclass(frozen=True, slots=True)
class People:
    """Who is attacked where released rows are nobody's: people that the table was made of, and as many that it was made without.
    Rows of a table: `left` are the released ones."""

    targets: Rows
    control: Rows
    left: Rows


def infer(table: Attacked, *, stream: NoiseStream, people: People | None = None, known: Sequence[str] | None = None) -> Inference:
    """How often the rows nearest by all other columns tell a person's value in one column, for each column in turn.

    The attacker guesses the value of one of the nearest rows. A category is inferred if it is the person's own. A number is
    inferred if the guess differs by at most 5% of the mean absolute deviation of the original column from its median. (GEM23
    take 5% of the guess itself: nearly nothing near 0, and another risk if a year is counted from another one. A tolerance from
    the released column would grow with the noise, so that more of it would look like more risk. A deviation is 0 for a constant
    alone, while quartiles of a column of many zeros often coincide.) `guess` is the share of all originals that the best
    constant gets right, best for the released column. `people`: who is attacked, where no released row is anybody's.
    """
    groups = (
        _draw_groups(len(table), stream, most=INFERRED)
        if people is None
        else _Groups(people.targets, people.control, people.left)
    )
    results: list[Attack] = []
    sums = [np.zeros(len(people)) for people in (groups.targets, groups.control)]
    for secret in table.columns:
        tried, guess = _infer_column(table, secret, groups)
        for total, successes in zip(sums, tried, strict=True):
            total += successes
        name = f"inferring {secret.name}"
        results.append(_judge(name, tried[0], tried[1], guess=guess, among=len(table), worst=secret.name))
    means = [total / len(table.columns) for total in sums]
    guess = float(np.mean([result.guess for result in results]))
    worst = max(results, key=lambda result: result.risk.value).worst
    return Inference(_judge("inferring", means[0], means[1], guess=guess, among=len(table), worst=worst), tuple(results))


def single_out(table: Attacked, *, stream: NoiseStream) -> tuple[Attack, Attack]:
    """How often what is true of a single released row is true of a single person: by one column, and by several.

    The people are halved. The attacker sees the released rows of the one half and makes predicates that exactly one of these rows
    meets, at most one predicate for each row, so that each success is another person's; a predicate succeeds if exactly one
    original of that half meets it, and in the control group if exactly one of the other half does, which is as large, so that no
    correction for size is needed. By one column: the least and the greatest number where they are unique, and values that occur
    once. By several: two to five random columns of a random row, each number no less than the row's if that is above the
    median and no greater otherwise, each category equal. At most 1,000 predicates are tried, made in at most 20,000 attempts,
    ten for a row; where none can be made the shares say that nothing was tried. `guess` is the success of predicates with
    random columns and random values of the released columns' ranges and categories.

    What halving costs: a row that k - 1 others equal is the only one left in its half once in 2^(k-1), so that small clusters
    seem to let more predicates be made (k = 5: one row in sixteen) than the whole table would.
    """
    order = shuffled_positions(len(table), stream)
    half = len(table) // 2
    targets, control = order[:half], order[half : 2 * half]
    return _single_out(table, targets, People(targets, control, targets), stream)


def single_out_synthetic(table: Attacked, people: People, *, stream: NoiseStream) -> tuple[Attack, Attack]:
    """The same where released rows are nobody's: predicates of as many of them as there are people, who are as many as the people
    that the table was made without."""
    if len(people.targets) != len(people.control):
        raise InvalidArgument("there must be as many people in the control group as others.", where="people")
    rows = people.left[shuffled_positions(len(people.left), stream)[: len(people.targets)]]
    return _single_out(table, rows, people, stream)


def _single_out(table: Attacked, rows: Rows, people: People, stream: NoiseStream) -> tuple[Attack, Attack]:
    targets, control = people.targets, people.control
    released = _Side([column.released[rows] for column in table.columns])
    kinds = [column.is_numeric for column in table.columns]
    found = [_one_column(released, kinds, stream), _several_columns(released, kinds, stream)]
    guesses = [_random_predicates(released, kinds, stream, most=most) for most in (1, _MOST_COLUMNS)]
    del released
    side = _Side([column.of_people(targets) for column in table.columns])
    hits, lucky = ([side.single_out(predicates) for predicates in made] for made in (found, guesses))
    del side
    side = _Side([column.of_people(control) for column in table.columns])
    misses = [side.single_out(predicates) for predicates in found]
    names = ("singling out by one column", "singling out by several columns")
    attacks: list[Attack] = []
    for name, predicates, hit, missed, luck in zip(names, found, hits, misses, lucky, strict=True):
        gain = np.zeros(len(table.columns))
        for predicate, difference in zip(predicates, hit.astype(np.int64) - missed, strict=True):
            gain[[column for column, _, _ in predicate]] += difference
        worst = table.columns[int(gain.argmax())].name if gain.max() > 0 else ""
        guess = float(luck.mean()) if len(luck) else 0.0
        attacks.append(_judge(name, hit, missed, guess=guess, among=None, worst=worst))
    return attacks[0], attacks[1]


@dataclass(frozen=True, slots=True)
class Closest:
    """How far the nearest released row is from people that the table was made of, and from people that it was made without: the
    median of Gower's distance (0 to 1, a column counting alike), and the share of people who have a row just like theirs."""

    median: float
    equal: Share
    control_median: float
    control_equal: Share


def find_closest(table: Attacked, people: People) -> Closest:
    """The distance to the closest row, for both."""
    equal, medians = _measure_nearness(_View(table.columns, people.left), people, len(table.columns))
    return Closest(medians[0], equal[0], medians[1], equal[1])


@dataclass(frozen=True, slots=True)
class Claim:
    """What a person's nearest row says of one column, taken for the person's own: how often that is right of people that the
    table was made of, of people that it was made without, and of all originals for the best constant; and how much more often
    of the first."""

    name: str
    people: Share
    strangers: Share
    guess: float
    beyond: Difference


@dataclass(frozen=True, slots=True)
class NearRows:
    """What rows that are nobody's tell somebody who knows some columns of a person and takes the nearest row for the person's.

    known             the columns that are known
    equal             the share of people that the table was made of for whom some row has exactly what is known of them
    strangers_equal   the same of people that it was made without; `beyond` is the difference
    median            the median of Gower's distance to the nearest row (0 to 1, a column counting alike)
    strangers_median  the same
    claims            each column that is not known
    overall           their mean, person by person; none where all are known
    """

    known: tuple[str, ...]
    equal: Share
    strangers_equal: Share
    beyond: Difference
    median: float
    strangers_median: float
    claims: tuple[Claim, ...]
    overall: Claim | None


def find_near_rows(table: Attacked, people: People, *, known: Sequence[str], secrets: Sequence[str]) -> NearRows:
    """The attack on every secret with what is known, for people that released rows were made of and for strangers.

    Of rows that are equally near the attacker takes any with the same chance; a number is right within the tolerance of
    `infer`. No row is an own one, so that nothing is linked: a row just like a stranger is there because people like that are
    many, or by chance. What is more for the first than for strangers is what the table tells of its people. Where a secret is
    known too, of another secret, it is left out of what is known for its own.
    """
    if not set(known) | set(secrets) <= {column.name for column in table.columns} or not set(known):
        raise InvalidArgument("nothing is known, or a column is not one of the table's.", where="known")
    groups = _Groups(people.targets, people.control, people.left)
    columns = [column for column in table.columns if column.name in known]
    view = _View(columns, people.left)
    equal, medians = _measure_nearness(view, people, len(columns))
    claims: list[Claim] = []
    sums = [np.zeros(len(some)) for some in (people.targets, people.control)]
    for secret in table.columns:
        if secret.name not in secrets:
            continue
        tried, guess = _infer_column(table, secret, groups, view if secret.name not in known else None)
        for total, successes in zip(sums, tried, strict=True):
            total += successes
        claims.append(_judge_claim(secret.name, tried[0], tried[1], guess))
    overall = None
    if claims:
        guess = float(np.mean([claim.guess for claim in claims]))
        overall = _judge_claim("", sums[0] / len(claims), sums[1] / len(claims), guess)
    return NearRows(tuple(column.name for column in columns), *equal, subtract_shares(*equal), *medians, tuple(claims), overall)


def _judge_claim(name: str, people: FloatArray, strangers: FloatArray, guess: float) -> Claim:
    right, beside = measure_share(people, among=None), measure_share(strangers, among=None)
    return Claim(name, right, beside, guess, subtract_shares(right, beside))


def _measure_nearness(view: _View, people: People, columns: int) -> tuple[tuple[Share, Share], tuple[float, float]]:
    """The shares of people for whom a row is just alike, and the median distances, each for both."""
    found: list[FloatArray] = [view.nearest(some) / columns for some in (people.targets, people.control)]
    equal = [measure_share((distance == 0).astype(np.float64), among=None) for distance in found]
    medians = [float(np.median(distance)) for distance in found]
    return (equal[0], equal[1]), (medians[0], medians[1])


def _infer_column(
    table: Attacked, secret: AttackedColumn, groups: _Groups, view: _View | None = None
) -> tuple[list[FloatArray], float]:
    """The successes against targets and control group, and the constant's; by all other columns unless by those of a view."""
    values = np.unique(secret.released[groups.left], return_inverse=True, return_counts=True)  # before the points take their room
    view = view or _View([column for column in table.columns if column is not secret], groups.left)
    tolerance = TOLERANCE * _mean_deviation(secret.original) if secret.is_numeric else 0.0
    tally = _Tally(view.neighbours, *values, tolerance)
    people = (groups.targets, groups.control)
    tried = [np.concatenate([tally.chance(near, truth) for near, truth in view.search(some, secret)]) for some in people]
    return tried, tally.guess(secret.original)


def _draw_groups(n: int, stream: NoiseStream, *, most: int) -> _Groups:
    order = shuffled_positions(n, stream)
    size = min(most, n // 3)
    return _Groups(order[size : 2 * size], order[:size], np.sort(order[size:]))


def _judge(
    name: str, tried: npt.NDArray[Any], control: npt.NDArray[Any], *, guess: float, among: int | None, worst: str = ""
) -> Attack:
    attack, beside = (measure_share(successes.astype(np.float64), among=among) for successes in (tried, control))
    risk = difference_beyond(attack, beside)
    return Attack(name, attack, beside, guess, risk, worst if risk.value > 0 else "")


class _View:
    """The released rows that are left, as points of the columns that an attacker knows."""

    def __init__(self, columns: Sequence[AttackedColumn], left: Rows) -> None:
        self._numbers: list[tuple[AttackedColumn, float, float]] = []
        self._constant: list[tuple[AttackedColumn, float]] = []
        self._codes = [column for column in columns if not column.is_numeric]
        for column in columns:
            if column.is_numeric:
                released = column.released[left]
                least, most = float(released.min()), float(released.max())
                if most > least:
                    self._numbers.append((column, least, most - least))
                else:
                    self._constant.append((column, least))
        known = np.empty((len(left), len(self._numbers)))
        for place, (column, least, width) in enumerate(self._numbers):
            known[:, place] = (column.released[left] - least) / width
        codes = np.empty((len(left), len(self._codes)), dtype=np.int64)
        for place, column in enumerate(self._codes):
            codes[:, place] = column.released[left]
        self.neighbours = Neighbours(known, power=1, codes=codes, consume=True)

    def search(self, people: Rows, secret: AttackedColumn) -> Iterator[tuple[Nearest, npt.NDArray[Any]]]:
        """The rows nearest to the originals of some people, and these people's values of the secret."""
        points, codes = self._points(people)
        for near in self.neighbours.search(points, codes):
            yield near, secret.of_people(people[near.first : near.first + len(near.distance)])

    def nearest(self, people: Rows) -> FloatArray:
        """How far the nearest rows are from the originals of some people. A column without any range has no distance, but
        people who have another value there are like no row: they are at least a column away."""
        distance, _ = self.neighbours.count(*self._points(people))
        for column, only in self._constant:
            distance = distance + (column.of_people(people) != only)
        return distance

    def lists(self, people: Rows) -> Iterator[IntArray]:
        """For each of some people the distinct points that are nearest."""
        for start in range(0, len(people), _AT_ONCE):
            for near in self.neighbours.search(*self._points(people[start : start + _AT_ONCE])):
                yield from np.split(near.member, near.start[1:-1])

    def _points(self, people: Rows) -> tuple[FloatArray, IntArray]:
        points = np.empty((len(people), len(self._numbers)))
        for place, (column, least, width) in enumerate(self._numbers):
            points[:, place] = (column.of_people(people) - least) / width
        codes = np.empty((len(people), len(self._codes)), dtype=np.int64)
        for place, column in enumerate(self._codes):
            codes[:, place] = column.of_people(people)
        return points, codes


class _Join:
    """Which rows are at a point of the one view and at a point of the other."""

    def __init__(self, one: Neighbours, other: Neighbours) -> None:
        self._one, self._other = one, other
        self._pairs = np.sort(one.place * len(other.weight) + other.place)
        self._rows: tuple[IntArray, IntArray] | None = None
        self._marked = np.zeros(len(other.weight), dtype=np.bool_)

    def chance(self, one: IntArray, other: IntArray) -> float:
        """|A and B| / (|A| |B|) for the rows A at some points of the one view and the rows B at some of the other."""
        sizes = int(self._one.weight[one].sum()), int(self._other.weight[other].sum())
        if len(one) * len(other) <= sizes[0]:
            wanted = (one[:, np.newaxis] * len(self._marked) + other).reshape(-1)
            first, last = (np.searchsorted(self._pairs, wanted, side=side) for side in ("left", "right"))
            both = int(np.sum(last - first))
        else:
            self._marked[other] = True
            both = sum(int(np.count_nonzero(self._marked[self._other.place[rows]])) for rows in self._rows_at(one))
            self._marked[other] = False
        return both / (sizes[0] * sizes[1])

    def _rows_at(self, points: IntArray) -> Iterator[IntArray]:
        if self._rows is None:
            order = np.argsort(self._one.place, kind="stable")
            self._rows = order, np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._one.weight)])
        rows, start = self._rows
        yield from (rows[start[point] : start[point + 1]] for point in points.tolist())


class _Tally:
    """The secret's released values at every point, ready to be counted within a tolerance."""

    def __init__(self, neighbours: Neighbours, values: npt.NDArray[Any], rank: Rows, count: Rows, tolerance: float) -> None:
        self._weight, self._values, self._count, self._tolerance = neighbours.weight, values, count, tolerance
        self._keys = np.sort(neighbours.place * len(self._values) + rank)

    def chance(self, near: Nearest, truth: npt.NDArray[Any]) -> FloatArray:
        """For each of the people looked up the share of the nearest rows whose secret is within the tolerance of the truth."""
        first = np.searchsorted(self._values, truth - self._tolerance, side="left")
        last = np.searchsorted(self._values, truth + self._tolerance, side="right")
        who = np.repeat(np.arange(len(truth)), np.diff(near.start))
        point = near.member * len(self._values)
        found = np.searchsorted(self._keys, point + last[who]) - np.searchsorted(self._keys, point + first[who])
        return near.total(found) / near.total(self._weight[near.member])

    def guess(self, original: npt.NDArray[Any]) -> float:
        """The share of originals that one constant gets right: the one within whose tolerance most released values are."""
        above = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self._count)])
        ends = np.searchsorted(self._values, self._values + 2 * self._tolerance, side="right")
        least = self._values[int(np.argmax(above[ends] - above[:-1]))]
        return int(np.count_nonzero((original >= least) & (original <= least + 2 * self._tolerance))) / len(original)


class _Side:
    """Some rows, each column sorted, so that who meets a predicate is sought among the few who meet its rarest condition."""

    def __init__(self, columns: list[npt.NDArray[Any]]) -> None:
        self.columns = columns
        self.order = [np.argsort(column, kind="stable").astype(np.int32) for column in columns]
        self.ordered = [column[order] for column, order in zip(columns, self.order, strict=True)]

    def count(self, predicate: Predicate) -> int:
        """How many rows meet all conditions."""
        spans = [self._span(*condition) for condition in predicate]
        rarest = min(range(len(spans)), key=lambda number: spans[number][1] - spans[number][0])
        rows = self.order[predicate[rarest][0]][slice(*spans[rarest])]
        for number, (column, comparison, value) in enumerate(predicate):
            if number != rarest and len(rows):
                there = self.columns[column][rows]
                rows = rows[there <= value if comparison == "<=" else there >= value if comparison == ">=" else there == value]
        return len(rows)

    def single_out(self, predicates: list[Predicate]) -> npt.NDArray[np.bool_]:
        """Whether exactly one row meets each predicate."""
        return np.array([self.count(predicate) == 1 for predicate in predicates], dtype=np.bool_)

    def _span(self, column: int, comparison: Comparison, value: float) -> tuple[int, int]:
        ordered = self.ordered[column]
        first = 0 if comparison == "<=" else int(np.searchsorted(ordered, value, side="left"))
        return first, len(ordered) if comparison == ">=" else int(np.searchsorted(ordered, value, side="right"))


def _one_column(released: _Side, kinds: list[bool], stream: NoiseStream) -> list[Predicate]:
    """Predicates of one condition that single out a released row: for each row one at random of those that there are."""
    n = len(released.columns[0])
    unique = np.zeros((n, len(kinds)), dtype=np.bool_)
    pool: list[tuple[int, Predicate]] = []
    for column, (ordered, order) in enumerate(zip(released.ordered, released.order, strict=True)):
        new = np.concatenate([np.ones(1, dtype=np.bool_), ordered[1:] != ordered[:-1], np.ones(1, dtype=np.bool_)])
        alone = new[:-1] & new[1:]
        unique[order[alone], column] = True
        if kinds[column] and alone[0]:
            pool.append((int(order[0]), ((column, "<=", ordered[0].item()),)))
        if kinds[column] and alone[-1]:
            pool.append((int(order[-1]), ((column, ">=", ordered[-1].item()),)))
    # the rows are in random order: of a million there is no need to list them all before choosing
    enough = int(np.searchsorted(np.cumsum(unique.any(axis=1)), PREDICATES)) + 1
    for row, column in np.argwhere(unique[:enough]).tolist():
        pool.append((row, ((column, "==", released.columns[column][row].item()),)))
    found: dict[int, Predicate] = {}
    for place in shuffled_positions(len(pool), stream):
        row, predicate = pool[int(place)]
        if len(found) < PREDICATES:
            found.setdefault(row, predicate)
    return list(found.values())


def _several_columns(released: _Side, kinds: list[bool], stream: NoiseStream) -> list[Predicate]:
    """For each row at most one predicate of two to five conditions, made of its own values, that it alone meets."""
    most = min(len(kinds), _MOST_COLUMNS)
    if most < 2:
        return []
    n = len(released.columns[0])
    first = _Side([column[:_FIRST_LOOK] for column in released.columns])
    medians = [float(np.median(column)) if numeric else 0.0 for column, numeric in zip(released.columns, kinds, strict=True)]
    attempts = min(ATTEMPTS, _ATTEMPTS_PER_ROW * n)
    rows = np.resize(shuffled_positions(n, stream), attempts)
    sizes = 2 + shuffled_positions(attempts, stream) % (most - 1)
    found: dict[int, Predicate] = {}
    for row, chosen in zip(rows.tolist(), _random_columns(sizes, len(kinds), stream), strict=True):
        if row in found:
            continue
        conditions: list[tuple[int, Comparison, float]] = []
        for column in chosen:
            value = released.columns[column][row].item()
            comparison: Comparison = "==" if not kinds[column] else ">=" if value > medians[column] else "<="
            conditions.append((column, comparison, value))
        predicate = tuple(conditions)
        if first.count(predicate) < 2 and released.count(predicate) == 1:
            found[row] = predicate
            if len(found) == PREDICATES:
                break
    return list(found.values())


def _random_predicates(released: _Side, kinds: list[bool], stream: NoiseStream, *, most: int) -> list[Predicate]:
    """Predicates with random columns and values, of those that the released rows span or have."""
    fewest, most = min(2, most), min(len(kinds), most)
    if most < fewest:
        return []
    sizes = fewest + shuffled_positions(PREDICATES, stream) % (most - fewest + 1)
    levels = [
        np.unique(ordered) if not numeric else ordered[[0, -1]] for ordered, numeric in zip(released.ordered, kinds, strict=True)
    ]
    columns = list(_random_columns(sizes, len(kinds), stream))
    chance = shuffled_positions(PREDICATES * most, stream).reshape(PREDICATES, most) / (PREDICATES * most)
    upwards = shuffled_positions(PREDICATES * most, stream).reshape(PREDICATES, most) % 2
    predicates: list[Predicate] = []
    for number, chosen in enumerate(columns):
        conditions: list[tuple[int, Comparison, float]] = []
        for place, column in enumerate(chosen):
            level = levels[column]
            if kinds[column]:
                value = float(level[0] + (level[1] - level[0]) * chance[number, place])
                conditions.append((column, ">=" if upwards[number, place] else "<=", value))
            else:
                conditions.append((column, "==", level[int(chance[number, place] * len(level))].item()))
        predicates.append(tuple(conditions))
    return predicates


def _random_columns(sizes: npt.NDArray[np.intp], m: int, stream: NoiseStream) -> Iterator[list[int]]:
    """For each size so many different columns of m, ascending."""
    order = shuffled_positions(len(sizes) * m, stream).reshape(len(sizes), m).argsort(axis=1)
    for size, columns in zip(sizes.tolist(), order, strict=True):
        yield sorted(columns[:size].tolist())


def _mean_deviation(values: npt.NDArray[Any]) -> float:
    distances: FloatArray = np.abs(values - np.median(values))
    return float(distances.mean())
