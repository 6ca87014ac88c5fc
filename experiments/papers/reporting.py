"""Claims and what became of them, tables in Markdown, and the page of all papers.

Values are a pandas Series whose index is the fields of settings, and the number of the run where noise was drawn. A claim is a
bound of ratios of such values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, inf, isfinite, log10
from typing import Any

import numpy as np
import pandas as pd

from experiments.papers.runs import RUN

OURS = "this project"
EQUAL = 1e-6  # bounds that are nearer than that ask for equality
LISTED = 4  # settings by name, of those for which a claim fails


def pick(values: Any, **fields: Any) -> Any:
    """The values with these fields (a tuple: one of these); a field with one value leaves the index."""
    for name, wanted in fields.items():
        level = values.index.get_level_values(name)
        if isinstance(wanted, tuple):
            values = values[level.isin(wanted)]
        else:
            values = values[level == wanted]
            values = values.droplevel(name) if values.index.nlevels > 1 else values
    return values


def divide(values: Any, name: str, above: Any, below: Any) -> Any:
    """Run by run, the values where a field is the one over those where it is the other."""
    wide = values.unstack(name)
    if above not in wide or below not in wide:
        return values[:0]
    return (wide[above] / wide[below]).dropna()


def divide_ends(values: Any, name: str) -> Any:
    """Run by run, the value at the least of a field over that at the greatest."""
    wide = values.unstack(name)
    return wide.bfill(axis=1).iloc[:, 0] / wide.ffill(axis=1).iloc[:, -1]


def divide_steps(values: Any, name: str) -> Any:
    """Run by run, the value at one entry of a numeric field over that at the next one."""
    wide = values.unstack(name)
    wide = wide[sorted(wide.columns, key=float)]
    steps = wide / wide.shift(-1, axis=1)
    return steps.stack().dropna()


def mean_runs(values: Any) -> Any:
    """Means over runs."""
    return values.groupby(level=_without(values, RUN), sort=False).mean()


def take_best(values: Any, name: str, *, most: bool = False) -> Any:
    """All runs at the entry of a field that has the least (or most) in the mean over runs, beside the other fields."""
    means = mean_runs(values) if RUN in values.index.names else values
    means = -means if most else means
    best = set(means.groupby(level=_without(means, name), sort=False).idxmin())
    settings = values.index.droplevel(RUN) if RUN in values.index.names else values.index
    return values[[setting in best for setting in settings]]


def spread_out(values: Any, wide: Any) -> Any:
    """Values that lack fields of `wide`, repeated for each of its entries."""
    there = wide.index.to_frame(index=False)
    joined = there.merge(values.rename("_").reset_index(), how="left", on=list(values.index.names))
    return pd.Series(joined["_"].to_numpy(), index=wide.index)


def average_logs(values: Any, *fields: str) -> Any:
    """Geometric means, for each entry of these fields."""
    return np.exp(np.log(values).groupby(level=list(fields), sort=False).mean())


def _without(values: Any, *names: str) -> list[str]:
    return [name for name in values.index.names if name not in names]


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, by whom, and ratios that must be above `least` and below `most`; `note` says of what they are, and `why` why
    the claim fails where it does."""

    words: str
    source: str
    ratios: Any
    least: float = 1.0
    most: float = inf
    note: str = ""
    why: str = ""

    def _of_settings(self) -> dict[str, np.ndarray]:
        ratios = self.ratios
        if ratios.index.names == [RUN]:
            return {"": ratios.to_numpy()} if len(ratios) else {}
        names = _without(ratios, RUN)
        found: dict[str, np.ndarray] = {}
        for entry, runs in ratios.groupby(level=names, sort=False):
            parts = entry if isinstance(entry, tuple) else (entry,)
            found[", ".join(f"{name} {part}" for name, part in zip(names, parts, strict=True))] = runs.to_numpy()
        return found

    def _holds(self, runs: Any) -> bool:
        return bool(np.all(runs > self.least) and np.all(runs < self.most))

    def spread(self) -> str:
        """The least, the greatest and the middle ratio; empty where nothing was measured."""
        found = self._of_settings()
        if not found:
            return ""
        ratios = np.concatenate(list(found.values()))
        middle = float(np.median([np.median(runs) for runs in found.values()]))
        return f"{show(ratios.min())} to {show(ratios.max())}, median {show(middle)}"

    def summarise(self, verdict: str) -> str:
        """What was measured, in a line: what the ratios are of, their spread, and why the claim fails where it does."""
        measured = f"{self.note}: {self.spread()}." if self.note else f"{self.spread()}."
        return f"{measured} {self.why}" if self.why and verdict != "holds" else measured

    def judge(self) -> tuple[str, str, str]:
        """The verdict, of how many settings the claim holds by the median of runs, and what was measured."""
        found = self._of_settings()
        if not found:
            return "not measured", "", "not measured in a quick run"
        failed = [name for name, runs in found.items() if not self._holds(runs)]
        by_median = sum(self._holds(np.median(runs)) for runs in found.values())
        verdict = "holds by the median" if by_median == len(found) else "holds in part" if by_median else "does not hold"
        measured = f"{self.spread()}; in every run in {len(found) - len(failed)} of {len(found)} settings"
        bounds = [f"above {self.least:g}"] if self.least > -inf else []
        bounds += [f"below {self.most:g}"] if self.most < inf else []
        bounds = ["where equal"] if self.most - self.least < EQUAL else bounds
        measured = f"{self.note}; holds {' and '.join(bounds)}. {measured[0].upper()}{measured[1:]}."
        if failed:
            names = "; ".join(failed[:LISTED]) + (f"; and {len(failed) - LISTED} more" if len(failed) > LISTED else "")
            measured += f" Not in: {names}." if names else ""
            measured += f" {self.why}" if self.why else ""
        return verdict if failed else "holds", f"{by_median} of {len(found)}", measured


