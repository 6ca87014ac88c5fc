"""How exact a release is beside how well people are found in it, method by method, on a public table of yours.

    python -m experiments.frontier CSV --mask income:0:50000:1 hours:0:99:1 --keep sex region --predict hours:0 --secrets 3

Releases are made by the strategies of the product, with secrets that are none: nothing of it may be released. Columns of `--mask`
(domain and grid behind their names) are masked, those of `--keep` stay, and all others go. Means over secrets:

- `linked by 0, 1, 2, all`: percent of released records that link to their own original by the kept columns alone, with one or two
  masked columns beside them, and with all of them. dp-table has no rows of people to be linked;
- `KS`: the largest difference of distribution functions, mean over masked columns;
- `Spearman`: by how much rank correlations of masked columns are off, mean over pairs;
- `groups`: how far means of masked columns by group of kept ones are off, in standard deviations of the column, mean over
  groups of 20 people or more; a group that the release lacks counts as one standard deviation;
- `AUC`: of a model that learned from a release of two thirds of the records, on the other third, for whether the column of
  `--predict` is above its bound. That of a model that learned from the records themselves is printed first;
- `inferred`, `strangers`: percent of people of whom a masked value is guessed by who knows their other columns, and the same of
  people who are not in the release: only the difference is learned from the release;
- `dropped`: percent of the records that are not in the release.

The claims differ: dp-cdf covers each column's list (DP), idp-cbls the same by the weaker iDP, dp-table the whole table (zCDP),
mdav makes rows alike and has no epsilon, and swapping changes linkage but not the claim. So the same epsilon is not the same
protection. The figures of a table are of this table: they say nothing of a confidential one, except where it is alike.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import spearmanr

from experiments.forests import measure_ranking
from release_pipeline.audit.audit import attack_without_control
from release_pipeline.audit.linkage import measure_ladder
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.masking import find_strategy
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import find_gap
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.rows.columns import load_table, read_tables, read_with

Domain = tuple[str, str, str]  # least, greatest, grid
METHODS = {
    "dp-cdf": "{method: dp-cdf, epsilon: 2}",
    "dp-cdf, swapped": "{method: dp-cdf, epsilon: 2, swap: {k: 10, within: kept}}",
    "idp-cbls": "{method: idp-cbls, epsilon: 2, k: 25}",
    "idp-cbls, swapped": "{method: idp-cbls, epsilon: 2, k: 25, swap: {k: 10, within: kept}}",
    "mdav": "{method: mdav, k: 10}",
    "dp-table": "{method: dp-table, definition: zcdp, epsilon: 2, delta: 0.000001}",
}
HEADS = ("method", "linked by 0", "1", "2", "all", "KS", "Spearman", "groups", "AUC", "inferred", "strangers", "dropped")
LEAST_GROUP, LEARNED_SECRETS = 20, 2  # people of a group whose means are compared; secrets of which models learn


@dataclass(frozen=True, slots=True)
class Question:
    """The table, its masked columns with domain and grid, its kept ones, and what a model predicts."""

    records: pa.Table
    masked: Mapping[str, Domain]
    kept: tuple[str, ...]
    target: str
    above: float

    def list_features(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """What a model knows of each row, and whether the target is above its bound."""
        found = [table[name].to_numpy().astype(float) for name in self.masked if name != self.target]
        for name in self.kept:
            values = np.array(table[name].to_pylist(), dtype=object)
            found += [(values == value).astype(float) for value in self.list_values(name)]
        return np.column_stack(found), table[self.target].to_numpy().astype(float) > self.above

    def list_values(self, name: str) -> list[str]:
        """The values of a kept column."""
        return sorted(set(self.records[name].to_pylist()))

    def write_policy(self, protect: str) -> Policy:
        """A policy for this table."""
        is_synthetic = "dp-table" in protect
        kept = "synthesise" if is_synthetic else "keep"
        lines = ["policy: frontier", "steward: nobody", "population: people", "source: {path: frontier.csv}", "person: each-row"]
        lines += ["releases: once", f"protect: {protect}", "columns:"]
        for name in self.kept:
            values = ", ".join(f"{value!r}" for value in self.list_values(name))
            lines.append(f"  {name}: {{role: quasi, do: {kept}, values: [{values}], why: public}}")
        for name, (low, high, grid) in self.masked.items():
            does = "synthesise" if is_synthetic else "noise"
            declared = f"domain: [{low}, {high}], grid: {grid}, outside: clamp, why: public"
            lines.append(f"  {name}: {{role: confidential, do: {does}, {declared}}}")
        if self.kept and not is_synthetic:
            lines.append("suppress: {quasi_groups_below: 10, at_most: 20%}")
        lines.append(f"gates: {{min_rows: {self.records.num_rows if is_synthetic else 100}, clamped_at_most: 100%}}")
        return parse_policy("\n".join(lines) + "\n", name="frontier.yaml")


def read_question(file: Path, masked: Mapping[str, Domain], kept: Sequence[str], target: str, above: float) -> Question:
    """The table of a CSV file, numbers moved into their domains; a row without all of these columns is left out."""
    table = pd.read_csv(file)[[*kept, *masked]].dropna()
    columns: dict[str, Any] = {name: table[name].astype(str).to_numpy() for name in kept}
    for name, (low, high, _) in masked.items():
        columns[name] = np.clip(table[name].to_numpy(dtype=float), float(low), float(high))
    return Question(pa.table(columns), masked, tuple(kept), target, above)


def make_release(strategy: Any, read: Any, secret: bytes, *purpose: str) -> tuple[Any, pa.Table]:
    """What the stages read, and the released table."""
    how: dict[str, Any] = {"secret": secret, "context": ("frontier", *purpose), "progress": lambda _: None}
    read = read_with(strategy.group(read, **how).tables, read)
    read = read_with(strategy.measure(read, **how), read)
    return read, load_table(strategy.suppress(read, load_table(strategy.mask(read, **how))).table)


def measure(question: Question, protect: str, number: int, seen: np.ndarray, unseen: np.ndarray) -> list[float]:
    """What is said of one release."""
    strategy, secret = find_strategy(question.write_policy(protect)), bytes([number + 1]) * 32
    read, released = make_release(strategy, read_tables({"records": question.records}), secret)
    linked, auc, inferred, strangers = [np.nan] * 4, np.nan, np.nan, np.nan
    if "dp-table" not in protect:
        ladder = measure_ladder(strategy.compare(read, released), noise_stream(secret, "ladder"))
        linked = [next((100 * step.linked.value for step in ladder if step.masked == count), np.nan) for count in (0, 1, 2)]
        linked.append(100 * ladder[-1].linked.value)
    if number < LEARNED_SECRETS:
        part = read_tables({"records": question.records.take(pa.array(seen))})
        known, answers = question.list_features(question.records)
        learned = question.list_features(make_release(strategy, part, secret, "learned")[1])
        auc = measure_ranking(*learned, known[unseen], answers[unseen], seed=1)
    if number == 0:
        compared = strategy.compare(read, released)
        found = attack_without_control(
            compared,
            lambda part: make_release(strategy, part, secret, "attacked")[1],
            lambda *purpose: noise_stream(secret, "attack", *purpose),
            among=compared.originals,
        )
        [own] = [attack for attack in found["attacks"] if attack["name"] == "inferring"]
        inferred, strangers = 100 * own["attack"]["value"], 100 * own["control"]["value"]
    dropped = 100 * (1 - released.num_rows / question.records.num_rows)
    return [*linked, *compare(question, released), auc, inferred, strangers, dropped]


def compare(question: Question, released: pa.Table) -> list[float]:
    """KS, rank correlations and means of groups."""
    both = [[table[name].to_numpy().astype(float) for name in question.masked] for table in (question.records, released)]
    ks = float(np.mean([find_gap(Tally.of(before), Tally.of(after)) for before, after in zip(*both, strict=True)]))
    pairs = list(combinations(range(len(both[0])), 2))
    ranks: Any = np.array([[spearmanr(columns[i], columns[j])[0] for i, j in pairs] for columns in both])
    spearman = float(np.mean(np.abs(ranks[0] - ranks[1]))) if pairs else np.nan
    if not question.kept:
        return [ks, spearman, np.nan]
    names, kept = list(question.masked), list(question.kept)
    before, after = (table.select([*kept, *names]).to_pandas().groupby(kept) for table in (question.records, released))
    large = before.mean()[before.size() >= LEAST_GROUP]
    off = (after.mean().reindex(large.index) - large).abs() / [column.std() for column in both[0]]
    return [ks, spearman, float(off.fillna(1.0).to_numpy().mean())]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each method."""
    parser = argparse.ArgumentParser(prog="python -m experiments.frontier", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, metavar="CSV")
    parser.add_argument("--mask", nargs="+", required=True, metavar="NAME:LOW:HIGH:GRID", help="columns of numbers")
    parser.add_argument("--keep", nargs="*", default=[], metavar="NAME", help="columns of categories")
    parser.add_argument("--predict", required=True, metavar="NAME:BOUND", help="a masked column, and what it is above")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="NAME", help=", ".join(METHODS))
    parser.add_argument("--secrets", type=int, default=3, metavar="N", help="releases of each method (3)")
    options = parser.parse_args(arguments)
    try:
        masked = {name: (low, high, grid) for name, low, high, grid in (given.split(":") for given in options.mask)}
        target, above = options.predict.split(":")
        question = read_question(options.file, masked, options.keep, target, float(above))
    except (OSError, KeyError, ValueError):
        parser.error("the file has not these columns, or what is behind their names is no number.")
    if target not in masked or not (options.keep or len(masked) > 1):
        parser.error("--predict names a masked column, and there must be another column to predict it by.")
    try:
        order = np.random.default_rng(7).permutation(question.records.num_rows)
        seen, unseen = np.sort(order[: 2 * len(order) // 3]), np.sort(order[2 * len(order) // 3 :])
        known, answers = question.list_features(question.records)
        auc = measure_ranking(known[seen], answers[seen], known[unseen], answers[unseen], seed=1)
        print(f"{len(order):,} records, AUC of the records {auc:.3f}\n\n| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
        for name in options.methods:
            rows = [measure(question, METHODS[name], number, seen, unseen) for number in range(options.secrets)]
            cells = ("" if np.isnan(mean) else f"{mean:.3g}" for mean in pd.DataFrame(rows).mean())
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    except ReleasePipelineError as error:
        print("\n".join([str(error), *error.details]), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
