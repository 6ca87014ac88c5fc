"""populations.yaml: whose budget there is, and how much of it. Signed by the privacy officer."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, StrictInt, TypeAdapter, model_validator

from release_pipeline.errors import PolicyInvalid
from release_pipeline.policy.load import read_text
from release_pipeline.policy.messages import explain_value, raise_problems
from release_pipeline.policy.scalars import Budget
from release_pipeline.policy.text import Problem, read_yaml


class Cap(BaseModel):
    """The most that may be spent: an epsilon in one definition and scope, or a number of releases."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    epsilon: Budget | None = None
    definition: Literal["dp", "idp"] | None = None
    scope: Literal["centroid", "column", "table"] | None = None
    releases: Annotated[StrictInt, Field(ge=1, le=1_000_000)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Cap:
        by_epsilon = (self.epsilon, self.definition, self.scope)
        if self.releases is None and any(part is None for part in by_epsilon):
            raise ValueError("a cap names epsilon, definition and scope, or else releases")
        if self.releases is not None and any(part is not None for part in by_epsilon):
            raise ValueError("a cap of releases has no epsilon, definition or scope")
        return self


class Population(BaseModel):
    """The people whose records the releases of some policies come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cap: Cap


_ADAPTER: TypeAdapter[Population] = TypeAdapter(Population)


def load_populations(file: FilePath) -> dict[str, Population]:
    """The populations in `file`; raises `PolicyInvalid` with every problem and its line when there are any."""
    document = read_yaml(read_text(file))
    problems: list[Problem] = list(document.problems)
    found: dict[str, Population] = {}
    raw: Any = document.value
    if not isinstance(raw, dict):
        problems = problems or [((), "this must be a mapping from populations to their caps.", "")]
    else:
        for name, value in cast(dict[str, Any], raw).items():
            population, faults = explain_value(
                _ADAPTER, value, (name,), raw, known=("cap", "epsilon", "definition", "scope", "releases")
            )
            problems += faults
            if population is not None:
                found[name] = population
    if problems:
        raise_problems(document, problems, str(file), what="file")
    return found


def find_population(populations: dict[str, Population], name: str, *, file: FilePath) -> Population:
    """The population of that name."""
    if name not in populations:
        known = ", ".join(populations) or "none"
        raise PolicyInvalid(
            f"the population '{name}' is not declared.",
            problems=(),
            where=str(file),
            remedy=f"The privacy officer adds it with its cap. Declared: {known}.",
        )
    return populations[name]