@dataclass(frozen=True, slots=True)
class Chapter:
    """What the page says of one experiment besides the docstring of its module; `tables` by heading. The committed page has
    those that `essential` names."""

    title: str
    claims: Sequence[Claim]
    tables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    essential: Sequence[str] = ()


def show(number: float) -> str:
    """Three digits, never as a power of ten between 0.001 and ten million.

    >>> show(5913.2), show(97.66), show(0.4748), show(0.00147), show(0.00000123), show(0)
    ('5,910', '97.7', '0.475', '0.00147', '1.23e-06', '0')
    """
    if number == 0 or not isfinite(number):
        return f"{number:g}"
    if not 0.001 <= abs(number) < 10**7:
        return f"{number:.3g}"
    digits = 2 - floor(log10(abs(number)))
    return f"{round(number, digits):,.{max(digits, 0)}f}"


def write_rows(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows))


def write_table(values: Any, across: str = "", name: str = "") -> str:
    """A table of means over runs in Markdown, a column for each entry of the field `across`, or for each measure."""
    means = mean_runs(values) if RUN in values.index.names else values
    if across:
        order = list(dict.fromkeys(means.index.get_level_values(across)))
        means = means.unstack(across, sort=False)[order].rename(columns=lambda entry: f"{name or across} {entry}")
    rows = [
        [*(index if isinstance(index, tuple) else (index,)), *(_show_cell(cell) for cell in row)]
        for index, row in zip(means.index, means.to_numpy(dtype=object), strict=True)
    ]
    return write_rows([*means.index.names, *means.columns], rows)


def _show_cell(cell: Any) -> str:
    return cell if isinstance(cell, str) else "" if cell != cell else show(float(cell))


def write_best(values: Any, over: str, across: str, *fields: str) -> str:
    """A table of the least means over an entry of `over`, with that entry in brackets; a column for each entry of `across`."""
    best = mean_runs(take_best(values, over))
    texts = [f"{show(value)} ({over} {entry:,})" for value, entry in zip(best, best.index.get_level_values(over), strict=True)]
    return write_table(pd.Series(texts, index=best.index).droplevel(over).reorder_levels([*fields, across]), across)


TOP = """\
# The papers, reproduced

Made by {made}; nobody wrote on it by hand. A claim **holds** if it held in every run of every setting. It **holds by the median**
if the median of the runs of every setting did, and **holds in part** if that of some did; then the page says where not. What has
noise has ten runs at least, in a quick run fewer. Formulas, and clusters without noise, are computed once.

Epsilon of individual differential privacy (iDP) is not epsilon of differential privacy (DP), whatever the number. Domains and
grids come from these public tables, as in the papers. A release declares them beforehand: no experiment here is DP or iDP except
for a reader who knew domain and grid. Papers are quoted as this project knows them."""

