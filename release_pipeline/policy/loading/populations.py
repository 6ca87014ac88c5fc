"""populations.yaml: the populations with a budget, how much it is, and their predecessors. Signed by the privacy officer.

    adults:  {cap: {...}, was: people}              renamed; several with the same `was`: split
    both:    {cap: {...}, from: [north, south]}     merged

People keep what they were charged under an earlier name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, TypeAdapter, model_validator

from release_pipeline.errors import PolicyInvalid
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.accounting.budget import rho_within
from release_pipeline.policy.loading.load import read_text
from release_pipeline.policy.loading.messages import explain_value, raise_problems
from release_pipeline.policy.values.scalars import Budget, Exact, Slug, unique
from release_pipeline.policy.values.text import Problem, read_yaml


class Cap(BaseModel):
    """The most that may be spent: an epsilon in one definition and scope, a rho for a scope, or a number of releases. For an
    (epsilon, delta) under zcdp `rho` is the most that gives it, and is what adds up."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    epsilon: Budget | None = None
    delta: Annotated[Exact, Field(gt=0, lt=1)] | None = None
    rho: Budget | None = None
    definition: Literal["dp", "idp", "zcdp"] | None = None
    scope: Literal["centroid", "column", "table"] | None = None
    releases: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Cap:
        by_epsilon = (self.epsilon, self.definition, self.scope)
        by_rho = (self.rho, self.delta)
        if self.releases is not None:
            if any(part is not None for part in (*by_epsilon, *by_rho)):
                raise ValueError("a cap of releases has no epsilon, definition or scope")
            return self
        if self.epsilon is None and self.rho is not None:
            if self.scope is None or self.delta is not None or self.definition not in (None, "zcdp"):
                raise ValueError("a cap in rho names rho and scope, and nothing else")
            return self._with(definition="zcdp")
        if any(part is None for part in by_epsilon):
            raise ValueError("a cap names epsilon, definition and scope, or rho and scope, or else releases")
        if (self.definition == "zcdp") != (self.delta is not None):
            raise ValueError("an epsilon has a delta under zcdp, and nowhere else")
        if self.epsilon is None or self.delta is None:
            if self.rho is not None:
                raise ValueError("rho is for zcdp")
            return self
        rho = Epsilon(rho_within(self.epsilon.nano, self.delta))
        if rho.nano == 0:
            raise ValueError("so little epsilon leaves nothing of rho at this delta")
        if self.rho not in (None, rho):
            raise ValueError(f"rho is {rho} for this epsilon and delta: leave it out")
        return self._with(rho=rho)

    def _with(self, **parts: Any) -> Cap:
        """Return the cap with the values that follow from its declaration."""
        for name, value in parts.items():
            object.__setattr__(self, name, value)
        return self


class Population(BaseModel):
    """The people whose records the releases of some policies come from, and their earlier populations."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cap: Cap
    was: Slug | None = None
    merges: Annotated[tuple[Slug, ...], Field(min_length=2), AfterValidator(unique)] | None = Field(default=None, alias="from")

    @model_validator(mode="after")
    def _one_origin(self) -> Population:
        if self.was is not None and self.merges is not None:
            raise ValueError("a population has 'was' (renamed, or split off) or 'from' (merged), not both")
        return self

    @property
    def ancestors(self) -> tuple[str, ...]:
        """Return the earlier populations of its people, as this entry names them."""
        return self.merges or (() if self.was is None else (self.was,))

    @property
    def canonical(self) -> dict[str, Any]:
        """Return its declared content, without empty options."""
        return self.model_dump(mode="json", exclude_none=True, by_alias=True)


_ADAPTER: TypeAdapter[Population] = TypeAdapter(Population)
_KNOWN = ("cap", "epsilon", "delta", "rho", "definition", "scope", "releases", "was", "from")


def load_populations(file: FilePath) -> dict[str, Population]:
    """Return the populations in `file`; raises `PolicyInvalid` with every problem and its line if there are any."""
    document = read_yaml(read_text(file))
    problems: list[Problem] = list(document.problems)
    populations: dict[str, Population] = {}
    raw: Any = document.value
    if not isinstance(raw, dict):
        problems = problems or [((), "this must be a mapping from populations to their caps.", "")]
    else:
        for name, value in cast(dict[str, Any], raw).items():
            population, faults = explain_value(_ADAPTER, value, (name,), raw, known=_KNOWN)
            problems += faults
            if population is not None:
                populations[name] = population
        traced = _trace(populations)
        if circle := [name for name in populations if name not in traced]:
            remedy = "Nobody was there before themselves: remove a 'was' or 'from'."
            problems.append(((circle[0],), f"'{circle[0]}' comes from itself.", remedy))
    if problems:
        raise_problems(document, problems, str(file), what="file")
    return populations


def list_ancestors(populations: Mapping[str, Population], name: str) -> frozenset[str]:
    """Return every earlier population of the people of `name`, back to the first.

    >>> def of(**origin): return Population.model_validate({"cap": Cap(releases=1), **origin})
    >>> sorted(list_ancestors({"b": of(was="a"), "c": of(**{"from": ["b", "x"]})}, "c"))
    ['a', 'b', 'x']
    """
    return _trace(populations).get(name, frozenset())


def _trace(populations: Mapping[str, Population]) -> dict[str, frozenset[str]]:
    """Return the ancestors of each population, except populations that descend from themselves."""
    traced: dict[str, frozenset[str]] = {}
    left = dict(populations)
    while ready := [name for name in left if not any(ancestor in left for ancestor in left[name].ancestors)]:
        for name in ready:
            before = left.pop(name).ancestors
            traced[name] = frozenset(before).union(*(traced.get(ancestor, frozenset()) for ancestor in before))
    return traced


def find_population(populations: Mapping[str, Population], name: str, *, file: FilePath) -> Population:
    """Return the population with that name; raises if it is not declared."""
    if name not in populations:
        known = ", ".join(populations) or "none"
        raise PolicyInvalid(
            f"the population '{name}' is not declared.",
            problems=(),
            where=str(file),
            remedy=f"The privacy officer adds it with its cap. Declared: {known}.",
        )
    return populations[name]
