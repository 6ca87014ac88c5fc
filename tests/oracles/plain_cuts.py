"""Mondrian's cuts once more, from the definition, in plain Python and exact fractions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

Row = Sequence[Fraction]
Tables = Mapping[int, Sequence[Sequence[int]]]  # column -> level -> value -> label


def allowable(rows: Sequence[int], k: int) -> bool:
    return len(rows) >= k


def level_of(matrix: Sequence[Row], rows: Sequence[int], table: Sequence[Sequence[int]], column: int) -> int:
    """The finest level on which all rows share a label."""
    return min(a for a in range(len(table)) if len({table[a][int(matrix[row][column])] for row in rows}) == 1)


def cuts(matrix: Sequence[Row], rows: Sequence[int], column: int, tables: Tables) -> Iterator[list[list[int]]]:
    """Every way to cut the rows in this column, allowable or not; lower values, and labels that come first, at the front."""
    if column in tables:
        table = tables[column]
        level = level_of(matrix, rows, table, column)
        if level > 0:
            parts: dict[int, list[int]] = {}
            for row in rows:
                parts.setdefault(table[level - 1][int(matrix[row][column])], []).append(row)
            yield [parts[label] for label in sorted(parts)]
        return
    values = sorted({matrix[row][column] for row in rows})
    for value in values[1:]:
        yield [[r for r in rows if matrix[r][column] < value], [r for r in rows if matrix[r][column] >= value]]


def can_be_cut(matrix: Sequence[Row], rows: Sequence[int], k: int, tables: Tables) -> bool:
    return any(
        all(allowable(part, k) for part in parts)
        for column in range(len(matrix[0]))
        for parts in cuts(matrix, rows, column, tables)
    )


def classes(matrix: Sequence[Row], k: int, tables: Tables) -> list[list[int]]:
    """The classes in the order of the cuts."""
    everybody = list(range(len(matrix)))
    whole = [max(r[c] for r in matrix) - min(r[c] for r in matrix) for c in range(len(matrix[0]))]

    def share(rows: Sequence[int], column: int) -> Fraction:
        if column in tables:
            table = tables[column]
            labels = table[level_of(matrix, rows, table, column)]
            return Fraction(labels.count(labels[int(matrix[rows[0]][column])]), len(labels))
        spread = max(matrix[r][column] for r in rows) - min(matrix[r][column] for r in rows)
        return Fraction(spread) / Fraction(whole[column]) if spread else Fraction(0)

    def divide(rows: list[int]) -> list[list[int]]:
        for column in sorted(range(len(matrix[0])), key=lambda c: (-share(rows, c), c)):
            fits = [p for p in cuts(matrix, rows, column, tables) if all(allowable(s, k) for s in p)]
            if fits:
                best = min(fits, key=lambda parts: (abs(2 * len(parts[0]) - len(rows)), len(parts[0])))
                return [found for part in best for found in divide(part)]
        return [rows]

    return divide(everybody)
