"""Which columns a model looks at together, so that it stays small: a graph of pairs, made chordal, as a tree of cliques.

It follows from public sizes and from which pairs are in it, and the order in which columns are taken away is the cheapest first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from release_pipeline.privacy.whole_table.design import Pair

Clique = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CliqueTree:
    """Cliques of columns, a parent before its children (`parents`: the place of each clique's parent, -1 of the first one's), and
    the columns that each shares with its parent."""

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    shared: tuple[Clique, ...]

    def home(self, columns: Iterable[int], sizes: Sequence[int]) -> int:
        """The smallest clique that has these columns."""
        wanted = set(columns)
        fitting = [place for place, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(fitting, key=lambda place: math.prod(sizes[column] for column in self.cliques[place]))


def find_cliques(sizes: Sequence[int], pairs: Iterable[Pair]) -> list[Clique]:
    """The cliques of the graph of these pairs, with what makes it chordal: columns are taken away one by one, the one whose
    neighbours have the fewest combinations first."""
    beside: list[set[int]] = [set() for _ in sizes]
    for one, other in pairs:
        beside[one].add(other)
        beside[other].add(one)
    left, found = set(range(len(sizes))), list[set[int]]()
    while left:
        column = min(left, key=lambda place: (math.prod(sizes[other] for other in beside[place]) * sizes[place], place))
        clique = beside[column] | {column}
        if not any(clique <= known for known in found):
            found.append(clique)
        for other in beside[column]:
            beside[other] |= beside[column] - {other}
            beside[other].discard(column)
        left.discard(column)
    return [tuple(sorted(clique)) for clique in found]


def count_cells(sizes: Sequence[int], cliques: Iterable[Clique]) -> int:
    """How many combinations the tables of all cliques have."""
    return sum(math.prod(sizes[column] for column in clique) for clique in cliques)


def make_tree(sizes: Sequence[int], pairs: Iterable[Pair]) -> CliqueTree:
    """The tree of cliques that share as many columns with their parents as can be."""
    cliques = find_cliques(sizes, pairs)
    order, parents, shared = [0], [-1], [Clique()]
    waiting = set(range(1, len(cliques)))
    while waiting:
        child, parent = max(
            ((child, place) for child in waiting for place in range(len(order))),
            key=lambda edge: (len(set(cliques[edge[0]]) & set(cliques[order[edge[1]]])), -edge[0], -edge[1]),
        )
        shared.append(tuple(sorted(set(cliques[child]) & set(cliques[order[parent]]))))
        parents.append(parent)
        order.append(child)
        waiting.discard(child)
    return CliqueTree(tuple(cliques[place] for place in order), tuple(parents), tuple(shared))
