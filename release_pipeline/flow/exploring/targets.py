"""What a steward asks for, and which of the settings that were tried surely give it.

A target is a figure of releases, of one column or of all, and the most that it may be:
`error:income=10%`, `mean:income=200` and `group-mean:income=1000` (how far the mean, and that of
the worst group, may be off, in the column's unit), `correlation=0.02`.

That some simulated releases meet it may be luck. A setting is said to meet the targets where so
many do that at least half of all releases do: were it less, as many would in 5 of 100 cases at
most. Epsilons are gone down from the largest that was tried as long as that holds, and the rule
stops at the first that does not, so that trying many epsilons makes no setting look better. Of a
method with several k these 5 of 100 are divided among them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.exploring.document import MetView
from release_pipeline.flow.exploring.simulating import Tried
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import ask_for_near
from release_pipeline.policy.settings import Setting
from release_pipeline.stages.simulation import Simulated

_FORM = re.compile(r"([a-z-]+)(?::(.+))?=([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(%)?")
OF_COLUMN, OF_ALL = ("error", "mean", "group-mean"), ("correlation",)
AS_SHARE = ("error", "correlation")  # figures without a unit
MOST_CORRELATION = 2  # so that any release meets what is not below
WRONG = 0.05  # how often a setting that does not meet the targets is said to


@dataclass(frozen=True, slots=True)
class Target:
    """The most that a figure may be."""

    figure: str
    column: str
    most: float
    text: str


def read_target(text: str, policy: Policy) -> Target:
    """A target as it is written; refused in words."""
    match = _FORM.fullmatch(text.strip())
    known = ", ".join((*(f"{figure}:COLUMN" for figure in OF_COLUMN), *OF_ALL))
    if match is None or match[1] not in (*OF_COLUMN, *OF_ALL):
        raise WrongUsage(
            "this is no target.", where=text, remedy=f"Write FIGURE:COLUMN=MOST, like error:income=10%. Figures: {known}."
        )
    figure, column, most = match[1], match[2] or "", float(match[3])
    if (figure in OF_ALL) == bool(column):
        what = "is of all columns together" if column else "needs its column"
        raise WrongUsage(f"{figure} {what}.", where=text, remedy=f"Figures: {known}.")
    if column and column not in policy.noise_columns:
        remedy = ask_for_near(column, policy.noise_columns, f"There are: {', '.join(policy.noise_columns)}.")
        raise WrongUsage(f"the policy masks no column '{column}'.", where=text, remedy=remedy)
    if figure in OF_ALL and len(policy.noise_columns) < 2:
        raise WrongUsage("with one masked column there is no correlation.", where=text, remedy="Ask for its error.")
    if match[4] and figure not in AS_SHARE:
        raise WrongUsage(f"{figure} is in the column's own unit.", where=text, remedy="Leave % out.")
    most = most / 100 if match[4] else most
    if figure in OF_ALL and most >= MOST_CORRELATION:
        raise WrongUsage(
            f"{figure} is at most {MOST_CORRELATION}, so that any release meets this.",
            where=text,
            remedy=f"Write {figure}=0.02, or another number below {MOST_CORRELATION}.",
        )
    if most <= 0:
        raise WrongUsage("no release is exactly like the data.", where=text, remedy="Name a number above 0.")
    return Target(figure, column, most, text.strip())


def count_sequences(settings: Sequence[Setting]) -> int:
    """Of how many sequences of epsilons the method is that has most of them."""
    keys = {(setting.method, _without_epsilon(setting)) for setting in settings}
    return max(sum(1 for method, _ in keys if method == one) for one, _ in keys)


def count_draws(sequences: int) -> int:
    """How many releases must be simulated, so that targets which all of them meet are surely
    met."""
    return math.ceil(math.log2(sequences / WRONG))


def count_meeting(targets: Sequence[Target], found: Simulated) -> int:
    """How many of the simulated releases meet all targets; one without such a figure meets none."""
    figures: list[npt.NDArray[np.bool_]] = []
    for target in targets:
        of_draws = found.columns[target.column][target.figure] if target.column else found.correlation
        figures.append(of_draws <= target.most)  # NaN is not
    return int(np.logical_and.reduce(figures).sum())


def is_sure(meeting: int, draws: int, wrong: float = WRONG) -> bool:
    """Whether so many of these draws show that at least half of all releases meet the targets.

    >>> is_sure(5, 5), is_sure(19, 30), is_sure(20, 30)
    (True, False, True)
    """
    return sum(math.comb(draws, count) for count in range(meeting, draws + 1)) <= wrong * 2**draws


def find_met(targets: Sequence[Target], tested: Sequence[tuple[int, Tried]]) -> Iterator[MetView]:
    """For each method the least epsilon, of those that were tried, with which all targets are
    surely met. `tested`: with their numbers."""
    for method in dict.fromkeys(one.changed.setting.method for _, one in tested):
        sequences: dict[tuple[tuple[str, str], ...], list[tuple[int, Tried]]] = {}
        for number, one in tested:
            if one.changed.setting.method == method:
                sequences.setdefault(_without_epsilon(one.changed.setting), []).append((number, one))
        sure = [found for one in sequences.values() if (found := _go_down(targets, one, WRONG / len(sequences))) is not None]
        everything = [one for sequence in sequences.values() for one in sequence]
        nearest = max(everything, key=lambda pair: count_meeting(targets, pair[1].found) / pair[1].found.draws)
        number, best = min(sure, key=lambda pair: _epsilon_of(pair[1])) if sure else nearest
        yield MetView(method, number if sure else None, count_meeting(targets, best.found), best.found.draws)


def _go_down(targets: Sequence[Target], sequence: Sequence[tuple[int, Tried]], wrong: float) -> tuple[int, Tried] | None:
    """The last setting, from the largest epsilon down, up to which all surely meet the targets."""
    last: tuple[int, Tried] | None = None
    for number, one in sorted(sequence, key=lambda pair: _epsilon_of(pair[1]), reverse=True):
        if not is_sure(count_meeting(targets, one.found), one.found.draws, wrong):
            break
        last = number, one
    return last


def _epsilon_of(one: Tried) -> float:
    return float(one.changed.setting.protect.get("epsilon") or 0)


def _without_epsilon(setting: Setting) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, str(value)) for key, value in setting.protect.items() if key != "epsilon"))
