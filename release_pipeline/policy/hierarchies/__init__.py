"""How a policy declares the labels of a generalised column: listed labels, intervals, prefixes or dates.

Each form says which entries it covers and what they become on every level. The last level is `*`, except for listed labels, which
end with the last listed level. A category for missing entries is unchanged until `*`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, cast

from pydantic import BaseModel, Discriminator, Tag

from release_pipeline.policy.hierarchies.intervals import ALL, Dates, Intervals, Read
from release_pipeline.policy.hierarchies.listed import Listed, Prefixes, expand

__all__ = ["ALL", "FORMS", "Dates", "HierarchySpec", "Intervals", "Listed", "Read", "expand", "form_of", "known_keys"]


def _form(value: Any) -> str:
    """Return the form that was meant, by the key that only it has."""
    if isinstance(value, BaseModel):
        return type(value).__name__.lower()
    keys = set(cast(Mapping[str, Any], value)) if isinstance(value, dict) else set[str]()
    if keys & {"prefixes", "of"}:
        return "prefixes"
    if keys & {"dates", "first", "last"}:
        return "dates"
    return "intervals" if keys & {"intervals", "domain", "grid", "outside"} else "listed"


HierarchySpec: TypeAlias = Annotated[
    Annotated[Listed, Tag("listed")]
    | Annotated[Intervals, Tag("intervals")]
    | Annotated[Prefixes, Tag("prefixes")]
    | Annotated[Dates, Tag("dates")],
    Discriminator(_form),
]
SPECS: dict[str, type[BaseModel]] = {"listed": Listed, "intervals": Intervals, "prefixes": Prefixes, "dates": Dates}
FORMS = (
    "Allowed: {groups: {LABEL: [values]}}, "
    "{intervals: [5, 10], domain: [0, 100], grid: 1, outside: clamp}, "
    "{prefixes: [5, 3], of: digits}, {dates: [day, month, year], first: 1900-01-01, last: 2030-12-31}."
)


def known_keys(value: Any) -> list[str]:
    """Return the keys allowed in the hierarchy that was meant."""
    form = _form(value)
    return ["groups", "rows"] if form == "listed" else list(SPECS[form].model_fields)


def form_of(value: Any) -> type[BaseModel]:
    """Return the form of hierarchy that was meant."""
    return SPECS[_form(value)]
