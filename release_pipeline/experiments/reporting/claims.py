"""Claims and what became of them: how often one thing was so many times the other, over all settings and runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import floor, isfinite, log10
from typing import Literal, TypeAlias

import numpy as np

from release_pipeline.experiments.reporting.pictures import Picture

Verdict: TypeAlias = Literal["holds", "holds by the median", "holds in part", "does not hold", "not measured"]
DEFINITIONS = {"dp": "DP", "idp": "iDP"}
LEAST_RUNS = 10  # for a verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim in one line, where it stands, what was measured, whether it holds, and why not where it does not."""

    claim: str
    source: str
    verdict: Verdict
    measured: str
    why: str = ""
    share: str = ""  # of how many settings it holds by the median


@dataclass(frozen=True, slots=True)
class Loss:
    """What a claim says, and what these data lose: `exact` is the joint loss of the lists of all columns, or of the whole
    table."""

    table: str
    method: str
    definition: str
    scope: str
    k: int
    epsilon: str
    exact: float


@dataclass(frozen=True, slots=True)
class Chapter:
    """What the page says of one experiment; `tables` are headings with tables in Markdown, `omitted` what the paper has and the
    experiment lacks, with the reason."""

    title: str
    words: str
    pictures: tuple[Picture, ...]
    findings: tuple[Finding, ...]
    tables: tuple[tuple[str, str], ...] = ()
    losses: tuple[Loss, ...] = ()
    omitted: tuple[str, ...] = ()


@dataclass(slots=True)
class Cases:
    """Ratios of two things, setting by setting, run by run: the claim of each is that they are above `least` (and below
    `most`)."""

    least: float = 1.0
    most: float = float("inf")
    ratios: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    def add(self, name: str, ratios: np.ndarray) -> None:
        """The runs of one more setting."""
        self.ratios[name] = np.asarray(ratios, dtype=np.float64)

    @property
    def held(self) -> list[str]:
        """The settings for which the claim held in every run."""
        return [name for name, all_runs in self.ratios.items() if self._holds(all_runs)]

    @property
    def failed(self) -> list[str]:
        """The others."""
        return [name for name, all_runs in self.ratios.items() if not self._holds(all_runs)]

    @property
    def by_median(self) -> int:
        """For how many settings the claim holds by the median of the runs."""
        return sum(self._holds(np.median(all_runs)) for all_runs in self.ratios.values())

    @property
    def verdict(self) -> Verdict:
        """Holds: in every run of every setting; by the median: of the runs of every setting; in part: for some settings by it."""
        if not self.ratios:
            return "not measured"
        if not self.failed:
            return "holds"
        by_median = self.by_median
        return "holds by the median" if by_median == len(self.ratios) else "holds in part" if by_median else "does not hold"

    @property
    def words(self) -> str:
        """The range over all settings and runs, the medians of settings, and of how many settings the claim held."""
        if not self.ratios:
            return "not measured in a quick run"
        everything = np.concatenate(list(self.ratios.values()))
        middle = float(np.median([np.median(runs) for runs in self.ratios.values()]))
        runs, settings = min(len(runs) for runs in self.ratios.values()), len(self.ratios)
        found = f"{show(everything.min())} to {show(everything.max())} times (median {show(middle)}); holds "
        if runs == 1:
            return f"{found}in {len(self.held)} of {settings} settings"
        by_median = f" (by the median of runs in {self.by_median})" if self.failed else ""
        return f"{found}in every one of {runs} runs in {len(self.held)} of {settings} settings{by_median}"

    def find(self, claim: str, source: str, *, more: str = "", why: str = "") -> Finding:
        """The finding, with more words after the figures; `why` is said only where the claim does not hold throughout."""
        words = f"{self.words}{'. ' if more else ''}{more}" if self.ratios else self.words
        return Finding(claim, source, self.verdict, words, why if self.failed else "", self.share)

    @property
    def share(self) -> str:
        """Of how many settings the claim holds, by the median of runs."""
        return f"{self.by_median} of {len(self.ratios)}" if self.ratios else ""

    def _holds(self, runs: np.ndarray | np.floating) -> bool:
        return bool(np.all(runs > self.least) and np.all(runs < self.most))


def show(number: float) -> str:
    """Three digits, never as a power of ten between 0.001 and a million.

    >>> show(5913.2), show(97.66), show(0.4748), show(0.00147), show(0.00000123), show(0)
    ('5,910', '97.7', '0.475', '0.00147', '1.23e-06', '0')
    """
    if number == 0 or not isfinite(number):
        return f"{number:g}"
    if not 0.001 <= abs(number) < 10**7:
        return f"{number:.3g}"
    digits = 2 - floor(log10(abs(number)))
    return f"{round(number, digits):,.{max(digits, 0)}f}"


def show_range(runs: np.ndarray) -> str:
    """From the least to the greatest, or the one there is."""
    return show(float(runs.min())) if np.ptp(runs) == 0 else f"{show(float(runs.min()))} to {show(float(runs.max()))}"


def list_names(names: Sequence[str], most: int = 6) -> str:
    """Some names, and how many more there are."""
    rest = len(names) - most
    return "; ".join(names[:most]) + (f"; and {rest} more" if rest > 0 else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
