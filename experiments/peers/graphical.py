"""AIM and MST (MMS22, MMS21) on Ryan McKenna's `mbi` 2, by an interpreter that has it: `graphical.py INPUT.npz OUTPUT.npz`.

Stands alone: nothing of this project is imported. INPUT has the `method`, `codes` (records x columns), `sizes`, `rho`, `seed`,
`megabytes` (the most that the junction tree of AIM's model may have) and, where columns were counted before, `margins` and their
`variances`, one after the other. OUTPUT has as many synthetic `codes`, `cpu` seconds, `peak` bytes, and `notes`.

`mbi` 2.0 has no mechanism of its own, so that the loops are here, as the papers have them. Junction trees and rows are `mbi`'s.
The fits are mirror descent by plain NumPy, to convergence: `mbi`'s own is compiled by jax for every new set of cliques, 4 to 9
CPU seconds each, which would be nearly all of AIM's time and none of its doing.

Neighbours replace a record. Counts have a sensitivity of sqrt(2) in L2, so that a table with noise of variance v costs 1/v of
rho; the L1 distance of two tables has a sensitivity of 2, so that a selection at e costs e^2/8 of rho if scores are divided by
twice the largest weight.
"""

from __future__ import annotations

import importlib
import json
import math
import resource
import sys
from importlib.metadata import version
from itertools import combinations
from time import process_time
from typing import Any

import numpy as np

ROUNDS, COUNTS = 16, 0.9  # of AIM: rounds a column that are planned, the share of counts in each
STEPS, CLOSE, CLOSER, LOOKED_AT = 4_000, 1e-4, 1e-6, 50  # a fit ends when so many steps gain less than that of the loss
TINY = 1e-300
Clique = tuple[int, ...]