SUMMARY_HEAD = ("claim", "said by", "verdict", "settings, by the median", "measured")
SUMMARY = """\
# The papers, reproduced

For readers of the papers: which of their claims were found again, and by how much. A claim **holds** if it held in every run of
every setting. It **holds by the median** if the median of the runs of every setting did, and **holds in part** if that of some
did. *Measured* has what the claim compares, from the least to the greatest over all runs. What has noise has ten runs at least.

Epsilon of individual differential privacy (iDP) is not epsilon of differential privacy (DP). Domains and grids come from these
public tables, as in the papers: no experiment here is DP or iDP except for a reader who knew them. Papers are quoted as this
project knows them."""

HOW_TO_RUN = """\
```sh example
make reproduce             # everything with all tables, into the folder reproduction, in some ten minutes on two cores
make reproduce SHORT=1     # fewer settings and runs, about a minute
```

A quick run compares its figures with the committed ones, and fails if they differ by more than chance allows. Reference data are
not shipped: the command says which files are missing and where they are published. The docstrings of `experiments/papers` explain
every measure."""

BOTTOM = """\
## Run it yourself

```sh example
make reproduce             # everything, in some ten minutes on two cores: this page, but for the last digits of some scales
make reproduce SHORT=1     # fewer settings and runs, about a minute
```

A quick run has other noise than this page. It compares what it measures with these figures, and fails if they differ by more than
chance allows. Reference data are not shipped: the command says which files are missing and where they are published, and checks
their content. The folder `reproduction` gets this page, and a CSV file of each kind of setting with a row for each run; the
docstrings of `experiments/papers` say what its columns are."""


def write_page(chapters: Mapping[str, tuple[str, Chapter]], made: str, compared: int, departures: Sequence[object]) -> str:
    """The page: chapters by name, each with what its module says."""
    parts = [TOP.format(made=made)]
    if compared:
        parts.append(f"{compared - len(departures):,} of {compared:,} figures agree with the committed ones.")
        parts += ["\n".join(f"- {departure}" for departure in departures)] if departures else []
    judged = {name: [(claim, *claim.judge()) for claim in chapter.claims] for name, (_, chapter) in chapters.items()}
    rows = [
        [f"[{name}](#{_anchor(chapters[name][1].title)})", claim.words, verdict, share]
        for name, claims in judged.items()
        for claim, verdict, share, _ in claims
    ]
    parts += ["## All claims", write_rows(["experiment", "claim", "verdict", "settings, by the median"], rows)]
    for name, (words, chapter) in chapters.items():
        parts += [f"## {chapter.title}", words.partition("\n\n")[2].strip()]
        claims = [f"- **{claim.words}** ({claim.source}) *{verdict}*. {measured}" for claim, verdict, _, measured in judged[name]]
        parts += [f"### Claims of {name}", "\n".join(claims)]
        for heading, text in chapter.tables.items():
            parts += [f"### {heading}", text]
    return "\n\n".join([*parts, BOTTOM]) + "\n"


def write_summary(chapters: Mapping[str, tuple[str, Chapter]]) -> str:
    """The committed page: each claim with its verdict and its spread, and the tables that chapters call essential."""
    parts = [SUMMARY, HOW_TO_RUN]
    for words, chapter in chapters.values():
        judged = [(claim, *claim.judge()[:2]) for claim in chapter.claims]
        rows = [[claim.words, claim.source, verdict, share, claim.summarise(verdict)] for claim, verdict, share in judged]
        parts += [f"## {chapter.title}", words.partition("\n\n")[2].partition("\n\n")[0].strip(), write_rows(SUMMARY_HEAD, rows)]
        parts += [f"### {heading}\n\n{chapter.tables[heading]}" for heading in chapter.essential]
    return "\n\n".join(parts) + "\n"


def _anchor(title: str) -> str:
    """The anchor that GitHub makes of a heading."""
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter in "-_")
