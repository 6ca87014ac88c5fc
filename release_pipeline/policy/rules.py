"""What several parts of a policy must agree on. Each rule runs as soon as the parts that it needs are valid, so that one
broken part does not hide what is wrong elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.model import (
    DropColumn,
    Gates,
    KeepColumn,
    MissingCategory,
    NoiseColumn,
    Person,
    Protect,
    Scheduled,
    Source,
    Suppress,
    look_alike_key,
    split_epsilon,
)
from release_pipeline.policy.text import Path
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.methods import DEFINITION, check_sizes

Problem: TypeAlias = tuple[Path, str, str]  # where, what, remedy


@dataclass(slots=True)
class Parts:
    """The parts of a policy that are valid by themselves; None or absent where they are not. `names` are all columns named."""

    source: Source | None = None
    person: Person | str | None = None
    releases: tuple[str, ...] | Scheduled | str | None = None
    protect: Protect | None = None
    suppress: Suppress | None = None
    gates: Gates | None = None
    columns: dict[str, DropColumn | KeepColumn | NoiseColumn] = field(
        default_factory=dict[str, DropColumn | KeepColumn | NoiseColumn]
    )
    drop: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    complete: bool = True  # whether every column is valid

    @property
    def is_series(self) -> bool:
        names = self.releases.list or () if isinstance(self.releases, Scheduled) else self.releases
        return isinstance(names, tuple) and (len(names) > 1 or names == ())

    @property
    def noise(self) -> dict[str, NoiseColumn]:
        return {name: column for name, column in self.columns.items() if isinstance(column, NoiseColumn)}


def find_contradictions(parts: Parts) -> Iterator[Problem]:
    """Every disagreement between the valid parts, in the order of the file."""
    yield from _names(parts)
    yield from _source(parts)
    yield from _person(parts)
    if parts.protect is not None:
        yield from _protect(parts, parts.protect)
    yield from _columns(parts)
    yield from _suppress(parts)
    yield from _gates(parts)


def _names(parts: Parts) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name in parts.names:
        other = seen.setdefault(look_alike_key(name), name)
        if other != name:
            yield ("columns", name), f"'{name}' and '{other}' look alike.", "Rename one of them in the source."
    for i, name in enumerate(parts.drop):
        if name in parts.names:
            yield ("drop", i), f"'{name}' is under columns too.", "Declare it in one place."
        elif (other := seen.setdefault(look_alike_key(name), name)) != name:
            yield ("drop", i), f"'{name}' and '{other}' look alike.", "Rename one of them in the source."


def _source(parts: Parts) -> Iterator[Problem]:
    if parts.source is None:
        return
    column = parts.source.release_column
    if column is not None and (column in parts.names or column in parts.drop):
        yield (
            ("source", "release_column"),
            f"'{column}' is declared again under columns or drop.",
            "The release column is never released: name it here only.",
        )
    if parts.releases == "once" and column is not None:
        yield (
            ("source", "release_column"),
            "a policy that is released once has no release column.",
            "List the releases, or leave release_column out and drop the column.",
        )
    if parts.is_series and column is None:
        yield (
            ("releases",),
            "several releases need source.release_column to tell their records apart.",
            "Name the column, or set releases to once.",
        )


def _person(parts: Parts) -> Iterator[Problem]:
    if not isinstance(parts.person, Person):
        return
    column = parts.columns.get(parts.person.column)
    if parts.names and column is None and parts.person.column not in parts.names:
        yield (
            ("person", "column"),
            f"'{parts.person.column}' is not declared under columns.",
            "Add it there with {role: identifier, do: drop}.",
        )
    elif column is not None and column.role != "identifier":
        yield (
            ("person", "column"),
            f"'{parts.person.column}' must have the role identifier.",
            "Set its role, with do: drop.",
        )
    if parts.protect and DEFINITION[parts.protect.method] == "idp" and parts.person.records_per_release > 1:
        yield (
            ("person", "records_per_release"),
            f"{parts.protect.method} protects single records: individual differential privacy does not cover groups.",
            "Aggregate to one record per person, or use laplace or dp-um.",
        )


def _protect(parts: Parts, protect: Protect) -> Iterator[Problem]:
    if protect.method == "laplace":
        if protect.k is not None:
            yield ("protect", "k"), "laplace masks every record on its own and has no k.", "Remove k."
    elif protect.k is None:
        yield (
            ("protect",),
            f"k is missing: {protect.method} needs the number of records per cluster.",
            "Add k, like k: 25.",
        )
    try:
        choose_consistency(protect.consistency, method=protect.method, scope=protect.scope)
    except ReleasePipelineError as error:
        yield ("protect", "consistency"), error.what, error.remedy
    if parts.complete and not parts.noise:
        yield (
            ("columns",),
            "no column has do: noise, so there is nothing to protect with noise.",
            "Declare at least one.",
        )
    for name in protect.weights:
        if parts.complete and name not in parts.noise:
            yield ("protect", "weights", name), f"'{name}' is not a column with do: noise.", "Remove the weight."
    if parts.complete and len(parts.noise) == 1 and protect.weights:
        yield ("protect", "weights"), "weights share epsilon between several columns; there is one.", "Remove them."
    if parts.noise:
        for name, share in split_epsilon(protect, parts.noise).items():
            yield from _grid(name, parts.noise[name], protect, share)


def _grid(name: str, column: NoiseColumn, protect: Protect, share: Epsilon) -> Iterator[Problem]:
    if share.nano == 0:
        yield ("protect", "epsilon"), f"nothing of epsilon is left for '{name}'.", "Use a larger epsilon or other weights."
        return
    try:
        grid = column.exact_grid
    except ReleasePipelineError:
        return  # reported by _columns
    try:
        check_sizes(method=protect.method, k=protect.k, grid=grid, epsilon=share)
    except ReleasePipelineError as error:
        if error.where != "k":
            yield ("columns", name, "grid"), error.what, error.remedy
        elif protect.k is not None and protect.method != "laplace":
            yield ("protect", "k"), error.what, error.remedy


def _columns(parts: Parts) -> Iterator[Problem]:
    for name, column in parts.columns.items():
        here: Path = ("columns", name)
        if isinstance(column, NoiseColumn):
            try:
                grid = column.exact_grid
            except ReleasePipelineError as error:
                yield (*here, "grid"), error.what, error.remedy
                continue
            if not isinstance(column.missing, str) and not grid.lo <= column.missing.fill <= grid.hi:
                yield (*here, "missing"), "the fill lies outside the domain.", "Choose a number inside it."
        elif (
            isinstance(column, KeepColumn)
            and isinstance(column.missing, MissingCategory)
            and column.missing.category not in column.values
        ):
            yield (*here, "missing"), "the category for missing entries is not among the values.", "Add it to values."


def _suppress(parts: Parts) -> Iterator[Problem]:
    kept = [c for c in parts.columns.values() if isinstance(c, KeepColumn) and c.role == "quasi"]
    if parts.suppress is not None and parts.complete and not kept:
        yield (
            ("suppress",),
            "there are no groups to suppress: no quasi-identifier is released.",
            "Remove suppress, or keep a column of role quasi.",
        )


def _gates(parts: Parts) -> Iterator[Problem]:
    if parts.gates is None:
        return
    if parts.gates.min_rows is not None and parts.protect and parts.protect.k and parts.gates.min_rows < 2 * parts.protect.k:
        yield (
            ("gates", "min_rows"),
            f"min_rows is below 2 k = {2 * parts.protect.k}.",
            "Fewer records than two clusters are never released: raise it.",
        )
    if parts.gates.differencing_below is not None and parts.releases == "once":
        what = "there is one release, and nothing to compare it with."
        yield ("gates", "differencing_below"), what, "Remove differencing_below."
    elif parts.gates.differencing_below and parts.person == "each-row":
        what = "each row is a person of its own, so nobody can be seen to join or leave."
        yield ("gates", "differencing_below"), what, "Name the person's column, or set differencing_below to 0."
    for name in parts.gates.expected_error:
        if parts.complete and name not in parts.noise:
            yield ("gates", "expected_error", name), f"'{name}' is not a column with do: noise.", "Remove it."