class Fit:
    """A model of what was measured: potentials on the cliques that were, tables by messages along mbi's junction tree."""

    def __init__(self, codes: Any, sizes: Any) -> None:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_enable_compilation_cache", False)
        self.mbi = importlib.import_module("mbi")
        self.sizes = [int(size) for size in sizes]
        self.domain = self.mbi.Domain(tuple(range(len(sizes))), tuple(self.sizes))
        self.codes, self.records = codes, len(codes)
        self.counts: dict[Clique, Any] = {}
        self.precision: dict[Clique, Any] = {}
        self.potentials: dict[Clique, Any] = {}
        self.nodes: list[Clique] = []

    def true(self, clique: Clique) -> Any:
        """The counts of the records."""
        sizes = [self.sizes[column] for column in clique]
        place = np.ravel_multi_index([self.codes[:, column] for column in clique], sizes)
        return np.bincount(place, minlength=math.prod(sizes)).astype(np.float64).reshape(sizes)

    def note(self, clique: Clique, counts: Any, variance: Any) -> None:
        """What was measured; of the same cells before, the mean by precision."""
        precision = np.broadcast_to(1 / np.asarray(variance, dtype=np.float64), counts.shape)
        if clique in self.counts:
            both = precision + self.precision[clique]
            counts = (counts * precision + self.counts[clique] * self.precision[clique]) / both
            precision = both
        else:
            self.potentials[clique] = np.zeros(counts.shape)
        self.counts[clique], self.precision[clique] = counts, precision

    def megabytes(self, cliques: list[Clique]) -> float:
        """Those of a junction tree of these."""
        return float(self.mbi.junction_tree.hypothetical_model_size(self.domain, cliques))

    def _grow(self) -> None:
        """Nodes from roots down, each with its parent and what it shares with it."""
        tree, _ = self.mbi.junction_tree.make_junction_tree(self.domain, list(self.counts))
        self.nodes, self.parents, self.shared = [], [], []
        places: dict[Clique, int] = {}
        for root in sorted(tree.nodes):
            if root in places:
                continue
            waiting: list[tuple[Clique, Clique | None]] = [(root, None)]
            while waiting:
                node, parent = waiting.pop()
                places[node] = len(self.nodes)
                self.nodes.append(node)
                self.parents.append(-1 if parent is None else places[parent])
                self.shared.append(() if parent is None else tuple(column for column in node if column in parent))
                waiting += [(other, node) for other in tree.neighbors(node) if other not in places]
        self.homes = {
            clique: min(
                (place for place, node in enumerate(self.nodes) if set(clique) <= set(node)),
                key=lambda place: math.prod(self.sizes[column] for column in self.nodes[place]),
            )
            for clique in self.counts
        }

    def _spread(self, columns: Clique, node: Clique) -> list[int]:
        return [self.sizes[column] if column in columns else 1 for column in node]

    @staticmethod
    def _sum(table: Any, node: Clique, columns: Clique) -> Any:
        return table.sum(axis=tuple(place for place, column in enumerate(node) if column not in columns))

    def _pass(self, potentials: dict[Clique, Any]) -> list[Any]:
        held = [np.zeros([self.sizes[column] for column in node]) for node in self.nodes]
        for clique, own in potentials.items():
            held[self.homes[clique]] += own.reshape(self._spread(clique, self.nodes[self.homes[clique]]))
        messages: list[Any] = [np.ones(())] * len(held)
        for place in range(len(held) - 1, -1, -1):
            held[place] -= held[place].max()
            np.exp(held[place], out=held[place])
            if self.parents[place] < 0:
                continue
            node, parent = self.nodes[place], self.nodes[self.parents[place]]
            messages[place] = np.maximum(self._sum(held[place], node, self.shared[place]), TINY)
            held[self.parents[place]] += np.log(messages[place]).reshape(self._spread(self.shared[place], parent))
        for place, own in enumerate(held):
            if self.parents[place] < 0:
                own *= self.records / own.sum()
                continue
            node, parent = self.nodes[place], self.nodes[self.parents[place]]
            above = self._sum(held[self.parents[place]], parent, self.shared[place]) / messages[place]
            own *= above.reshape(self._spread(self.shared[place], node))
        return held

    def _judge(self, tables: list[Any]) -> tuple[float, dict[Clique, Any], dict[Clique, Any]]:
        found = {clique: self._sum(tables[home], self.nodes[home], clique) for clique, home in self.homes.items()}
        slopes = {clique: (own - self.counts[clique]) * self.precision[clique] for clique, own in found.items()}
        loss = sum(float(((own - self.counts[clique]) * slopes[clique]).sum()) for clique, own in found.items()) / 2
        return loss, found, slopes

    def run(self, close: float) -> None:
        """Mirror descent from where the potentials are, until it gains next to nothing."""
        if set(self.counts) - set(getattr(self, "homes", {})):
            self._grow()
        self.tables = self._pass(self.potentials)
        loss, found, slopes = self._judge(self.tables)
        step, before = 1 / (self.records * max(float(own.max()) for own in self.precision.values())), math.inf
        for number in range(STEPS):
            tried = {clique: own - step * slopes[clique] for clique, own in self.potentials.items()}
            tables = self._pass(tried)
            now, after, steeper = self._judge(tables)
            promised = sum(float((slopes[clique] * (found[clique] - after[clique])).sum()) for clique in found)
            if now <= loss - promised / 2:
                self.potentials, self.tables, loss, found, slopes = tried, tables, now, after, steeper
                step *= 1.2
            else:
                step /= 2
            if number % LOOKED_AT == LOOKED_AT - 1:
                if before - loss <= close * max(loss, 1.0):
                    break
                before = loss
        self.loss = loss

    def table(self, clique: Clique) -> Any:
        """The counts of the model, of one column or two."""
        for place, node in enumerate(self.nodes):
            if set(clique) <= set(node):
                return self._sum(self.tables[place], node, clique)
        one, other = clique
        return self._beyond(one)[other]

    def all_pairs(self) -> dict[Clique, Any]:
        """The tables of the model of all pairs of columns."""
        found: dict[Clique, Any] = {}
        for one in range(len(self.sizes)):
            beyond = self._beyond(one)
            found |= {(one, other): beyond[other] for other in range(one + 1, len(self.sizes))}
        return found

    def _beyond(self, one: int) -> dict[int, Any]:
        """The tables of a column and each other one, by walking from it along the tree."""
        near: dict[int, list[int]] = {place: [] for place in range(len(self.nodes))}
        for place, parent in enumerate(self.parents):
            if parent >= 0:
                near[place].append(parent)
                near[parent].append(place)
        found: dict[int, Any] = {}
        start = next(place for place, node in enumerate(self.nodes) if one in node)
        seen = {start}
        waiting: list[tuple[int, int, Any]] = [(start, -1, np.ones(()))]
        while waiting:
            place, came, joint = waiting.pop()
            node, table = self.nodes[place], self.tables[place]
            if one in node:
                joint = np.moveaxis(table, node.index(one), 0)
                rest = tuple(column for column in node if column != one)
            else:
                link = self.shared[place] if self.parents[place] == came else self.shared[came]
                given = table / np.maximum(self._sum(table, node, link), TINY).reshape(self._spread(link, node))
                flat = joint.reshape(self.sizes[one], *self._spread(link, node))
                joint, rest = flat * given, node
            for column in rest:
                if column not in found:
                    found[column] = self._sum(joint, (-1, *rest), (-1, column))
            for other in near[place]:
                if other not in seen:
                    seen.add(other)
                    link = self.shared[other] if self.parents[other] == place else self.shared[place]
                    inner = tuple(column for column in link if column != one)
                    waiting.append((other, place, self._sum(joint, (-1, *rest), (-1, *inner))))
        alone = self.table((one,))
        for column in range(len(self.sizes)):
            if column not in found and column != one:
                found[column] = np.outer(alone, self.table((column,))) / self.records
        return found

    def rows(self) -> Any:
        """Rows, by mbi."""
        self.run(CLOSER)
        factors = {clique: self.mbi.Factor(self.domain.project(clique), own) for clique, own in self.potentials.items()}
        vector = self.mbi.CliqueVector(self.domain, tuple(factors), factors)
        model = self.mbi.MarkovRandomField(potentials=vector, marginals=vector, total=float(self.records))
        made = model.synthetic_data(rows=self.records)
        return np.stack([np.asarray(made.data[column]) for column in range(len(self.sizes))], axis=1).astype(np.int64)


def _count(fit: Fit, clique: Clique, variance: float, random: Any) -> None:
    counts = fit.true(clique)
    fit.note(clique, counts + random.normal(0, math.sqrt(variance), counts.shape), variance)


def _choose(scores: Any, e: float, sensitivity: float, random: Any) -> int:
    return int(np.argmax(e / (2 * sensitivity) * scores + random.gumbel(size=len(scores))))


def aim(fit: Fit, given: Any, random: Any) -> dict[str, Any]:
    """Algorithm 2 of MMS22: the workload is all pairs, candidates are these and the columns."""
    rho, columns = float(given["rho"]), range(len(fit.sizes))
    pairs = list(combinations(columns, 2))
    weights = {(column,): float(len(columns) - 1) for column in columns} | {pair: float(len(columns)) for pair in pairs}
    variance, e = ROUNDS * len(columns) / (COUNTS * rho), math.sqrt(8 * (1 - COUNTS) * rho / (ROUNDS * len(columns)))
    spent = 0.0
    if "margins" not in given:
        for column in columns:
            _count(fit, (column,), variance, random)
            spent += 1 / variance
    fit.run(CLOSE)
    answers = {clique: fit.true(clique) for clique in weights}
    chosen: list[Clique] = []
    last = False
    while not last:
        if rho - spent < 2 * (1 / variance + e * e / 8):
            left = rho - spent
            variance, e, last = 1 / (COUNTS * left), math.sqrt(8 * (1 - COUNTS) * left), True
        spent += 1 / variance + e * e / 8
        limit = float(given["megabytes"]) * min(spent / rho, 1.0)
        cliques = list(fit.counts)
        allowed = [
            clique
            for clique in weights
            if any(set(clique) <= set(node) for node in fit.nodes) or fit.megabytes([*cliques, clique]) <= limit
        ]
        bias, found = math.sqrt(2 / math.pi * variance), fit.all_pairs()
        scores = [
            weights[own]
            * (np.abs(answers[own] - (found[own] if len(own) > 1 else fit.table(own))).sum() - bias * answers[own].size)
            for own in allowed
        ]
        clique = allowed[_choose(np.array(scores), e, 2 * max(weights[own] for own in allowed), random)]
        before = fit.table(clique)
        _count(fit, clique, variance, random)
        chosen.append(clique)
        fit.run(CLOSE)
        if float(np.abs(fit.table(clique) - before).sum()) <= bias * before.size:
            variance, e = variance / 4, 2 * e
    return {"rounds": len(chosen), "pairs": len({own for own in chosen if len(own) > 1}), "spent": spent}


def mst(fit: Fit, given: Any, random: Any) -> dict[str, Any]:
    """MMS21: a third of the budget for columns, a third for choosing a spanning tree of pairs, and a third for their tables.
    Where columns were counted before, halves."""
    rho, count = float(given["rho"]), len(fit.sizes)
    share = rho / (2 if "margins" in given else 3)
    if "margins" not in given:
        for column in range(count):
            _count(fit, (column,), count / share, random)
    fit.run(CLOSE)
    found = fit.all_pairs()
    scores = {pair: float(np.abs(fit.true(pair) - table).sum()) for pair, table in found.items()}
    trees, chosen = list(range(count)), []
    e = math.sqrt(8 * share / (count - 1))
    while len(chosen) < count - 1:
        open_ = [pair for pair in scores if trees[pair[0]] != trees[pair[1]]]
        one, other = open_[_choose(np.array([scores[pair] for pair in open_]), e, 2.0, random)]
        trees = [trees[one] if tree == trees[other] else tree for tree in trees]
        chosen.append((one, other))
    for pair in chosen:
        _count(fit, pair, (count - 1) / share, random)
    return {"rounds": count - 1, "pairs": len(chosen), "spent": rho}


def main(given: Any) -> dict[str, Any]:
    """The synthetic codes, and what it took."""
    started = process_time()
    random = np.random.default_rng(int(given["seed"]))
    np.random.seed(int(given["seed"]))  # noqa: NPY002 (mbi draws rows from it)
    fit = Fit(given["codes"], given["sizes"])
    if "margins" in given:
        ends = np.cumsum(given["sizes"])[:-1]
        both = zip(np.split(given["margins"], ends), np.split(given["variances"], ends), strict=True)
        for column, (margin, variances) in enumerate(both):
            fit.note((column,), margin.astype(np.float64), variances)
    notes = {"aim": aim, "mst": mst}[str(given["method"])](fit, given, random)
    codes = fit.rows()
    cpu, peak = process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    notes |= {"package": f"mbi {version('mbi')}, jax {version('jax')}", "loss": round(fit.loss, 2)}
    return {"codes": codes, "cpu": cpu, "peak": peak, "notes": json.dumps(notes)}


if __name__ == "__main__":
    with np.load(sys.argv[1]) as file:
        found = main(dict(file))
    np.savez_compressed(sys.argv[2], **found)
